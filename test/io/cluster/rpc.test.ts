import t from 'tap';
import { ownerUnavailable } from '../../../src/actors/routed-system.ts';
import { NotOwner } from '../../../src/actors/runtime/not-owner.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { FRAME_BYTES_MAX } from '../../../src/io/cluster/frames.ts';
import { CALL_MS, CALLS_MAX, type Verbs } from '../../../src/io/cluster/rpc.ts';
import { join, startNode, type TestNode } from '../../support/cluster/node.ts';
import { startProxy } from '../../support/cluster/wire.ts';

interface Teardown {
  teardown(handler: () => unknown): void;
}

/** Node 1, which calls, and node 2, which answers by these verbs. */
async function openPair(t: Teardown, verbs: Verbs): Promise<readonly [TestNode, TestNode]> {
  const [caller, answerer] = [await startNode(t, { node: 1 }), await startNode(t, { node: 2, verbs })];
  await join(caller, answerer);
  return [caller, answerer];
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const unavailable = ownerUnavailable();

t.test('calls: a value comes back with the position of the node that gave it', async (t) => {
  const [{ links }] = await openPair(t, {
    add: (a, b) => Number(a) + Number(b),
    later: async (value) => value,
    nothing: () => undefined,
  });
  t.same(await links.call(2, 'add', 1, 2), { position: 1_002, value: 3 });
  t.same(await links.call(2, 'later', { a: [undefined] }), { position: 1_002, value: { a: [undefined] } });
  t.same(await links.call(2, 'nothing'), { position: 1_002, value: undefined });
});

t.test('calls: a row of the error table travels with everything that it has', async (t) => {
  const error = new GatewayError('AccessRateLimit', 'too many', 17, 's');
  const [{ links }, { bugs }] = await openPair(t, {
    thrown() {
      throw error;
    },
    rejected: () => Promise.reject(new GatewayError('KeyNotFound')),
    moved: () => Promise.reject(new NotOwner()),
  });
  const { error: thrown } = (await links.call(2, 'thrown')) as unknown as { error: GatewayError };
  t.ok(thrown instanceof GatewayError);
  t.match(thrown, { row: 'AccessRateLimit', detail: 'too many', retryAfterSeconds: 17, scope: 's' });
  t.match(await links.call(2, 'rejected'), {
    position: 1_002,
    error: { row: 'KeyNotFound', detail: undefined },
  });
  const moved = (await links.call(2, 'moved')) as unknown as { error: Error };
  t.ok(moved.error instanceof NotOwner);
  t.same(bugs, []);
});

t.test('calls: a bug of the other node is an internal error here and reported there', async (t) => {
  const bug = new TypeError('planted');
  const [{ links }, { bugs }] = await openPair(t, {
    bug() {
      throw bug;
    },
    huge: () => Buffer.alloc(FRAME_BYTES_MAX),
  });
  t.match(await links.call(2, 'bug'), { error: { row: 'InternalError', message: 'Internal error' } });
  t.match(await links.call(2, 'huge'), { error: { row: 'InternalError' } });
  t.match(await links.call(2, 'unknown'), { error: { row: 'InternalError' } });
  t.match(await links.call(2, 'toString'), { error: { row: 'InternalError' } }, 'no name of a prototype');
  t.equal(bugs.length, 2);
  t.equal(bugs[0], bug);
});

t.test('calls: without a link one fails at once with 503 and a second to wait', async (t) => {
  const { links } = await startNode(t, { node: 1 });
  await t.rejects(links.call(2, 'any'), unavailable);
  t.equal(links.counts.calls.unreachable, 1);
});

t.test('calls: those under way fail at once when their link is lost', async (t) => {
  const answerer = await startNode(t, { node: 2, verbs: { never: () => new Promise(() => {}) } });
  const proxy = await startProxy(t, answerer.address);
  const { links, until } = await startNode(t, { node: 1 });
  links.follow(new Map([[2, proxy.address]]));
  await until(() => links.linked.outgoing.length === 1);
  const calls = Array.from({ length: 10 }, () => links.call(2, 'never'));
  const settled = Promise.allSettled(calls);
  proxy.cut();
  for (const result of await settled)
    t.match(result, { status: 'rejected', reason: { row: 'Overloaded', retryAfterSeconds: 1 } });
  t.equal(links.counts.calls.lost, 10);
});

t.test(
  'calls: one without an answer ends within five seconds, and a late answer changes nothing',
  async (t) => {
    let answer = (_value: unknown) => {};
    const [caller] = await openPair(t, {
      slow: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
      echo: (value) => value,
    });
    /** With traffic, so that the link is not taken for lost. */
    const passSeconds = async (seconds: number) => {
      for (let second = 0; second < seconds; second += 1) {
        caller.pass(1_000);
        t.match(await caller.links.call(2, 'echo', second), { value: second });
      }
    };
    const slow = caller.links.call(2, 'slow');
    const ended = t.rejects(slow, unavailable);
    await passSeconds(2);
    const first = answer;
    const younger = caller.links.call(2, 'slow');
    await passSeconds(CALL_MS / 1_000 - 2);
    await ended;
    t.equal(caller.links.counts.calls.timedOut, 1);
    first('late');
    await passSeconds(1);
    answer('in time');
    t.match(await younger, { value: 'in time' });
  },
);

t.test(
  'calls: a test of a webhook may wait for two deliveries, and delays no call that is over before',
  async (t) => {
    const never = () => new Promise(() => {});
    const [caller] = await openPair(t, { webhookPing: never, never, echo: (value) => value });
    const ended: string[] = [];
    const call = (verb: string) =>
      caller.links.call(2, verb).catch(() => {
        ended.push(verb);
      });
    const calls = [call('webhookPing'), call('never')];
    for (let second = 1; second <= 12; second += 1) {
      caller.pass(1_000);
      t.match(await caller.links.call(2, 'echo', second), { value: second });
      t.same(
        ended,
        second < 5 ? [] : second < 12 ? ['never'] : ['never', 'webhookPing'],
        `after ${second} s`,
      );
    }
    await Promise.all(calls);
  },
);

t.test('calls: one of many that stands still delays no other', async (t) => {
  const [{ links }] = await openPair(t, { never: () => new Promise(() => {}), echo: (value) => value });
  void links.call(2, 'never').catch(() => undefined);
  const replies = await Promise.all(Array.from({ length: 200 }, (_, index) => links.call(2, 'echo', index)));
  t.same(
    replies,
    Array.from({ length: 200 }, (_, value) => ({ position: 1_002, value })),
  );
});

t.test('calls: at 20,000 without an answer another one is refused with 503 and not sent', async (t) => {
  let begun = 0;
  const [caller, answerer] = await openPair(t, {
    never: () => {
      begun += 1;
      return new Promise(() => {});
    },
  });
  const calls = [];
  while (calls.length < CALLS_MAX) {
    for (let count = 0; count < 2_000; count += 1) calls.push(caller.links.call(2, 'never'));
    while (begun < calls.length) await turn();
  }
  const settled = Promise.allSettled(calls);
  await t.rejects(caller.links.call(2, 'never'), unavailable);
  t.equal(caller.links.counts.calls.full, 1);
  t.equal(begun, CALLS_MAX);
  await answerer.links.close();
  await settled;
});

t.test('calls: when the link is full they are refused and other nodes are still reached', async (t) => {
  const [caller, full] = await openPair(t, { never: () => new Promise(() => {}) });
  const other = await startNode(t, { node: 3, verbs: { echo: (value) => value } });
  caller.links.follow(
    new Map([
      [2, full.address],
      [3, other.address],
    ]),
  );
  await caller.until(() => caller.links.linked.outgoing.length === 2);
  const large = Buffer.alloc(15 * 1024 * 1024);
  const calls = Array.from({ length: 6 }, () => caller.links.call(2, 'never', large));
  const settled = Promise.allSettled(calls);
  t.equal(caller.links.counts.calls.full, 2);
  t.match(await caller.links.call(3, 'echo', 1), { value: 1 });
  await full.links.close();
  t.equal((await settled).filter(({ status }) => status === 'rejected').length, 6);
});
