/**
 * Three nodes in simulation. One seed alone, with its steps: `node build/test/actors/runtime/replication/cluster-simulation.test.js
 * SEED`; all of some: `… FIRST LAST`.
 */
import t from 'tap';
import type { PlantedFault } from '../../../support/actors/cluster-runtime.ts';
import { type HistoryFigures, simulateCluster } from '../../../support/actors/cluster-simulation.ts';
import { depth, seeds } from '../../../support/depth.ts';
import { expectCaught } from '../../../support/planted-fault.ts';

/** More than 10 ms of processor time each: a full run takes a twentieth, another one each day; all of them by hand. */
const SEEDS = 20_000;
const PARTS = 20;
const PART_SEEDS = SEEDS / PARTS;
const QUICK_SEEDS = 1_000;
const DAY_MS = 86_400_000;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;

const [first, last = first] = process.argv.slice(2).map(Number);

function chosenSeeds(): readonly number[] {
  if (first !== undefined && last !== undefined)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  if (depth.isQuick) return seeds(SEEDS).slice(0, QUICK_SEEDS);
  if (depth.depth === 'gate') return seeds(PART_SEEDS);
  const begin = (Math.floor(Date.now() / DAY_MS) % PARTS) * PART_SEEDS;
  return seeds(SEEDS).slice(begin, begin + PART_SEEDS);
}

/** Longer than tap's 30 s: the machine may be busy. Seeds that are chosen by hand take as long as they take. */
t.setTimeout(first === undefined ? 600_000 : 0);

t.test('cluster: keeps every promise in simulated histories', async (t) => {
  const histories = chosenSeeds();
  const figures: HistoryFigures = {
    faults: {},
    acknowledged: 0,
    takeovers: 0,
    returns: 0,
    withdrawals: 0,
    resolved: 0,
    reads: 0,
  };
  const isAlone = first !== undefined && first === last;
  const options = { figures, ...(isAlone && { trace: (line: string) => t.comment(line) }) };
  const startedMs = performance.now();
  for (const seed of histories) {
    const broken = await simulateCluster(seed, options);
    if (broken !== undefined) {
      t.fail(
        `seed ${seed}: ${broken}; node build/test/actors/runtime/replication/cluster-simulation.test.js ${seed}`,
      );
      return;
    }
  }
  t.comment(`${Math.round((1000 * histories.length) / (performance.now() - startedMs))} seeds/s`);
  t.comment(`seeds ${histories[0]} to ${histories.at(-1)}: ${JSON.stringify(figures)}`);
  t.pass('no promise was broken');
});

const FAULTS: readonly PlantedFault[] = [
  'answers do not wait for other nodes',
  'the lease is not asked',
  'a node serves before its join is applied',
  'claims are not judged',
  'a push is applied out of order',
  'messages are numbered by their sender',
  'a clock that steps decides expulsions',
  'a member that renews is expelled',
  'clocks of members are read once',
  'a question arrives after its resolution',
  'a stale turn ends its node',
  'messages are not judged',
  'snapshots are not judged',
  'owners are not judged',
  'a new owner answers at once',
  // covers C15
  'a trim is done twice',
  'each node trims audit records by itself',
];

for (const fault of first === undefined ? FAULTS : []) {
  t.test(`cluster simulation: catches: ${fault}`, (t) =>
    expectCaught(t, FAULT_SEEDS, (seed) => simulateCluster(seed, { fault })),
  );
}

if (first === undefined)
  t.test('cluster simulation: of three nodes the one that judges otherwise ends by itself', (t) =>
    expectCaught(t, FAULT_SEEDS, async (seed) => {
      const broken = await simulateCluster(seed, { fault: 'one node judges otherwise' });
      // Other histories show it by answers that this node alone gave, or end two nodes that were alone.
      if (broken?.includes('which are most') !== true) return undefined;
      t.match(broken, /^two ended: the state of this node differs/);
      return broken;
    }),
  );
