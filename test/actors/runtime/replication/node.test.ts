/** A node over the log in memory: membership, leases, gates, lost answers, and each failure that a cluster meets. */
import t from 'tap';
import type { MemoryCall } from '../../../../kit/journal/memory-log.ts';
import { Diverged, LogLost, NameTaken } from '../../../../src/actors/runtime/replication/port.ts';
import { KeepingSink, LEASE_MS, TestCluster, type TestNode } from '../../../support/actors/log-nodes.ts';

const bytes = (text: string) => Buffer.from(text);
const append = ({ node }: TestNode, text: string) => node.append(node.nextSeq(), bytes(text));

/** Appends once, and waits for it. */
async function appended(cluster: TestCluster, node: TestNode, text: string): Promise<number> {
  const position = append(node, text);
  await cluster.rest();
  return position;
}

function gateOf({ node }: TestNode, position: number): { isOpen: boolean } {
  const gate = { isOpen: false };
  node.reached(position, () => {
    gate.isOpen = true;
  });
  return gate;
}

const of = (node: TestNode) => (call: MemoryCall) => call.client === node.client;
const methodOf = (node: TestNode, method: MemoryCall['method']) => (call: MemoryCall) =>
  call.client === node.client && call.method === method;
const membersOf = ({ sink }: TestNode) => [...sink.members.nodes()].sort((a, b) => a - b);

t.test('node: admits once its own join is applied and its lease runs', async (t) => {
  const cluster = new TestCluster();
  const a = cluster.add('a');
  cluster.holds = methodOf(a, 'renew');
  const started = a.node.start();
  await cluster.rest();
  t.same(membersOf(a), [1]);
  t.equal(a.node.admits, false, 'no renewal is answered');
  cluster.holds = () => false;
  await cluster.rest();
  await started;
  t.equal(a.node.admits, true);
  t.same(membersOf(a), [1]);
});

t.test('node: a push that leaves a gap fetches the rows before it', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.processOf(b).isUnlinked = true;
  await appended(cluster, a, 'unseen');
  cluster.processOf(b).isUnlinked = false;
  t.same(b.sink.texts, []);
  await appended(cluster, a, 'seen');
  t.same(b.sink.texts, ['unseen', 'seen']);
});

t.test('node: with cut links, rows arrive by polling and gates open by renewals', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.processOf(b).isUnlinked = true;
  const position = await appended(cluster, a, 'row');
  const gate = gateOf(a, position);
  await cluster.pass(100);
  t.same(b.sink.texts, ['row']);
  await cluster.pass(2 * (LEASE_MS / 5));
  t.equal(gate.isOpen, true);
  t.ok(a.node.admits && b.node.admits);
});

t.test(
  'node: one that receives rows of all members looks for none, until one of them is silent',
  async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    await cluster.pass(LEASE_MS);
    const fetched: string[] = [];
    cluster.holds = (call) => {
      if (call.method === 'fetch') fetched.push(call.client === a.client ? 'a' : 'b');
      return false;
    };
    await cluster.pass(LEASE_MS);
    t.same(fetched, []);
    cluster.processOf(b).isUnlinked = true;
    await cluster.pass(150);
    t.same([...new Set(fetched)].sort(), ['a', 'b']);
  },
);

t.test('node: a push that is lost on an open link arrives after the next renewal', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.losesFrames = true;
  await appended(cluster, a, 'row');
  t.same(b.sink.texts, []);
  await cluster.pass(2 * (LEASE_MS / 5));
  t.same(b.sink.texts, ['row']);
});

t.test(
  'node: one that has entered has its number, and owns and admits nothing before it joins',
  async (t) => {
    const cluster = new TestCluster();
    const [a] = await cluster.start('a');
    const b = cluster.add('b');
    const entered = b.node.enter();
    await cluster.rest();
    await entered;
    await cluster.pass(LEASE_MS);
    t.equal(b.node.node, 2);
    t.same([membersOf(a), membersOf(b), b.node.admits], [[1], [1], false]);
    const started = b.node.start();
    await cluster.rest();
    await started;
    t.same([membersOf(a), membersOf(b), b.node.admits], [[1, 2], [1, 2], true]);
  },
);

