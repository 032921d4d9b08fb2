/** NodeLease, expeller, lag and gates, each alone. */
import t from 'tap';
import { MemoryLog } from '../../../../kit/journal/memory-log.ts';
import { Expeller } from '../../../../src/actors/runtime/replication/expeller.ts';
import { Gates } from '../../../../src/actors/runtime/replication/gates.ts';
import { Lag } from '../../../../src/actors/runtime/replication/lag.ts';
import { NodeLease } from '../../../../src/actors/runtime/replication/lease.ts';
import { Members } from '../../../../src/actors/runtime/replication/members.ts';

const LEASE_MS = 1_000;

function leaseWithClocks() {
  const clocks = { wallMs: 50_000, monotonicMs: 70 };
  const lease = new NodeLease(
    { clock: () => clocks.wallMs, monotonicMs: () => clocks.monotonicMs },
    LEASE_MS,
  );
  const pass = (durationMs: number) => {
    clocks.wallMs += durationMs;
    clocks.monotonicMs += durationMs;
  };
  return { clocks, lease, pass };
}

t.test('lease: runs for 0.8 of its time from before the renewal was sent', async (t) => {
  const { lease, pass } = leaseWithClocks();
  t.equal(lease.runs, false, 'never renewed');
  const sent = lease.now();
  pass(300);
  lease.renewed(sent);
  pass(499);
  t.equal(lease.runs, true);
  pass(1);
  t.equal(lease.runs, false);
});

t.test(
  'lease: is over when either clock says so, and a wall clock set back does not prolong it',
  async (t) => {
    const { clocks, lease, pass } = leaseWithClocks();
    lease.renewed(lease.now());
    clocks.wallMs += 800;
    t.equal(lease.runs, false, 'the monotonic clock stood still: a suspended machine');
    clocks.wallMs -= 1_000;
    t.equal(lease.runs, true, 'back by less than the lease');
    pass(800);
    t.equal(lease.runs, false);
    lease.renewed(lease.now());
    clocks.wallMs -= 800;
    t.equal(lease.runs, false, 'back by more');
  },
);

t.test('lease: what is left of it is the lesser of both clocks, and never below zero', async (t) => {
  const { clocks, lease, pass } = leaseWithClocks();
  t.equal(lease.leftMs, 0, 'never renewed');
  lease.renewed(lease.now());
  pass(300);
  t.equal(lease.leftMs, 500);
  clocks.wallMs += 100;
  t.equal(lease.leftMs, 400);
  pass(10_000);
  t.equal(lease.leftMs, 0);
});

t.test('lease: ends at once when the node is out', async (t) => {
  const { lease } = leaseWithClocks();
  lease.renewed(lease.now());
  lease.end();
  t.equal(lease.runs, false);
});

const state = (node: number, renewals: number) => ({ node, renewals, applied: 0 });

t.test('expeller: names a node whose counter stands still for a lease, and no other', async (t) => {
  const expeller = new Expeller(new MemoryLog({ clock: () => 0, leaseMs: LEASE_MS }).connect(), LEASE_MS);
  t.same(expeller.read([state(1, 5), state(2, 5)], 0), []);
  t.same(expeller.read([state(1, 5), state(2, 6)], 500), []);
  t.same(expeller.read([state(1, 5), state(2, 7)], 999), []);
  t.same(expeller.read([state(1, 5), state(2, 7)], 1_000), [state(1, 5)]);
  t.same(expeller.read([state(1, 5), state(2, 8)], 1_200), [state(1, 5)], 'until it is out');
});

t.test('expeller: of two different leases the longer one counts', async (t) => {
  const expeller = new Expeller(new MemoryLog({ clock: () => 0, leaseMs: LEASE_MS }).connect(), LEASE_MS);
  const both = [
    { ...state(1, 5), leaseMs: 1_500 },
    { ...state(2, 5), leaseMs: 500 },
  ];
  t.same(expeller.read(both, 0), []);
  t.same(expeller.read(both, 999), []);
  t.same(expeller.read(both, 1_499), [both[1]]);
  t.same(expeller.read(both, 1_500), both);
});

t.test('expeller: counts anew when a node is away in between', async (t) => {
  const expeller = new Expeller(new MemoryLog({ clock: () => 0, leaseMs: LEASE_MS }).connect(), LEASE_MS);
  expeller.read([state(1, 5)], 0);
  expeller.read([], 500);
  t.same(expeller.read([state(1, 5)], 900), []);
  t.same(expeller.read([state(1, 5)], 1_800), []);
  t.same(expeller.read([state(1, 5)], 1_900), [state(1, 5)]);
});

