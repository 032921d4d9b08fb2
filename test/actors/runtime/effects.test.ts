/** Effects that a turn leaves to its group, as data. */
import t, { type Test } from 'tap';
import { MemoryJournal } from '../../../kit/journal/memory.ts';
import { type AnyKind, defineActor } from '../../../src/actors/runtime/actor.ts';
import { messageTo, type Protocol, receiver } from '../../../src/actors/runtime/protocol.ts';
import { DEFAULT_LIMITS } from '../../../src/actors/runtime/runtime-context.ts';
import type { BugReport } from '../../../src/actors/runtime/supervision.ts';
import { compose } from '../../../src/actors/runtime/wiring.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { ManualClock, seededBytes } from '../../support/actors/actors.ts';

interface Work {
  readonly type: 'work';
}
const TARGET = receiver<Work>('worker');
const DUE_MS = 5;

/** The runtime over a journal in memory that writes when the test says so. */
function setUp(t: Test, kind: AnyKind) {
  const clock = new ManualClock();
  const immediates: (() => void)[] = [];
  const journal = new MemoryJournal();
  const options = {
    kinds: [kind],
    journal,
    ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) as const } },
    settings: new LiveSettings(),
    clock: clock.read,
    randomBytes: seededBytes(1),
    schedule: { immediate: (run: () => void) => immediates.push(run), timer: clock.timer },
    onFatal: (error: Error) => t.fail(error.message),
    onBug: ({ error }: BugReport) => t.fail(String(error)),
  };
  return { journal, immediates, ...compose(options, DEFAULT_LIMITS) };
}

t.test(
  'effects: a turn leaves messages, timers, notifications and calls to its group, in that order',
  (t) => {
    const performed: string[] = [];
    const kind = defineActor<null, Protocol<Work, { readonly work: null }>, 'worked'>({
      kind: TARGET,
      version: 1,
      limits: { mailbox: 1, snapshotEvery: 10, idleMs: 1_000 },
      initial: () => null,
      decide: {
        work: (_state, command) => ({
          events: ['worked'],
          send: [messageTo(TARGET, 'other', command)],
          timers: [{ name: 'again', dueMs: DUE_MS, command }],
          notify: () => performed.push('notify'),
          next: () => {
            performed.push('call');
            return new Promise(() => undefined);
          },
        }),
      },
      evolve: (state) => state,
    });
    const { journal, immediates, commit, passivation, turns } = setUp(t, kind);
    const cell = passivation.acquire('worker', 'one');
    turns.run(cell, { type: 'work' }, { commandId: 'c', waiter: undefined, entry: undefined });
    t.match(commit.open.effects, [
      { type: 'message', row: { toKind: 'worker', toId: 'other', command: { type: 'work' } } },
      { type: 'timer', dueMs: DUE_MS },
      { type: 'notify', cell: { id: 'one' } },
      { type: 'call', cell: { id: 'one' }, chain: { commandId: 'c' } },
    ]);
    t.strictSame(performed, [], 'nothing happens before the commit');
    for (const run of immediates.splice(0)) run();
    t.strictSame(performed, [], 'nor while it is written');
    journal.flush();
    t.strictSame(performed, ['notify', 'call']);
    t.end();
  },
);
