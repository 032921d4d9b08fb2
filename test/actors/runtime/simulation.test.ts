/** The deterministic simulation of the runtime. */
import t from 'tap';
import type { MemoryJournalOptions } from '../../../kit/journal/memory.ts';
import type { Operation } from '../../../src/actors/runtime/journal/port.ts';
import { isByHand, testHistories } from '../../support/actors/history-tests.ts';
import type { LedgerState } from '../../support/actors/ledger-kind.ts';
import { simulate } from '../../support/actors/simulation.ts';
import { seeds } from '../../support/depth.ts';
import { expectCaught } from '../../support/planted-fault.ts';

/** Found once: a timer that was set anew for the same moment, while it was under way, fired with its former command. */
const FOUND = 137_872_453;
const SEEDS = 20_000;
const STANDING_SEEDS = 2_000;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;

const without = (op: Operation['op']) => (group: readonly Operation[]) =>
  group.filter((operation) => operation.op !== op);

const FAULTS: Readonly<Record<string, MemoryJournalOptions>> = {
  'a damaged row that is read as it is': { ignoresChecksums: true },
  'a former owner that keeps writing': { ignoresOwner: true },
  'a journal that is opened without its end': { ignoresLength: true },
  'an acknowledgement before the write': { acknowledgesEarly: true },
  'no deduplication': {
    tamper: (group) =>
      group.map((operation) => {
        if (operation.op !== 'append') return operation;
        const [version, events, , timers] = operation.row as readonly unknown[];
        return { ...operation, row: [version, events, [], timers] };
      }),
  },
  'a mailbox row that is not removed': { tamper: without('mailRemove') },
  'a message that is not written': { tamper: without('mail') },
  'a timer that is not written': { tamper: without('timer') },
  'a timer that is not removed': { tamper: without('timerRemove') },
  'a claim that is not written': { tamper: without('index') },
  'a snapshot that drops an event': {
    tamper: (group) =>
      group.map((operation) => {
        if (operation.op !== 'snapshot') return operation;
        const [version, seq, state, ...rest] = operation.row as [number, number, LedgerState, unknown];
        const row = [version, seq, { ...state, applied: state.applied.slice(0, -1) }, ...rest];
        return { ...operation, row };
      }),
  },
  'a snapshot that keeps the rows it covers': {
    tamper: (group) =>
      group.map((operation) =>
        operation.op === 'snapshot' ? { ...operation, fromSeq: operation.seq + 1 } : operation,
      ),
  },
};

// covers S148
testHistories('runtime: keeps every promise in simulated histories', {
  seeds: [FOUND, ...seeds(SEEDS)],
  figures: {},
  catches: 'simulation: catches',
  faults: Object.fromEntries(Object.keys(FAULTS).map((fault) => [fault, 1])),
  simulate: (seed, { fault, trace }) =>
    simulate(seed, { faults: FAULTS[fault ?? ''] ?? {}, ...(trace !== undefined && { trace }) }),
});

// covers S162
t.test('runtime: keeps every promise while worker threads stand still', async (t) => {
  for (const seed of isByHand ? [Number(process.argv[2])] : seeds(STANDING_SEEDS)) {
    const broken = await simulate(seed, { threads: 'standing' });
    if (broken !== undefined) t.fail(`seed ${seed}: ${broken}`);
  }
  t.pass('no promise was broken');
});

if (!isByHand) {
  // covers S162
  t.test('simulation: catches a pool that tells no caller that its task is late', (t) =>
    expectCaught(t, { last: FAULT_SEEDS, shownBy: 1 }, (seed) => simulate(seed, { threads: 'silent' })),
  );
}