t.test(
  'expeller: counts anew after a lease without an answer, as after a failover of the database',
  async (t) => {
    const expeller = new Expeller(new MemoryLog({ clock: () => 0, leaseMs: LEASE_MS }).connect(), LEASE_MS);
    expeller.read([state(1, 5)], 0);
    t.same(expeller.read([state(1, 5)], 20_000), []);
    t.same(expeller.read([state(1, 5)], 20_900), []);
    t.same(expeller.read([state(1, 5)], 21_000), [state(1, 5)]);
  },
);

t.test('lag: is the time for which the oldest row that is not applied has been known', async (t) => {
  const lag = new Lag();
  t.equal(lag.behindMs(0), 0);
  lag.saw(10, 8, 100);
  lag.saw(20, 8, 400);
  t.equal(lag.behindMs(500), 400);
  lag.applied(9);
  t.equal(lag.behindMs(500), 400);
  lag.applied(10);
  t.equal(lag.behindMs(500), 100);
  lag.applied(20);
  t.equal(lag.behindMs(500), 0);
  lag.saw(20, 20, 600);
  t.equal(lag.behindMs(700), 0, 'what is applied is known already');
});

t.test('lag: has the number of rows up to the newest known one', async (t) => {
  const lag = new Lag();
  t.equal(lag.rowsAfter(8), 0);
  lag.saw(10, 8, 0);
  lag.saw(12, 8, 500);
  t.equal(lag.rowsAfter(8), 4);
  lag.applied(12);
  t.equal(lag.rowsAfter(12), 0);
});

t.test('lag: stays exact for the oldest rows, however many become known', async (t) => {
  const lag = new Lag();
  for (let index = 0; index < 1_000; index += 1) lag.saw(index + 1, 0, index * 20);
  t.equal(lag.behindMs(20_000), 20_000);
  lag.applied(1);
  t.equal(lag.behindMs(20_000), 19_980);
  lag.applied(1_000);
  t.equal(lag.behindMs(20_000), 0);
});

const OWN = 1;

function gatesOf(...nodes: number[]) {
  const members = new Members();
  for (const [index, node] of nodes.entries()) members.change({ type: 'join' }, node, 1, index + 1);
  const sink = { position: 10, members };
  const gates = new Gates(sink);
  const opened: number[] = [];
  const reach = (position: number) => gates.reached(position, () => opened.push(position), OWN);
  return { gates, members, sink, opened, reach };
}

t.test('gate: opens at once for a node alone, once its own store has the position', async (t) => {
  const { gates, sink, opened, reach } = gatesOf(OWN);
  reach(10);
  reach(11);
  t.same(opened, [10]);
  sink.position = 11;
  gates.open(OWN);
  t.same(opened, [10, 11]);
});

t.test('gate: opens when every other member has applied the position', async (t) => {
  const { gates, opened, reach } = gatesOf(OWN, 2, 3);
  reach(9);
  gates.onApplied(2, 9, OWN);
  t.same(opened, []);
  gates.onApplied(3, 8, OWN);
  t.same(opened, []);
  gates.onApplied(3, 12, OWN);
  t.same(opened, [9]);
});

t.test('gate: an acknowledgement that is late or doubled changes nothing', async (t) => {
  const { gates, opened, reach } = gatesOf(OWN, 2);
  gates.onApplied(2, 9, OWN);
  gates.onApplied(2, 4, OWN);
  gates.onApplied(2, 9, OWN);
  reach(9);
  t.same(opened, [9]);
  reach(10);
  t.same(opened, [9]);
});

t.test('gate: a member that is out, or came in after the position, is not waited for', async (t) => {
  const { gates, members, opened, reach } = gatesOf(OWN, 2);
  members.change({ type: 'join' }, 3, 1, 10);
  reach(9);
  members.change({ type: 'expel', node: 2 }, OWN, 1, 11);
  gates.open(OWN);
  t.same(opened, [9]);
  reach(10);
  t.same(opened, [9], 'its own row is at this position');
});

t.test('gate: answers leave in the order of their positions, each once', async (t) => {
  const { gates, opened, reach } = gatesOf(OWN, 2);
  for (const position of [7, 5, 9, 5]) reach(position);
  t.equal(gates.size, 4);
  gates.onApplied(2, 7, OWN);
  t.same(opened, [5, 5, 7]);
  gates.onApplied(2, 9, OWN);
  t.same(opened, [5, 5, 7, 9]);
  t.equal(gates.size, 0);
});
