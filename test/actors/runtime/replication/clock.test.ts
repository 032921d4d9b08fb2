/** The clock of a node: which one a member may have, how a node with another one leaves and comes back, and who stays. */
import t from 'tap';
import { ClockCheck, readClock } from '../../../../src/actors/runtime/replication/clock-check.ts';
import type { Renewed } from '../../../../src/actors/runtime/replication/port.ts';
import { LEASE_MS, TestCluster, type TestNode } from '../../../support/actors/log-nodes.ts';

const SECONDS = 1_000;
const HOUR = 3_600 * SECONDS;

/** What a node reads whose clock is so far behind that of the database; others: offsets of the members. */
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

/** Whether a node leaves in so many renewals. */
function leaves(read: () => Renewed, renewals = 10): boolean {
  const check = new ClockCheck();
  for (let renewal = 0; renewal < renewals; renewal += 1) if (check.hasToLeave(read())) return true;
  return false;
}

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
    t.equal(leaves(readings(HOUR, [0, 0]), 4), false, 'two renewals until words are new, and two more');
    t.equal(leaves(readings(HOUR, [0, 0]), 5), true);
    const check = new ClockCheck();
    const [off, right] = [readings(HOUR, [0, 0]), readings(0, [0, 0])];
    for (let renewal = 0; renewal < 4; renewal += 1) check.hasToLeave(off());
    check.hasToLeave(right());
    for (let renewal = 0; renewal < 4; renewal += 1) t.equal(check.hasToLeave(off()), false, 'begun anew');
    t.equal(check.hasToLeave(off()), true);
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
      await cluster.pass(2 * LEASE_MS);
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

t.test('node: a step of the database clock, or a server with another one, expels nobody', async (t) => {
  const cluster = new TestCluster();
  const nodes = await cluster.start('a', 'b', 'c');
  for (const skewMs of [HOUR, -HOUR, 0]) {
    cluster.databaseSkewMs = skewMs;
    await cluster.pass(10 * LEASE_MS);
    t.same(
      nodes.map(({ node }) => [node.admits, node.isClockOff]),
      Array(3).fill([true, false]),
    );
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