t.test('node: a gate waits for a member that has not applied the position', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  b.sink.isHeld = true;
  const gate = gateOf(a, await appended(cluster, a, 'row'));
  await cluster.pass(200);
  t.equal(gate.isOpen, false);
  t.equal(a.node.gated, 1);
  b.sink.release();
  await cluster.rest();
  t.equal(gate.isOpen, true);
});

t.test('node: one that is killed is expelled after a lease, and gates wait for no longer', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.crash(cluster.processOf(b));
  const gate = gateOf(a, await appended(cluster, a, 'row'));
  await cluster.pass(LEASE_MS * 0.8);
  t.same(membersOf(a), [1, 2]);
  t.equal(gate.isOpen, false);
  await cluster.pass(LEASE_MS * 0.6);
  t.same(membersOf(a), [1]);
  t.equal(gate.isOpen, true);
  t.equal(a.node.counts.expelled, 1);
});

t.test('node: one that was paused is expelled, admits nothing when it wakes, and comes back', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.pause(cluster.processOf(b));
  await cluster.pass(LEASE_MS * 1.5);
  t.same(membersOf(a), [1]);
  t.equal(b.node.admits, false);
  cluster.resume(cluster.processOf(b));
  await cluster.pass(LEASE_MS / 2);
  t.equal(b.node.admits, true);
  t.same(membersOf(a), [1, 2]);
  t.same(b.sink.rows, a.sink.rows);
  t.same(b.fatal, []);
});

t.test(
  'node: the write of a paused node is refused after its expulsion, and written when it is back',
  async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    cluster.pause(cluster.processOf(b));
    cluster.holds = methodOf(b, 'append');
    const late = append(b, 'late');
    await cluster.pass(LEASE_MS * 1.5);
    cluster.holds = () => false;
    cluster.resume(cluster.processOf(b));
    await cluster.pass(LEASE_MS / 2);
    const position = await late;
    t.same(a.sink.texts, ['late']);
    const row = a.sink.rows.find((each) => each.position === position);
    t.ok(a.sink.members.isMember(2, row?.incarnation ?? 0), 'with an incarnation that is in');
  },
);

t.test(
  'node: its lease is over before another node can expel it, however long the answers take',
  async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    const seen: boolean[] = [];
    a.node.reached(Number.MAX_SAFE_INTEGER, () => {});
    // The last answer that b gets is late by half a lease.
    cluster.holds = (call) => methodOf(b, 'renew')(call) && call.executed;
    await cluster.pass(LEASE_MS / 2);
    cluster.holds = of(b);
    const [renewal] = cluster.log.calls.filter(methodOf(b, 'renew'));
    if (renewal !== undefined) cluster.log.step(renewal);
    for (let step = 0; step < 30; step += 1) {
      await cluster.pass(50);
      if (!membersOf(a).includes(2)) seen.push(b.node.admits);
    }
    t.ok(seen.length > 0, 'b was expelled');
    t.notOk(seen.includes(true), 'b admitted after its expulsion');
  },
);

t.test(
  'node: a database that is away for one node ends its lease; it is expelled and joins again',
  async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    cluster.holds = of(b);
    await cluster.pass(LEASE_MS * 0.7);
    t.equal(b.node.admits, true, 'the lease still runs');
    await cluster.pass(LEASE_MS * 0.9);
    t.equal(b.node.admits, false);
    t.same(membersOf(a), [1]);
    for (const call of cluster.log.calls.filter(of(b))) cluster.log.drop(call);
    cluster.holds = () => false;
    await cluster.pass(LEASE_MS);
    t.equal(b.node.admits, true);
    t.same(membersOf(a), [1, 2]);
  },
);

t.test(
  'node: a database that is away for all stops admission, expels no node and loses no write',
  async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    cluster.holds = () => true;
    const position = append(a, 'row');
    await cluster.pass(5 * LEASE_MS);
    t.notOk(a.node.admits || b.node.admits);
    for (const call of [...cluster.log.calls]) cluster.log.drop(call);
    await cluster.pass(LEASE_MS);
    for (const call of [...cluster.log.calls]) cluster.log.drop(call);
    cluster.holds = () => false;
    await cluster.pass(LEASE_MS);
    t.ok(a.node.admits && b.node.admits);
    t.ok((await position) > 0);
    t.same(b.sink.texts, ['row']);
    t.same([a.node.counts.expelled, b.node.counts.expelled], [0, 0]);
    t.same([...a.fatal, ...b.fatal], []);
  },
);

