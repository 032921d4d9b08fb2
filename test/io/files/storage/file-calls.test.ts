/** The bound on file system calls: which of them run, wait, are refused or late, and who is answered. */
import t from 'tap';
import type { GatewayError } from '../../../../src/domain/errors.ts';
import { FileCalls } from '../../../../src/io/files/storage/file-calls.ts';
import { rejectsWith } from '../../../support/rejections.ts';

/** Calls that settle when the test says so, under intervals that it counts. */
class HeldCalls {
  tick: (intervals: number) => void = () => undefined;
  readonly calls: FileCalls;
  /** In the order in which they began. */
  readonly begun: string[] = [];
  readonly #settle = new Map<string, (error?: Error) => void>();

  constructor() {
    this.calls = new FileCalls((each) => {
      this.tick = (intervals) => {
        for (let count = 0; count < intervals; count += 1) each();
      };
      return { cancel: () => undefined };
    });
  }

  readonly call = (name: string) => (): Promise<void> =>
    new Promise((resolve, reject) => {
      this.begun.push(name);
      this.#settle.set(name, (error) => (error === undefined ? resolve() : reject(error)));
    });

  /** `count` calls that hold a thread each. */
  hold(count: number, late?: () => void): Promise<void>[] {
    return Array.from({ length: count }, (_, at) => this.calls.run(this.call(`held ${at}`), late));
  }

