/** The deterministic simulation. One seed alone, with its steps: `node build/test/actors/runtime/simulation.test.js SEED`. */
import t from 'tap';
import type { MemoryJournalOptions } from '../../../kit/journal/memory.ts';
import type { Operation } from '../../../src/actors/runtime/journal/port.ts';
import type { LedgerState } from '../../support/actors/ledger-kind.ts';
import { simulate } from '../../support/actors/simulation.ts';
import { seeds } from '../../support/depth.ts';
import { expectCaught } from '../../support/planted-fault.ts';

/** Found once: a timer that was set anew for the same moment, while it was under way, fired with its former command. */
const FOUND = [137_872_453];
const SEEDS = 20_000;
const STANDING_SEEDS = 2_000;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;

const alone = process.argv[2] === undefined ? undefined : Number(process.argv[2]);

/** Longer than tap's 30 s: the machine may be busy. */
t.setTimeout(240_000);

// covers S148
t.test('runtime: keeps every promise in simulated histories', async (t) => {
  const histories = alone === undefined ? [...FOUND, ...seeds(SEEDS)] : [alone];
  const options = alone === undefined ? {} : { trace: (line: string) => t.comment(line) };
  const startedMs = performance.now();
  for (const seed of histories) {
    const broken = await simulate(seed, options);
    if (broken !== undefined) {
      t.fail(`seed ${seed}: ${broken}; node build/test/actors/runtime/simulation.test.js ${seed}`);
      return;
    }
  }
  t.comment(`${Math.round((1000 * histories.length) / (performance.now() - startedMs))} seeds/s`);
  t.pass('no promise was broken');
});

// covers S162
t.test('runtime: keeps every promise while worker threads stand still', async (t) => {
  for (const seed of alone === undefined ? seeds(STANDING_SEEDS) : [alone])
    t.equal(await simulate(seed, { threads: 'standing' }), undefined, `seed ${seed}`);
});

if (alone === undefined) {
  // covers S162
  t.test('simulation: catches a pool that tells no caller that its task is late', (t) =>
    expectCaught(t, FAULT_SEEDS, (seed) => simulate(seed, { threads: 'silent' })),
  );
}

const without = (op: Operation['op']) => (group: readonly Operation[]) =>
  group.filter((operation) => operation.op !== op);

const FAULTS: Record<string, MemoryJournalOptions> = {
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

for (const [name, faults] of alone === undefined ? Object.entries(FAULTS) : []) {
  // covers S148
  t.test(`simulation: catches ${name}`, (t) =>
    expectCaught(t, FAULT_SEEDS, (seed) => simulate(seed, { faults })),
  );
}