for (const outcome of ['the question', 'the answer'] as const) {
  t.test(`node: ${outcome} of a write is lost, the row is in the log once`, async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    cluster.holds = methodOf(a, 'append');
    const position = append(a, 'row');
    await cluster.rest();
    const call = cluster.callOf(a, 'append');
    if (outcome === 'the answer') cluster.log.step(call);
    cluster.log.drop(call);
    cluster.holds = () => false;
    await cluster.rest();
    const at = await position;
    t.same(b.sink.texts, ['row']);
    t.equal(b.sink.rows[at - 1]?.body.toString(), 'row');
    t.equal(a.node.counts.resolved, 1);
    t.equal(await appended(cluster, a, 'next'), cluster.log.position);
    const next = b.sink.rows.at(-1);
    t.ok(b.sink.members.isMember(1, next?.incarnation ?? 0), 'the next write is that of a member');
    await cluster.pass(2 * LEASE_MS);
    t.same([a.node.counts.expelled, b.node.counts.expelled, a.node.counts.returned], [0, 0, 0]);
    t.ok(a.node.admits);
  });
}

t.test('node: a question that arrives long after its answer was given up changes nothing', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  const held: MemoryCall[] = [];
  cluster.holds = (call) => held.includes(call) || methodOf(a, 'append')(call);
  const position = append(a, 'row');
  await cluster.rest();
  held.push(cluster.callOf(a, 'append'));
  cluster.log.lose(cluster.callOf(a, 'append'));
  cluster.holds = (call) => held.includes(call);
  await cluster.rest();
  await position;
  for (const call of held) cluster.log.step(call);
  await cluster.pass(LEASE_MS);
  t.same(b.sink.texts, ['row']);
});

t.test('node: the answer of the resolution is lost too, the row is in the log once', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.holds = (call) => methodOf(a, 'append')(call) || methodOf(a, 'resolve')(call);
  const position = append(a, 'row');
  await cluster.rest();
  cluster.log.step(cluster.callOf(a, 'append'));
  cluster.log.lose(cluster.callOf(a, 'append'));
  await cluster.rest();
  cluster.log.step(cluster.callOf(a, 'resolve'));
  cluster.log.lose(cluster.callOf(a, 'resolve'));
  cluster.holds = () => false;
  await cluster.pass(LEASE_MS);
  t.equal(b.sink.rows[(await position) - 1]?.body.toString(), 'row');
  t.same(b.sink.texts, ['row']);
});

t.test('node: the answer of a join is lost, the node joins with the next incarnation', async (t) => {
  const cluster = new TestCluster();
  const a = cluster.add('a');
  cluster.holds = methodOf(a, 'join');
  const started = a.node.start();
  await cluster.rest();
  cluster.log.step(cluster.callOf(a, 'join'));
  cluster.log.lose(cluster.callOf(a, 'join'));
  cluster.holds = () => false;
  await cluster.rest();
  await started;
  t.equal(a.node.admits, true);
  t.same(membersOf(a), [1]);
  await appended(cluster, a, 'row');
  t.ok(a.sink.members.isMember(1, a.sink.rows.at(-1)?.incarnation ?? 0));
});

t.test('node: one that was expelled with a write of unknown outcome finds it, and joins again', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.holds = methodOf(b, 'append');
  const position = append(b, 'row');
  await cluster.rest();
  cluster.log.step(cluster.callOf(b, 'append'));
  cluster.holds = of(b);
  await cluster.pass(LEASE_MS * 1.6);
  t.same(membersOf(a), [1]);
  for (const call of cluster.log.calls.filter(of(b))) cluster.log.lose(call);
  cluster.holds = () => false;
  await cluster.pass(LEASE_MS);
  t.equal(a.sink.rows[(await position) - 1]?.body.toString(), 'row');
  t.same(a.sink.texts, ['row']);
  t.same(membersOf(a), [1, 2]);
  t.equal(b.node.admits, true);
});

