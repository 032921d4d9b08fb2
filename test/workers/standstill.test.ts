import { closeSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { BroadcastChannel } from 'node:worker_threads';
import t, { type Test } from 'tap';
import { outputOf } from '../../kit/run-sync.ts';
import { crc32 } from '../../src/workers/crc32.ts';
import { createWorkerPool, type WorkerPool } from '../../src/workers/pool.ts';
import type { TaskInput } from '../../src/workers/tasks.ts';

const DYING = new URL('./fixtures/dying-tasks.js', import.meta.url);
const TIMED_OUT = { ok: false, error: 'TaskTimedOut' } as const;
const FALSE = { ok: true, value: false } as const;

/** No valid signature: what the task file does follows from the message. */
function signed(text: string): TaskInput<'verifyEd25519'> {
  return { publicKey: Buffer.alloc(32), message: Buffer.from(text), signature: Buffer.alloc(64) };
}

interface Standstill extends WorkerPool {
  verify(text: string): ReturnType<typeof verifyBy>;
  /** One interval after the other; the threads have no time in between. */
  tick(intervals: number): void;
  /** The same, and a thread that lives shows it in each. */
  tickAlive(intervals: number): Promise<void>;
  /** Resolves when a thread stands still. */
  until(word: 'waiting'): Promise<void>;
  readonly faults: string[];
}

const verifyBy = (pool: WorkerPool, text: string) => pool.run('verifyEd25519', signed(text));

function makePool(t: Test, threads = 1): Standstill {
  const faults: string[] = [];
  const said: string[] = [];
  let heard: () => void = () => undefined;
  const channel = new BroadcastChannel('dying-tasks');
  channel.onmessage = (event) => {
    said.push(String((event as { data: unknown }).data));
    heard();
  };
  let tick: () => void = () => undefined;
  const pool = createWorkerPool({
    threads,
    queueMax: 100,
    taskFile: DYING,
    onFault: (message) => faults.push(message),
    interval(each) {
      tick = each;
      return { cancel: () => undefined };
    },
  });
  t.teardown(async () => {
    await pool.close();
    channel.close();
  });
  const verify = (text: string) => verifyBy(pool, text);
  return {
    ...pool,
    faults,
    verify,
    tick(intervals) {
      for (let count = 0; count < intervals; count += 1) tick();
    },
    async tickAlive(intervals) {
      for (let count = 0; count < intervals; count += 1) {
        await verify('alive');
        tick();
      }
    },
    async until(word) {
      while (said.shift() !== word)
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
    },
  };
}

t.test('pool: a verification that its thread does not finish in 5 s is TaskTimedOut', async (t) => {
  const pool = makePool(t);
  const never = pool.verify('never');
  await pool.tickAlive(5);
  t.match(pool.counters(), { pending: 1, timedOut: 0 });
  await pool.tickAlive(1);
  t.same(await never, TIMED_OUT);
  t.match(pool.counters(), { pending: 0, timedOut: 1, threadsReplaced: 0, failed: 0, stuck: 0 });
});

t.test('pool: while a thread loads a library its tasks are not late, for less than 60 s', async (t) => {
  const pool = makePool(t);
  await pool.verify('load');
  const first = pool.verify('never');
  pool.tick(20);
  await pool.verify('loaded');
  await pool.tickAlive(5);
  t.match(pool.counters(), { pending: 1, timedOut: 0, threadsReplaced: 0, stuck: 0 });
  await pool.tickAlive(1);
  t.same(await first, TIMED_OUT, 'its time begins with the loaded library');
  await pool.verify('load');
  const second = pool.verify('never');
  await pool.tickAlive(44);
  t.match(pool.counters(), { pending: 1, timedOut: 1 });
  await pool.tickAlive(1);
  t.same(await second, TIMED_OUT, 'a library that does not load ends nothing for ever');
});

// covers S162
t.test('pool: a thread that stands still is replaced after 5 s and its tasks run again', async (t) => {
  const pool = makePool(t);
  await pool.verify('alive');
  const first = pool.verify('wait');
  const behind = Array.from({ length: 40 }, () => pool.verify('behind'));
  await pool.until('waiting');
  pool.tick(5);
  t.match(pool.counters(), { threadsReplaced: 0, stuck: 1 });
  pool.tick(1);
  t.match(pool.counters(), { threadsReplaced: 1, pending: 41 });
  t.same(
    await Promise.all(behind),
    behind.map(() => FALSE),
  );
  // It runs alone and last, and stands still again.
  await pool.until('waiting');
  pool.tick(6);
  t.same(await first, TIMED_OUT);
  t.match(pool.counters(), { threadsReplaced: 2, threadsLost: 0, timedOut: 1, failed: 0, pending: 0 });
  t.match(pool.faults, [/^thread replaced with 32 tasks: no sign of life for 5 s$/, /with 1 tasks/]);
});

t.test('pool: while one thread stands still the other one serves', async (t) => {
  const pool = makePool(t, 2);
  for (const serving = new Set<unknown>(); serving.size < 2; ) {
    const answers = await Promise.all([1, 2].map(() => pool.verify('thread')));
    for (const answer of answers) serving.add(answer.ok && answer.value);
  }
  const stuck = pool.verify('wait');
  await pool.until('waiting');
  for (let count = 0; count < 5; count += 1) t.same(await pool.verify('beside'), FALSE);
  await pool.tickAlive(6);
  await pool.until('waiting');
  await pool.tickAlive(6);
  t.same(await stuck, TIMED_OUT);
  t.match(pool.counters(), { threadsReplaced: 2, timedOut: 1, failed: 0 });
});

/** Holds the threads that wait for it, as a system call does: they end once it is released. */
interface Hold {
  readonly folder: string;
  /** Resolves when one more thread is held. */
  taken(): Promise<unknown>;
  release(): void;
}

function makeHold(t: Test): Hold {
  const folder = t.testdir({});
  for (const name of ['taken', 'held']) outputOf('mkfifo', [join(folder, name)]);
  return {
    folder,
    taken: () => readFile(join(folder, 'taken')),
    release() {
      const fd = openSync(join(folder, 'held'), 'r+');
      writeSync(fd, '\n'.repeat(20));
      t.teardown(() => closeSync(fd));
    },
  };
}

/** The thread itself, or one of libuv that it waits for. */
function heldBy({ folder }: Hold, part: 'held' | 'held by libuv' = 'held'): TaskInput<'makePart'> {
  return { root: folder, owner: '7', part, modes: { folder: 0o700, file: 0o600 } };
}

// covers S162
t.test(
  'pool: a task that holds a file is late at a replacement, and settles when its thread ends',
  async (t) => {
    const pool = makePool(t);
    const hold = makeHold(t);
    const bytes = Buffer.from('twelve bytes');
    const path = join(t.testdirName, 'file');
    writeFileSync(path, bytes);
    const fd = openSync(path, 'r');
    const settled: string[] = [];
    let late = 0;
    const run = async (name: string, result: Promise<unknown>) => {
      const value = await result;
      settled.push(name);
      return value;
    };
    const onLate = () => {
      late += 1;
    };
    await pool.verify('alive');
    const make = run('make', pool.run('makePart', heldBy(hold), onLate));
    await hold.taken();
    const sharedBuffer = new SharedArrayBuffer(8);
    const write = run('write', pool.run('writeBuffer', { sharedBuffer, length: 8, fd, position: 0 }, onLate));
    const hash = run('hash', pool.run('hashRange', { fd, position: 0, length: bytes.length }));
    pool.tick(6);
    t.equal(late, 2);
    t.match(pool.counters(), { threadsReplaced: 1, timedOut: 3, stuck: 4 });
    t.same(await pool.verify('beside'), FALSE);
    t.same(settled, [], 'descriptor and buffer stay taken');
    hold.release();
    t.same(await make, TIMED_OUT);
    t.same(await write, TIMED_OUT);
    // Its caller was answered, so it does not run again.
    t.same(await hash, TIMED_OUT);
    t.match(pool.counters(), { timedOut: 3, stuck: 0, pending: 0 });
    closeSync(fd);
  },
);

// covers S162
t.test('pool: a sync of a replaced thread is not settled before libuv has ended it', async (t) => {
  const pool = makePool(t);
  const hold = makeHold(t);
  await pool.verify('alive');
  let settled = false;
  const make = pool.run('makePart', heldBy(hold, 'held by libuv')).finally(() => {
    settled = true;
  });
  await hold.taken();
  pool.tick(6);
  t.match(pool.counters(), { threadsReplaced: 1, stuck: 2 });
  for (let count = 0; count < 100; count += 1) await pool.verify('beside');
  t.equal(settled, false);
  hold.release();
  t.same(await make, TIMED_OUT);
  t.match(pool.counters(), { pending: 0 });
});

t.test('pool: eight replaced threads that have not ended are the most', async (t) => {
  const pool = makePool(t);
  const hold = makeHold(t);
  const held: Promise<unknown>[] = [];
  for (let count = 0; count < 9; count += 1) {
    await pool.verify('alive');
    held.push(pool.run('makePart', heldBy(hold)));
    await hold.taken();
    pool.tick(6);
  }
  t.match(pool.counters(), { threadsReplaced: 8, pending: 9 });
  const verified = pool.verify('behind');
  pool.tick(6);
  t.same(await verified, TIMED_OUT, 'no thread takes it, its caller has an answer');
  hold.release();
  await Promise.all(held);
  t.same(await pool.verify('after'), FALSE);
});

t.test(
  'pool: a publish has 60 s and one for each MiB, then its caller is late and it still settles',
  async (t) => {
    const pool = makePool(t);
    let late = 0;
    const sizeBytes = 2.5 * 1024 * 1024;
    const place = { root: '/nowhere', owner: '7', part: '1.part', file: '1' };
    const publish = pool.run('publishPart', { ...place, sizeBytes, partBytesMax: sizeBytes }, () => {
      late += 1;
    });
    await pool.tickAlive(63);
    t.equal(late, 0);
    await pool.tickAlive(2);
    t.equal(late, 1);
    t.match(pool.counters(), { timedOut: 1, stuck: 1, pending: 1 });
    await pool.verify('sync');
    t.same(await publish, { ok: true, value: { published: false, preview: undefined } });
    t.match(pool.counters(), { timedOut: 1, stuck: 0, pending: 0 });
  },
);

t.test('pool: a long read shows with each step that its thread lives', async (t) => {
  const pool = makePool(t);
  const path = `${t.testdir({})}/file`;
  const bytes = Buffer.alloc(32 * 1024 * 1024, 7);
  writeFileSync(path, bytes);
  const fd = openSync(path, 'r');
  await pool.verify('alive');
  const hash = pool.run('hashRange', { fd, position: 0, length: bytes.length });
  await pool.tickAlive(1);
  t.same(await hash, { ok: true, value: crc32(bytes) });
  t.equal(pool.counters().threadsReplaced, 0);
  closeSync(fd);
});
