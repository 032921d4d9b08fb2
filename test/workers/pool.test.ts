import { generateKeyPairSync, sign } from 'node:crypto';
import t from 'tap';
import type { WorkerPort } from '../../src/actors/runtime/ports.ts';
import { createWorkerPool, type WorkerPoolOptions } from '../../src/workers/pool.ts';
import type { TaskInput } from '../../src/workers/tasks.ts';

const DYING = new URL('./fixtures/dying-tasks.js', import.meta.url);
const TRUE = { ok: true, value: true } as const;
const INTERNAL_ERROR = { ok: false, error: 'InternalError' } as const;
const pair = generateKeyPairSync('ed25519', {
  publicKeyEncoding: { format: 'der', type: 'spki' },
  privateKeyEncoding: { format: 'der', type: 'pkcs8' },
});

function signed(text: string): TaskInput<'verifyEd25519'> {
  const message = Buffer.from(text);
  return {
    publicKey: pair.publicKey.subarray(-32),
    message,
    signature: sign(null, message, { key: pair.privateKey, format: 'der', type: 'pkcs8' }),
  };
}

function makePool(t: { teardown(fn: () => Promise<void>): void }, options: Partial<WorkerPoolOptions> = {}) {
  const faults: string[] = [];
  const pool = createWorkerPool({
    threads: 1,
    queueMax: 1_000,
    onFault: (message) => faults.push(message),
    // Standing threads have tests of their own (standstill.test.ts); a busy machine is none.
    interval: () => ({ cancel: () => undefined }),
    ...options,
  });
  t.teardown(() => pool.close());
  return { ...pool, faults, verify: (text: string) => pool.run('verifyEd25519', signed(text)) };
}

t.test('pool: is a WorkerPort, verifies and checks keys on its threads', async (t) => {
  const pool = makePool(t);
  const port: WorkerPort = pool;
  t.same(await port.run('verifyEd25519', signed('hello')), TRUE);
  t.same(await port.run('verifyEd25519', { ...signed('hello'), message: Buffer.from('hallo') }), {
    ok: true,
    value: false,
  });
  t.same(await port.run('verifyEd25519', { ...signed('hello'), publicKey: Buffer.alloc(31) }), {
    ok: true,
    value: false,
  });
  t.same(await port.run('checkEd25519Key', { publicKey: pair.publicKey.subarray(-32) }), {
    ok: true,
    value: true,
  });
  t.same(await port.run('checkEd25519Key', { publicKey: Buffer.alloc(32) }), { ok: true, value: false });
  t.match(pool.counters(), { completed: 5, failed: 0, overloaded: 0, pending: 0, threadsLost: 0 });
});

t.test('pool: takes a copy of the bytes, so the caller may reuse its buffer', async (t) => {
  const pool = makePool(t);
  const input = signed('reuse');
  const running = pool.run('verifyEd25519', input);
  input.message.fill(0);
  input.signature.fill(0);
  t.same(await running, TRUE);
});

t.test('pool: tasks that arrive together each have their own result, on both threads', async (t) => {
  const pool = makePool(t, { threads: 2 });
  const inputs = Array.from({ length: 200 }, (_, index) => ({
    ...signed(`m${index}`),
    wrong: index % 3 === 0,
  }));
  const results = await Promise.all(
    inputs.map((input) =>
      pool.run('verifyEd25519', input.wrong ? { ...input, message: Buffer.from('other') } : input),
    ),
  );
  t.same(
    results,
    inputs.map(({ wrong }) => ({ ok: true, value: !wrong })),
  );
  t.equal(pool.counters().completed, 200);
});

// covers S160
t.test(
  'pool: a full queue refuses with Overloaded, counts it, and takes tasks again when it has emptied',
  async (t) => {
    const pool = makePool(t, { queueMax: 10 });
    const results = await Promise.all(Array.from({ length: 25 }, () => pool.verify('queue')));
    t.equal(results.filter((result) => result.ok && result.value).length, 10);
    t.equal(results.filter((result) => !result.ok && result.error === 'Overloaded').length, 15);
    t.match(pool.counters(), { overloaded: 15, completed: 10, pending: 0 });
    t.same(await pool.verify('again'), TRUE);
  },
);

for (const death of ['exit', 'uncaught']) {
  t.test(
    `pool: a task whose thread dies (${death}) runs once more and fails then, the pool continues`,
    async (t) => {
      const pool = makePool(t, { taskFile: DYING });
      t.same(await pool.verify('before'), TRUE);
      t.same(await pool.verify(death), INTERNAL_ERROR);
      for (let count = 0; count < 5; count += 1) {
        t.same(await pool.verify(`after ${count}`), TRUE);
      }
      t.match(pool.counters(), { failed: 1, completed: 6, threadsLost: 2, pending: 0 });
      t.equal(pool.faults.length, 2, 'both deaths were reported');
    },
  );
}

// covers S160
t.test('pool: deaths under load fail the tasks alone that cause them', async (t) => {
  const pool = makePool(t, { threads: 2, taskFile: DYING });
  const results = await Promise.all(
    Array.from({ length: 300 }, (_, index) => pool.verify(index % 100 === 50 ? 'exit' : `load ${index}`)),
  );
  t.same(
    results,
    results.map((_, index) => (index % 100 === 50 ? INTERNAL_ERROR : TRUE)),
  );
  t.same(await pool.verify('after'), TRUE);
});