t.test('node: after its return it admits only when its own expulsion and join are applied', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.pause(cluster.processOf(b));
  await cluster.pass(LEASE_MS * 1.5);
  await appended(cluster, a, 'unseen by b');
  cluster.resume(cluster.processOf(b));
  b.sink.isHeld = true;
  await cluster.pass(LEASE_MS);
  t.equal(b.node.admits, false);
  b.sink.release();
  await cluster.pass(LEASE_MS);
  t.equal(b.node.admits, true);
  t.same(b.sink.texts, ['unseen by b']);
});

t.test(
  'node: one that is behind for half a lease renews no more, is expelled, catches up and joins',
  async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    b.sink.isHeld = true;
    const gate = gateOf(a, await appended(cluster, a, 'row'));
    await cluster.pass(LEASE_MS * 2);
    t.equal(gate.isOpen, true, 'the gate waits for 1.5 leases and a renewal at most');
    t.equal(b.node.admits, false);
    t.ok(b.node.behindMs > LEASE_MS);
    t.same([a.node.keepsUp, b.node.keepsUp], [true, false]);
    t.ok(b.node.counts.renewalsSkipped > 0);
    b.sink.release();
    await cluster.pass(LEASE_MS);
    t.equal(b.node.admits, true);
    t.same(b.sink.texts, ['row']);
    t.same(membersOf(a), [1, 2]);
  },
);

t.test('node: a wall clock that steps expels no node, and ends at most its own lease', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.processOf(a).skewMs = 2_000;
  t.equal(a.node.admits, false, 'more time has passed by this clock');
  await cluster.pass(LEASE_MS / 2);
  cluster.processOf(b).skewMs = -2_000;
  await cluster.pass(2 * LEASE_MS);
  t.ok(a.node.admits && b.node.admits);
  t.same([a.node.counts.expelled, b.node.counts.expelled], [0, 0]);
});

t.test(
  'node: a suspended machine, whose monotonic clock stands still, admits nothing when it wakes',
  async (t) => {
    const cluster = new TestCluster();
    const [, b] = await cluster.start('a', 'b');
    cluster.pause(cluster.processOf(b), true);
    await cluster.pass(3 * LEASE_MS);
    cluster.resume(cluster.processOf(b));
    t.equal(b.node.admits, false);
  },
);

t.test('node: leaves at once for all others, and admits nothing from then on', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  const left = b.node.leave();
  t.equal(b.node.admits, false, 'before the row is written');
  await cluster.rest();
  await left;
  t.same(membersOf(a), [1]);
  await t.rejects(append(b, 'late'), /stopped/);
  const gate = gateOf(a, await appended(cluster, a, 'row'));
  t.equal(gate.isOpen, true);
  await cluster.pass(2 * LEASE_MS);
  t.same([a.node.counts.expelled, ...a.fatal, ...b.fatal], [0]);
});

for (const outcome of ['the question', 'the answer'] as const) {
  t.test(`node: ${outcome} of its leave is lost, it is out all the same`, async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    cluster.holds = methodOf(b, 'leave');
    const left = b.node.leave();
    await cluster.rest();
    const call = cluster.callOf(b, 'leave');
    if (outcome === 'the answer') cluster.log.step(call);
    cluster.log.drop(call);
    cluster.holds = () => false;
    await cluster.pass(LEASE_MS / 2);
    await left;
    t.same(membersOf(a), [1]);
    t.equal(a.node.counts.expelled, 0);
  });
}

t.test('node: a process that starts right after the end of its namesake waits for the lease', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.crash(cluster.processOf(b));
  const again = cluster.add('b');
  const started = again.node.start();
  await cluster.pass(LEASE_MS * 2);
  await started;
  t.equal(again.node.node, 2);
  t.equal(again.node.admits, true);
  t.same(again.sink.rows, a.sink.rows);
});

t.test('node: a name that another process uses is refused after two leases', async (t) => {
  const cluster = new TestCluster();
  const [a] = await cluster.start('a');
  const second = cluster.add('a');
  const started = t.rejects(second.node.start(), NameTaken);
  await cluster.pass(LEASE_MS * 2.2);
  await started;
  t.equal(a.node.admits, true);
  t.same(a.fatal, []);
});

