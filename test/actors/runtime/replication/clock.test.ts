/** The clock of a node: which one a member may have, how a node with another one leaves and comes back, and who stays. */
import t from 'tap';
import {
  ClockCheck,
  type ClockVerdict,
  readClock,
} from '../../../../src/actors/runtime/replication/clock-check.ts';
import type { Renewed } from '../../../../src/actors/runtime/replication/port.ts';
import { LEASE_MS, TestCluster, type TestNode } from '../../../support/actors/log-nodes.ts';

const SECONDS = 1_000;
const HOUR = 3_600 * SECONDS;

/** Renewals of a node whose clock is so far behind that of the database; others: offsets of the members. */
function readings(offsetMs: number, others: readonly (number | undefined)[], errorMs = 0) {
  let renewals = 0;
  return (): Renewed => {
    renewals += 1;
    return {
      position: 1,
      clock: { offsetMs, errorMs },
      others: others.map((clockOffsetMs, index) => ({
        node: index + 2,
        renewals,
        applied: 1,
        clockOffsetMs,
      })),
    };
  };
}

const moment = (wallMs = 0) => ({ wallMs, monotonicMs: 0 });

/** Verdicts in so many renewals, each in its place. `wallMs`: the wall clock has stepped by it. */
function verdicts(read: () => Renewed, renewals = 10, wallMs = 0): ClockVerdict[] {
  const check = new ClockCheck();
  check.judge(readings(0, [0])(), moment());
  const found: ClockVerdict[] = [];
  for (let renewal = 0; renewal < renewals && found.at(-1) !== 'wrong'; renewal += 1)
    found.push(check.judge(read(), moment(wallMs)));
  return found;
}

/** True if a node leaves in so many renewals. */
const leaves = (...of: Parameters<typeof verdicts>) => verdicts(...of).at(-1) === 'wrong';

t.test(
  'clock: a node leaves above 5 s from the database and from most members, and else stays',
  async (t) => {
    for (const sign of [1, -1]) {
      t.equal(leaves(readings(sign * 5_001, [0, 0])), true);
      t.equal(leaves(readings(sign * 5_000, [0, 0])), false);
      t.equal(leaves(readings(sign * HOUR, [sign * HOUR, 0])), false, 'one of two has the same');
      t.equal(leaves(readings(sign * HOUR, [sign * HOUR, 0, 0])), true, 'one of three has the same');
      t.equal(leaves(readings(sign * HOUR, [0])), true, 'the other of two nodes has another');
      t.equal(leaves(readings(sign * HOUR, [])), false, 'it is alone');
      t.equal(leaves(readings(sign * HOUR, [undefined, undefined])), false, 'members have said nothing');
      t.equal(leaves(readings(sign * 6_000, [0, 0], 1_001)), false, 'a slow answer may be wrong by as much');
    }
  },
);

t.test(
  'clock: it takes three renewals in a row, with words of members that are newer than the first',
  async (t) => {
    t.equal(
      leaves(readings(HOUR, [0, 0]), 5),
      false,
      'three counts until words are new, and two more renewals',
    );
    t.equal(leaves(readings(HOUR, [0, 0]), 6), true);
    const check = new ClockCheck();
    const [off, right] = [readings(HOUR, [0, 0]), readings(0, [0, 0])];
    for (let renewal = 0; renewal < 5; renewal += 1) check.judge(off(), moment());
    check.judge(right(), moment());
    for (let renewal = 0; renewal < 5; renewal += 1)
      t.equal(check.judge(off(), moment()), 'right', 'begun anew');
    t.equal(check.judge(off(), moment()), 'wrong');
    const silent = readings(HOUR, [0, 0]);
    const frozen = silent();
    t.equal(
      leaves(() => frozen),
      false,
      'members that do not renew have said it before',
    );
  },
);

