/** Three nodes in simulation. One seed alone, with its steps: `node build/test/actors/runtime/log/cluster-simulation.test.js SEED`. */
import t from 'tap';
import type { PlantedFault } from '../../../support/actors/cluster-runtime.ts';
import { type HistoryFigures, simulateCluster } from '../../../support/actors/cluster-simulation.ts';
import { depth, seeds } from '../../../support/depth.ts';
import { expectCaught } from '../../../support/planted-fault.ts';

/** About 11 ms of processor time each: 20,000 are run by hand. */
const SEEDS = 4_000;
const QUICK_SEEDS = 1_000;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;

const alone = process.argv[2] === undefined ? undefined : Number(process.argv[2]);

/** Longer than tap's 30 s: the machine may be busy. */
t.setTimeout(600_000);

t.test('cluster: keeps every promise in simulated histories', async (t) => {
  const histories =
    alone === undefined ? seeds(SEEDS).slice(0, depth.depth === 'full' ? SEEDS : QUICK_SEEDS) : [alone];
  const figures: HistoryFigures = {
    faults: {},
    acknowledged: 0,
    takeovers: 0,
    returns: 0,
    resolved: 0,
    reads: 0,
  };
  const options = { figures, ...(alone !== undefined && { trace: (line: string) => t.comment(line) }) };
  const startedMs = performance.now();
  for (const seed of histories) {
    const broken = await simulateCluster(seed, options);
    if (broken !== undefined) {
      t.fail(
        `seed ${seed}: ${broken}; node build/test/actors/runtime/log/cluster-simulation.test.js ${seed}`,
      );
      return;
    }
  }
  t.comment(`${Math.round((1000 * histories.length) / (performance.now() - startedMs))} seeds/s`);
  t.comment(`${histories.length} histories: ${JSON.stringify(figures)}`);
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
  'a question arrives after its resolution',
  'a stale turn ends its node',
  'messages are not judged',
  'snapshots are not judged',
  'owners are not judged',
  'a new owner answers at once',
];

for (const fault of alone === undefined ? FAULTS : []) {
  t.test(`cluster simulation: catches: ${fault}`, (t) =>
    expectCaught(t, FAULT_SEEDS, (seed) => simulateCluster(seed, { fault })),
  );
}
