/** What a node says of its cluster in the log: who is in, other configurations, and a clock that is off. */
import t from 'tap';
import type { NodeRecord } from '../../../src/io/cluster/node-table.ts';
import { NodeWatch } from '../../../src/io/cluster/node-watch.ts';
import type { Log } from '../../../src/io/observability/log.ts';

const RIGHT = { offsetMs: 0, errorMs: 0 };

function open() {
  const lines: unknown[][] = [];
  const log: Log = { write: (...line) => void lines.push(line) };
  const own = { hash: Buffer.from('1') };
  const watch = new NodeWatch({ name: 'a', configHash: () => own.hash, log });
  /** The lines since the last call. */
  const said = () => lines.splice(0);
  return { watch, own, said };
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