  /** Resolves when all that waits for the call has been told. */
  async settle(name: string, error?: Error): Promise<void> {
    this.#settle.get(name)?.(error);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// covers S177
t.test('file calls: eight run at once, the others follow in their order', async (t) => {
  const held = new HeldCalls();
  const eight = held.hold(8);
  const more = ['a', 'b', 'c'].map((name) => held.calls.run(held.call(name)));
  const results = Promise.allSettled([...eight, ...more]);
  t.equal(held.begun.length, 8);
  t.match(held.calls.counters(), { running: 8, waiting: 3, stuck: 0, refused: 0 });
  await held.settle('held 3');
  await held.settle('held 0', new Error('planted'));
  t.same(held.begun.slice(8), ['a', 'b'], 'a call that fails frees its thread too');
  for (const name of held.begun.concat('c')) await held.settle(name);
  t.equal((await results).filter(({ status }) => status === 'fulfilled').length, 10);
  t.match(held.calls.counters(), { running: 0, waiting: 0 });
});

t.test('file calls: a call that throws before it begins frees its thread', async (t) => {
  const { calls } = new HeldCalls();
  const thrown = calls.run(() => {
    throw new RangeError('planted');
  });
  await t.rejects(thrown, { message: 'planted' });
  t.equal(calls.counters().running, 0);
});

t.test('file calls: six tasks sync at once, so that reads have two threads; none is overtaken', async (t) => {
  const held = new HeldCalls();
  const sync = (name: string) => held.calls.sync(held.call(name));
  const syncs = Array.from({ length: 9 }, (_, at) => sync(`sync ${at}`));
  const reads = ['read 0', 'read 1', 'read 2'].map((name) => held.calls.run(held.call(name)));
  t.same(held.begun.slice(6), ['read 0', 'read 1']);
  t.equal(held.calls.counters().waiting, 4);
  await held.settle('sync 0');
  t.equal(held.begun.at(-1), 'sync 6', 'it has waited longer than the read');
  await held.settle('read 0');
  t.equal(held.begun.at(-1), 'read 2');
  for (const name of held.begun) await held.settle(name);
  for (const name of ['sync 7', 'sync 8']) await held.settle(name);
  await Promise.all([...syncs, ...reads]);
});

// covers S177
t.test('file calls: when all eight stand still, those that wait and others are TaskTimedOut', async (t) => {
  const held = new HeldCalls();
  const all = held.hold(8);
  const behind = rejectsWith(t, held.calls.run(held.call('behind')), 'TaskTimedOut');
  held.tick(5);
  t.match(held.calls.counters(), { waiting: 1, stuck: 0 });
  t.notOk(held.calls.standStill);
  held.tick(1);
  await behind;
  t.ok(held.calls.standStill);
  await rejectsWith(t, held.calls.run(held.call('after')), 'TaskTimedOut');
  await rejectsWith(t, held.calls.sync(held.call('sync')), 'TaskTimedOut');
  t.match(held.calls.counters(), { running: 8, waiting: 0, stuck: 8, refused: 3 });
  await held.settle('held 5');
  t.match(held.calls.counters(), { running: 7, stuck: 7 });
  const next = held.calls.run(held.call('next'));
  await held.settle('next');
  await next;
  t.same(held.begun.slice(8), ['next'], 'what was refused never begins');
  for (const name of held.begun) await held.settle(name);
  await Promise.all(all);
  t.match(held.calls.counters(), { running: 0, stuck: 0 });
});

t.test('file calls: while one of eight does not stand still, others wait for it, 60 s at most', async (t) => {
  const held = new HeldCalls();
  void Promise.all(held.hold(7));
  held.tick(6);
  const closes = Array.from({ length: 20 }, (_, at) => held.calls.free(held.call(`close ${at}`)));
  const behind = rejectsWith(t, held.calls.run(held.call('behind')), 'TaskTimedOut');
  for (let at = 0; at < 15; at += 1) {
    held.tick(4);
    t.match(held.calls.counters(), { stuck: 7, refused: 0 });
    await held.settle(`close ${at}`);
  }
  held.tick(1);
  await behind;
  for (let at = 15; at < 20; at += 1) await held.settle(`close ${at}`);
  await Promise.all(closes);
  t.match(held.calls.counters(), { running: 7, waiting: 0, refused: 1 });
});

t.test('file calls: a caller is answered after 60 s; what came later is given back', async (t) => {
  const held = new HeldCalls();
  const abandoned: string[] = [];
  const opening = held.calls.answer(
    async (late) => {
      await held.calls.run(held.call('open'), late);
      await held.calls.run(held.call('stat'), late);
      return 'descriptor';
    },
    (value) => abandoned.push(value),
  );
  const answered = rejectsWith(t, opening, 'TaskTimedOut');
  held.tick(60);
  t.equal(held.calls.counters().timedOut, 0);
  held.tick(2);
  await answered;
  t.match(held.calls.counters(), { running: 1, stuck: 1, timedOut: 1 });
  await held.settle('open');
  await held.settle('stat');
  t.same(abandoned, ['descriptor']);
  t.match(held.calls.counters(), { running: 0, stuck: 0, timedOut: 1 });
});

t.test('file calls: a late failure of an answered call reaches no caller', async (t) => {
  const held = new HeldCalls();
  const answered = held.calls.answer((late) => held.calls.run(held.call('open'), late));
  const refused = rejectsWith(t, answered, 'TaskTimedOut');
  held.tick(61);
  await refused;
  await held.settle('open', new Error('planted'));
  t.equal(held.calls.counters().running, 0);
});

t.test('file calls: a close is never refused, it waits for a thread; its caller is late', async (t) => {
  const held = new HeldCalls();
  void Promise.all(held.hold(8));
  held.tick(6);
  let late = 0;
  const close = held.calls.free(held.call('close'), () => {
    late += 1;
  });
  held.tick(60);
  t.equal(late, 0);
  held.tick(2);
  t.equal(late, 1);
  t.equal(held.begun.includes('close'), false);
  await held.settle('held 0');
  held.tick(61);
  t.equal(late, 1, 'once');
  await held.settle('close');
  await close;
});

t.test('file calls: a task that syncs is late when its pool says so, not by the clock', async (t) => {
  const held = new HeldCalls();
  let makeLate: () => void = () => undefined;
  let late = 0;
  const publish = held.calls.sync(
    (isLate) => {
      makeLate = isLate;
      return held.call('publish')();
    },
    () => {
      late += 1;
    },
  );
  held.tick(100);
  t.match(held.calls.counters(), { stuck: 0, timedOut: 0 });
  makeLate();
  makeLate();
  t.equal(late, 1);
  t.match(held.calls.counters(), { running: 1, stuck: 1, timedOut: 1 });
  await held.settle('publish');
  await publish;
  t.match(held.calls.counters(), { running: 0, stuck: 0 });
});

// covers S162 S177
t.test('file calls: six syncs that stand still refuse a seventh; reads have their threads', async (t) => {
  const held = new HeldCalls();
  const late: (() => void)[] = [];
  for (let at = 0; at < 6; at += 1)
    void held.calls.sync((isLate) => {
      late.push(isLate);
      return held.call(`sync ${at}`)();
    });
  const behind = rejectsWith(t, held.calls.sync(held.call('behind')), 'TaskTimedOut');
  for (const isLate of late) isLate();
  held.tick(1);
  await behind;
  await rejectsWith(t, held.calls.sync(held.call('seventh')), 'TaskTimedOut');
  const read = held.calls.run(held.call('read'));
  await held.settle('read');
  await read;
  t.match(held.calls.counters(), { running: 6, stuck: 6, refused: 2 });
});

t.test('file calls: of ten thousand that wait one more is Overloaded', async (t) => {
  const held = new HeldCalls();
  void Promise.all(held.hold(8));
  const waiting = Array.from({ length: 10_000 }, () => held.calls.run(held.call('waiting')));
  await rejectsWith(t, held.calls.run(held.call('more')), 'Overloaded');
  const ends = Promise.allSettled(waiting);
  held.tick(6);
  const rows = (await ends).map((end) => end.status === 'rejected' && (end.reason as GatewayError).row);
  t.ok(rows.every((row) => row === 'TaskTimedOut'));
  t.match(held.calls.counters(), { waiting: 0, refused: 10_001 });
});
