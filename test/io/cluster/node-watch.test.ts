/** Log lines of a node about its cluster: members, other configurations, a clock that is off, refusals. */
import t from 'tap';
import { DatabaseFailure } from '../../../src/io/cluster/failures.ts';
import type { NodeRecord } from '../../../src/io/cluster/node-table.ts';
import { DatabaseRefusals, NodeWatch } from '../../../src/io/cluster/node-watch.ts';
import type { Log } from '../../../src/io/observability/log.ts';

const RIGHT = { offsetMs: 0, errorMs: 0 };

function open() {
  const lines: unknown[][] = [];
  const log: Log = { write: (...line) => void lines.push(line) };
  const own = { hash: Buffer.from('1') };
  const time = { nowMs: 0 };
  const watch = new NodeWatch({ name: 'a', configHash: () => own.hash, log, monotonicMs: () => time.nowMs });
  const said = () => lines.splice(0);
  return { watch, own, time, said };
}

function record(name: string, hash: string, joined = true): NodeRecord {
  return {
    node: name.charCodeAt(0) - 96,
    name,
    incarnation: 1,
    joined,
    renewals: 1,
    applied: 1,
    renewedAgoMs: 0,
    figures: undefined,
    address: '127.0.0.1:1',
    version: '0',
    configHash: Buffer.from(hash),
  };
}

t.test(
  'node watch: nodes with another configuration have a line when they change, and at the end',
  async (t) => {
    const { watch, own, said } = open();
    watch.read([record('a', '1'), record('b', '1')], RIGHT);
    t.same(said(), []);
    const differing = [record('a', '1'), record('c', '2'), record('b', '2'), record('d', '2', false)];
    for (let reading = 0; reading < 3; reading += 1) watch.read(differing, RIGHT);
    t.same(said(), [['configurationDiffers', { nodes: ['b', 'c'] }]], 'nodes that are out do not count');
    watch.read([record('a', '1'), record('b', '1'), record('c', '2')], RIGHT);
    t.same(said(), [['configurationDiffers', { nodes: ['c'] }]]);
    t.same(watch.otherConfigurations, ['c']);
    own.hash = Buffer.from('2');
    watch.read([record('a', '1'), record('c', '2')], RIGHT);
    t.same(said(), [['configurationAgrees']], 'its own configuration is that of now, not of the table');
    t.same(watch.otherConfigurations, []);
  },
);

t.test('node watch: the node before it under the same name is no other node', async (t) => {
  const { watch, said } = open();
  watch.read([record('a', '2')], RIGHT);
  t.same(said(), []);
});

t.test(
  'node watch: a clock off by more than half a second has a line at its begin and its end',
  async (t) => {
    const { watch, said } = open();
    const read = (offsetMs: number, errorMs = 0) => watch.read([], { offsetMs, errorMs });
    read(500);
    read(900, 450);
    t.same(said(), [], 'it may be right within the error of the measurement');
    read(-501.4);
    read(-700);
    t.same(said(), [['clockOff', { clockOffsetMs: -501 }]]);
    read(450);
    read(100, 350);
    t.same(said(), [], 'about the bound it neither begins nor ends');
    read(-399);
    read(10);
    t.same(said(), [['clockRight', { clockOffsetMs: -399 }]]);
  },
);

t.test(
  'node watch: nodes that come and go, and whether this one serves, have a line each time',
  async (t) => {
    const { watch, said } = open();
    watch.serves(false);
    watch.serves(true);
    watch.serves(true);
    watch.membersChanged([1, 2], [1, 3], false);
    watch.membersChanged([1, 3], [1, 3], false);
    watch.membersChanged([1, 3], [1], true);
    watch.serves(false);
    t.same(said(), [
      ['nodeServes'],
      ['nodeJoined', { node: 3 }],
      ['nodeOut', { node: 2 }],
      ['nodeLeft', { node: 3 }],
      ['nodeRefuses'],
    ]);
  },
);

t.test('node watch: a node has its name as last read, before that its number', async (t) => {
  const { watch } = open();
  t.equal(watch.nameOf(2), '2');
  watch.read([record('b', '1')], RIGHT);
  t.equal(watch.nameOf(2), 'b');
});

t.test('node watch: a node that is out for its clock says so once a minute', async (t) => {
  const { watch, time, said } = open();
  const line = ['nodeClockWrong', { clockOffsetMs: -6_001 }];
  for (const [nowMs, lines] of [
    [0, [line]],
    [59_999, []],
    [60_000, [line]],
  ] as const) {
    time.nowMs = nowMs;
    watch.isOutForClock({ offsetMs: -6_001.3, errorMs: 1 });
    t.same(said(), lines);
  }
});

const failure = (sqlState?: string) => new DatabaseFailure('text', sqlState);

t.test('database failure: passes without a SQLSTATE, by its class, and on a read-only server', async (t) => {
  const passing = [undefined, '08006', '40001', '53300', '57P03', '57014', '25006'];
  t.same(
    passing.filter((state) => !failure(state).isPassing),
    [],
  );
  const lasting = ['28P01', '28000', '3D000', '42501', '42P01', '25001', '0A000', 'XX000'];
  t.same(
    lasting.filter((state) => failure(state).isPassing),
    [],
  );
});

t.test('database refusals: count by class, with a line a minute for each SQLSTATE', async (t) => {
  const lines: unknown[][] = [];
  const log: Log = { write: (...line) => void lines.push(line) };
  let nowMs = 0;
  const refusals = new DatabaseRefusals({ log, monotonicMs: () => nowMs });
  for (const state of ['28P01', '28P01', '53300', '3D000', undefined]) refusals.add(failure(state));
  const line = (sqlState: string) => ['databaseRefused', { sqlState, detail: 'text' }];
  t.same(lines.splice(0), [line('28P01'), line('53300'), line('3D000')]);
  nowMs = 59_999;
  refusals.add(failure('28P01'));
  t.same(lines.splice(0), []);
  nowMs = 60_000;
  refusals.add(failure('28P01'));
  t.same(lines.splice(0), [line('28P01')]);
  t.same(refusals.counts, { '08': 0, 25: 0, 28: 4, 40: 0, 42: 0, 53: 1, 57: 0, other: 1 });
});