t.test(
  'clock: after a step of its own a node is unsure until members say theirs, and never when the database steps',
  async (t) => {
    for (const sign of [1, -1]) {
      const step = sign * HOUR;
      t.same(verdicts(readings(-step, [0, 0]), 10, step), [...Array(5).fill('unsure'), 'wrong']);
      const agreed = ['unsure', 'unsure', 'unsure', 'right', 'right'];
      t.same(verdicts(readings(-step, [-step, -step]), 5, step), agreed);
      t.same(
        verdicts(readings(-step, [-step, undefined]), 5, step),
        Array(5).fill('unsure'),
        'one says nothing',
      );
      t.same(verdicts(readings(-step, [-step, 0]), 5, step), agreed, 'a tie');
      t.same(verdicts(readings(-step, []), 2, step), ['right', 'right'], 'it is alone');
      t.same(verdicts(readings(step, [step, step]), 4), Array(4).fill('right'), 'the database has stepped');
      t.same(verdicts(readings(-sign * 5_000, [0, 0]), 4, sign * 5_000), Array(4).fill('right'), 'not off');
    }
  },
);

t.test(
  'clock: a join needs agreement with the database or with most members, within 4 s after a leave',
  async (t) => {
    const joins = (offsetMs: number, others: readonly number[]) =>
      new ClockCheck().mayJoin(readings(offsetMs, others)());
    t.equal(joins(HOUR, []), false, 'alone the database counts');
    t.equal(joins(5_000, []), true);
    t.equal(joins(HOUR, [HOUR, HOUR, 0]), true);
    t.equal(joins(HOUR, [HOUR, 0]), false);
    t.equal(joins(0, [HOUR, HOUR]), true);
    const check = new ClockCheck();
    t.equal(check.mayJoin(readings(HOUR, [])()), false);
    t.equal(check.isOff, true);
    t.equal(check.mayJoin(readings(4_500, [])()), false);
    t.equal(check.mayJoin(readings(4_000, [])()), true);
    t.equal(check.isOff, false);
  },
);

t.test('clock: a reading is as wrong as half of the time that its answer took', async (t) => {
  t.same(readClock(1_000, 1_200, 5_000), { offsetMs: 3_900, errorMs: 100 });
  t.same(readClock(1_200, 1_000, 5_000), { offsetMs: 3_900, errorMs: 100 }, 'a clock that steps meanwhile');
});

const members = ({ sink }: TestNode) => [...sink.members.nodes()];

t.test(
  'node: one whose clock is an hour off leaves, admits nothing, and comes back when it is right',
  async (t) => {
    for (const skewMs of [HOUR, -HOUR]) {
      const cluster = new TestCluster();
      const [a, b, c] = await cluster.start('a', 'b', 'c');
      cluster.processOf(b).skewMs = skewMs;
      for (let passedMs = 0; passedMs < 2 * LEASE_MS; passedMs += 100) {
        t.equal(b.node.admits, false, `${passedMs} ms after the step`);
        await cluster.pass(100);
      }
      t.same(
        [a, b, c].map(({ node }) => node.admits),
        [true, false, true],
      );
      t.same(members(a), [a.node.node, c.node.node]);
      t.equal(b.node.isClockOff, true);
      t.same([a.node.counts.expelled, b.node.counts.returned, c.node.counts.expelled], [0, 0, 0]);
      await cluster.pass(60 * SECONDS);
      t.equal(b.node.admits, false);
      const written = b.node.append(b.node.nextSeq(), Buffer.from('late'));
      cluster.processOf(b).skewMs = 0;
      await cluster.pass(2 * LEASE_MS);
      t.same([b.node.admits, b.node.isClockOff], [true, false]);
      t.equal(members(a).length, 3);
      await written;
      t.same(a.sink.texts, ['late']);
      t.same(b.fatal, []);
    }
  },
);

t.test('node: a step of the database clock, or a server with another one, expels no node', async (t) => {
  const cluster = new TestCluster();
  const nodes = await cluster.start('a', 'b', 'c');
  for (const skewMs of [HOUR, -HOUR, 0]) {
    cluster.databaseSkewMs = skewMs;
    for (let passedMs = 0; passedMs < 10 * LEASE_MS; passedMs += 100) {
      await cluster.pass(100);
      t.same(
        nodes.map(({ node }) => [node.admits, node.isClockOff]),
        Array(3).fill([true, false]),
      );
    }
  }
  t.same(members(nodes[0]).length, 3);
});