t.test('node: a paused process whose name another one has taken ends when it wakes', async (t) => {
  const cluster = new TestCluster();
  const [a, former] = await cluster.start('a', 'b');
  cluster.pause(cluster.processOf(former));
  await cluster.pass(2 * LEASE_MS);
  const next = cluster.add('b');
  const started = next.node.start();
  await cluster.pass(LEASE_MS);
  await started;
  cluster.resume(cluster.processOf(former));
  await cluster.pass(3 * LEASE_MS);
  t.match(former.fatal, [{ name: 'NameTaken' }]);
  t.ok(next.node.admits && a.node.admits);
  t.equal(former.node.admits, false);
});

t.test('node: does not start over a log that has lost rows, or over another log', async (t) => {
  const cluster = new TestCluster();
  const [a] = await cluster.start('a');
  await appended(cluster, a, 'row');
  const other = new TestCluster();
  await other.start('x');
  for (const logId of ['memory', 'another']) {
    const node = other.add('a', { sink: a.sink, logId });
    const started = t.rejects(node.node.start(), LogLost);
    await other.rest();
    await started;
    t.equal(node.node.admits, false);
    other.crash(other.processOf(node));
  }
});

t.test('node: ends when the rows that it needs are no longer in the log', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  cluster.holds = of(b);
  cluster.processOf(b).isUnlinked = true;
  await cluster.pass(2 * LEASE_MS);
  await appended(cluster, a, 'row');
  cluster.log.trim(cluster.log.position);
  cluster.holds = () => false;
  await cluster.pass(LEASE_MS);
  t.match(b.fatal, [{ name: 'LogLost' }]);
  t.equal(b.node.admits, false);
  t.equal(a.node.admits, true);
});

t.test('node: a store that fails ends the process, once', async (t) => {
  const cluster = new TestCluster();
  const [a] = await cluster.start('a');
  a.sink.failure = new Error('the disk is full');
  const position = append(a, 'row');
  position.catch(() => {});
  await cluster.pass(LEASE_MS);
  t.match(a.fatal, [{ message: 'the disk is full' }]);
  t.equal(a.node.admits, false);
});

t.test('node: one whose state differs shows the others where, and ends', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  const [newest, own] = [400, 300].map((position) => ({ position, digest: Buffer.alloc(32, position) }));
  a.sink.sample = newest;
  await cluster.pass(LEASE_MS / 5);
  await cluster.pass(LEASE_MS / 5);
  t.match(b.sink.compared, [{ node: 1, sample: newest }]);
  a.sink.diverged = new Diverged('it differs', false, own ?? { position: 0, digest: bytes('') });
  await cluster.pass(LEASE_MS / 5);
  t.same(a.fatal, [a.sink.diverged]);
  t.equal(a.node.admits, false);
  await cluster.pass(LEASE_MS / 5);
  t.match(b.sink.compared, [{ node: 1, sample: own }]);
  t.same(b.fatal, []);
});

t.test('node: numbers its rows from where it was given', async (t) => {
  const cluster = new TestCluster();
  const a = cluster.add('a', { firstSeq: 5_000 });
  const started = a.node.start();
  await cluster.rest();
  await started;
  await appended(cluster, a, 'row');
  t.same(
    a.sink.rows.map(({ nodeSeq }) => nodeSeq),
    [5_001, 5_002],
  );
});

t.test('node: a log that grew again past what was applied, with other rows, ends a node', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  await appended(cluster, a, 'row');
  const sink = new KeepingSink();
  const rows = b.sink.rows.map((row, index) => (index === 1 ? { ...row, nodeSeq: 77 } : row));
  cluster.crash(cluster.processOf(b));
  await cluster.pass(2 * LEASE_MS);
  await sink.apply(rows.slice(0, 2));
  const again = cluster.add('b', { sink, logId: 'memory' });
  again.node.start().catch((error: Error) => again.fatal.push(error));
  await cluster.pass(LEASE_MS);
  t.match(again.fatal, [{ name: 'LogLost', message: /row 2 .* another one/ }]);
});
