/** Three nodes in simulation. */
import t from 'tap';
import { simulateCluster } from '../../../support/actors/cluster-simulation.ts';
import { isByHand, seedsOf, testHistories } from '../../../support/actors/history-tests.ts';
import { depth, seeds } from '../../../support/depth.ts';
import { expectCaught } from '../../../support/planted-fault.ts';

/** More than 10 ms of processor time each: a full run takes a twentieth, another one each day; all of them by hand. */
const SEEDS = 20_000;
const PARTS = 20;
const PART_SEEDS = SEEDS / PARTS;
const QUICK_SEEDS = 500;
const DAY_MS = 86_400_000;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;

function chosenSeeds(): readonly number[] {
  if (depth.isQuick) return seedsOf(SEEDS, QUICK_SEEDS);
  if (depth.depth === 'gate') return seeds(PART_SEEDS);
  const begin = (Math.floor(Date.now() / DAY_MS) % PARTS) * PART_SEEDS;
  return seeds(SEEDS).slice(begin, begin + PART_SEEDS);
}

testHistories('cluster: keeps every promise in simulated histories', {
  seeds: chosenSeeds(),
  figures: {
    ...{ faults: {}, acknowledged: 0, takeovers: 0, returns: 0, withdrawals: 0 },
    ...{ resolved: 0, reads: 0 },
  },
  catches: 'cluster simulation: catches:',
  faults: {
    'answers do not wait for other nodes': 1,
    'the lease is not asked': 4,
    'a node serves before its join is applied': 8,
    'claims are not judged': 13,
    'a push is applied out of order': 1,
    'messages are numbered by their sender': 1,
    'a clock that steps decides expulsions': 4,
    'a member that renews is expelled': 115,
    'clocks of members are read once': 65,
    'the lease of another node is not read': 126,
    'a question arrives after its resolution': 4,
    'a stale turn ends its node': 8,
    'messages are not judged': 25,
    'snapshots are not judged': 31,
    'owners are not judged': 117,
    'a new owner answers at once': 436,
    // covers C15
    'a trim is done twice': 24,
    'each node trims audit records by itself': 1,
  },
  simulate: simulateCluster,
});

if (!isByHand)
  t.test('cluster simulation: of three nodes the one that judges otherwise ends by itself', (t) =>
    expectCaught(t, { last: FAULT_SEEDS, shownBy: 13 }, async (seed) => {
      const broken = await simulateCluster(seed, { fault: 'one node judges otherwise' });
      // Other histories show it by answers that this node alone gave, or end two nodes that were alone.
      if (broken?.includes('which are most') !== true) return undefined;
      t.match(broken, /^two ended: the state of this node differs/);
      return broken;
    }),
  );