t.test(
  'node: two that agree stay beside a database with another clock, one that is alone stays too',
  async (t) => {
    const cluster = new TestCluster();
    const [a, b] = await cluster.start('a', 'b');
    cluster.databaseSkewMs = HOUR;
    await cluster.pass(5 * LEASE_MS);
    t.same([a.node.admits, b.node.admits], [true, true]);
    cluster.crash(cluster.processOf(b));
    await cluster.pass(5 * LEASE_MS);
    t.equal(a.node.admits, true);
    const again = cluster.add('b');
    void again.node.start();
    await cluster.pass(3 * LEASE_MS);
    t.equal(again.node.admits, true, 'it agrees with the member');
  },
);

t.test('node: one that starts with a wrong clock waits, and a stop ends the wait', async (t) => {
  const cluster = new TestCluster();
  await cluster.start('a');
  const b = cluster.add('b');
  cluster.processOf(b).skewMs = HOUR;
  const started = t.rejects(b.node.start(), { name: 'NodeStopped' });
  await cluster.pass(30 * SECONDS);
  t.same([b.node.admits, b.node.isClockOff], [false, true]);
  const left = b.node.leave();
  await cluster.pass(2 * SECONDS);
  await Promise.all([started, left]);
  t.same(b.fatal, []);
});

/** Expels the second node so often, by its renewals, and gives how long it took each time until it was back. */
async function waitsOf(cluster: TestCluster, [a, b]: readonly TestNode[], expulsions: number) {
  if (a === undefined || b === undefined) throw new Error('two nodes');
  const waits: number[] = [];
  while (waits.length < expulsions) {
    const process = cluster.processOf(b);
    process.isCut = true;
    while (members(a).length > 1) await cluster.pass(100);
    process.isCut = false;
    const fromMs = cluster.nowMs;
    while (!b.node.admits) await cluster.pass(100);
    waits.push(cluster.nowMs - fromMs);
  }
  return waits;
}

t.test(
  'node: the third expulsion in a minute makes it wait 5 s, each further one twice as long, 20 s at most',
  async (t) => {
    const cluster = new TestCluster();
    const nodes = await cluster.start('a', 'b');
    const seconds = (await waitsOf(cluster, nodes, 6)).map((ms) => Math.floor(ms / SECONDS / 5) * 5);
    t.same(seconds, [0, 0, 5, 10, 20, 20]);
    await cluster.pass(60 * SECONDS);
    t.ok(((await waitsOf(cluster, nodes, 1))[0] ?? 0) < 1_500, 'a minute later it is forgotten');
  },
);

t.test('node: one that waits joins at once when no other member renews any more', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  await waitsOf(cluster, [a, b], 3);
  const process = cluster.processOf(b);
  process.isCut = true;
  while (members(a).length > 1) await cluster.pass(100);
  process.isCut = false;
  await cluster.pass(2 * SECONDS);
  t.equal(b.node.admits, false, 'it waits for 10 s');
  cluster.crash(cluster.processOf(a));
  await cluster.pass(5 * LEASE_MS);
  t.equal(b.node.admits, true);
  t.same(b.fatal, []);
});

t.test('node: a stop ends the wait of one that was expelled again and again', async (t) => {
  const cluster = new TestCluster();
  const [a, b] = await cluster.start('a', 'b');
  await waitsOf(cluster, [a, b], 2);
  cluster.processOf(b).isCut = true;
  while (members(a).length > 1) await cluster.pass(100);
  cluster.processOf(b).isCut = false;
  await cluster.pass(2 * SECONDS);
  const left = b.node.leave();
  await cluster.pass(2 * SECONDS);
  await left;
  t.same(b.fatal, []);
});