t.test(
  'pool: of the 32 tasks of a dead thread the one that killed it fails; its successor runs the others',
  async (t) => {
    const pool = makePool(t, { taskFile: DYING });
    t.same(await pool.verify('before'), TRUE);
    const results = await Promise.all(
      Array.from({ length: 100 }, (_, index) => pool.verify(index === 0 ? 'exit' : 'load')),
    );
    t.same(
      results,
      results.map((_, index) => (index === 0 ? INTERNAL_ERROR : TRUE)),
    );
    t.match(pool.counters(), { failed: 1, completed: 100, overloaded: 0, threadsLost: 2, pending: 0 });
    t.match(pool.faults, [/^thread died with 32 tasks: /, /^thread died with 1 tasks: /]);
  },
);

t.test('pool: tasks of a thread that died free their places in the queue', async (t) => {
  const pool = makePool(t, { taskFile: DYING, queueMax: 40 });
  t.same(await pool.verify('before'), TRUE);
  const taken = Array.from({ length: 40 }, (_, index) => pool.verify(index === 0 ? 'exit' : 'load'));
  t.same(await pool.verify('refused'), { ok: false, error: 'Overloaded' });
  t.equal(pool.counters().pending, 40);
  t.equal((await Promise.all(taken)).filter(({ ok }) => ok).length, 39);
  const again = Array.from({ length: 40 }, () => pool.verify('again'));
  t.ok((await Promise.all(again)).every((result) => result.ok && result.value));
  t.match(pool.counters(), { overloaded: 1, failed: 1, pending: 0 });
});

t.test('pool: a task that fills the heap of 256 MB ends its thread, the next task is served', async (t) => {
  const pool = makePool(t, { taskFile: DYING });
  t.same(await pool.verify('heap'), { ok: true, value: 256 });
  t.same(await pool.verify('fill'), INTERNAL_ERROR);
  t.same(await pool.verify('after'), TRUE);
  t.equal(pool.counters().threadsLost, 2);
});

t.test('pool: an asynchronous task does not delay the tasks behind it', async (t) => {
  const pool = makePool(t, { taskFile: DYING });
  const late = pool.verify('late');
  t.same(await pool.verify('behind'), TRUE);
  t.equal(pool.counters().pending, 1);
  t.same(await pool.verify('answer late'), TRUE);
  t.same(await late, { ok: true, value: 'late' });
});

t.test('pool: writes and makes do not wait for publishes that sync', async (t) => {
  const pool = makePool(t, { taskFile: DYING });
  const place = { root: '/nowhere', owner: '7', part: '1.part' };
  const publish = { ...place, file: '1', sizeBytes: 0, partBytesMax: 0 };
  const publishes = Array.from({ length: 6 }, () => pool.run('publishPart', publish));
  t.same(await pool.verify('syncing'), { ok: true, value: 6 });
  const made = await pool.run('makePart', { ...place, modes: { folder: 0o700, file: 0o600 } });
  t.match(made, { ok: true, value: { code: 'ENOENT' } });
  await pool.verify('sync');
  t.same(
    await Promise.all(publishes),
    publishes.map(() => ({ ok: true, value: { published: false, preview: undefined } })),
  );
  t.match(pool.counters(), { completed: 9, failed: 0, pending: 0 });
});

t.test('pool: input that cannot be cloned answers InternalError and keeps its thread', async (t) => {
  const pool = makePool(t);
  const sharedBuffer = new SharedArrayBuffer(8);
  const task = { sharedBuffer, length: 8, fd: 0, position: 0, extra: () => 0 };
  t.same(await pool.run('writeBuffer', task), INTERNAL_ERROR);
  t.same(await pool.verify('after'), TRUE);
  t.match(pool.counters(), { failed: 1, completed: 1, threadsLost: 0, pending: 0 });
  t.match(pool.faults, [/^writeBuffer: /]);
});

t.test('pool: a task that throws answers InternalError and keeps its thread', async (t) => {
  const pool = makePool(t, { taskFile: DYING });
  t.same(await pool.verify('throw'), INTERNAL_ERROR);
  t.same(await pool.verify('after'), TRUE);
  t.match(pool.counters(), { failed: 1, completed: 1, threadsLost: 0 });
  t.same(pool.faults, ['verifyEd25519: planted']);
});

for (const name of ['broken', 'leaving']) {
  t.test(`pool: threads that die while they start (${name}) fail the tasks, nothing hangs`, async (t) => {
    const pool = makePool(t, { taskFile: new URL(`./fixtures/${name}-tasks.js`, import.meta.url) });
    for (let count = 0; count < 3; count += 1) {
      t.same(await pool.verify('lost'), INTERNAL_ERROR);
    }
    t.match(pool.counters(), { failed: 3, completed: 0, pending: 0 });
  });
}

t.test('pool: close finishes accepted tasks and refuses the rest with Stopping', async (t) => {
  const pool = makePool(t);
  const taken = Array.from({ length: 60 }, () => pool.verify('taken'));
  const closed = pool.close();
  t.same(await pool.verify('late'), { ok: false, error: 'Stopping' });
  await closed;
  t.ok((await Promise.all(taken)).every((result) => result.ok && result.value));
  t.equal(pool.counters().pending, 0);
  await pool.close();
});

t.test('pool: close waits for the tasks of a thread that dies, and of its successor', async (t) => {
  const pool = makePool(t, { taskFile: DYING });
  t.same(await pool.verify('before'), TRUE);
  const taken = Array.from({ length: 50 }, (_, index) => pool.verify(index === 0 ? 'exit' : 'load'));
  await pool.close();
  t.equal((await Promise.all(taken)).filter(({ ok }) => ok).length, 49);
  t.equal(pool.counters().pending, 0);
});

t.test('pool: refuses useless options', async (t) => {
  for (const options of [
    { threads: 0, queueMax: 1 },
    { threads: 1.5, queueMax: 1 },
    { threads: 1, queueMax: 0 },
    { threads: 1, queueMax: Number.NaN },
  ]) {
    t.throws(() => createWorkerPool(options), RangeError);
  }
});
