/**
 * Uploads of three nodes into a bucket, in simulation. One seed alone, with its steps:
 * `node build/test/io/files/upload/cluster-simulation.test.js SEED`; all of some: `… FIRST LAST`.
 */
import t from 'tap';
import { depth, seeds } from '../../../support/depth.ts';
import type { BucketFault } from '../../../support/files/simulated-bucket.ts';
import {
  simulateUploadCluster,
  type UploadHistoryFigures,
} from '../../../support/files/upload-cluster-simulation.ts';
import { expectCaught } from '../../../support/planted-fault.ts';

const SEEDS = 500;
const QUICK_SEEDS = 30;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;

const [first, last = first] = process.argv.slice(2).map(Number);

function chosenSeeds(): readonly number[] {
  if (first !== undefined && last !== undefined)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return depth.isQuick ? seeds(SEEDS).slice(0, QUICK_SEEDS) : seeds(SEEDS);
}

/** Longer than tap's 30 s: the machine may be busy. Seeds that are chosen by hand take as long as they take. */
t.setTimeout(first === undefined ? 600_000 : 0);

// covers C2
t.test('uploads of a cluster into a bucket: keep every promise in simulated histories', async (t) => {
  const histories = chosenSeeds();
  const figures: UploadHistoryFigures = {
    ...{ faults: {}, bodies: 0, kept: 0, files: 0, stale: 0, requests: 0, late: 0, lost: 0 },
    ...{ swept: 0, takeovers: 0 },
  };
  const isAlone = first !== undefined && first === last;
  const options = { figures, ...(isAlone && { trace: (line: string) => t.comment(line) }) };
  for (const seed of histories) {
    const broken = await simulateUploadCluster(seed, options);
    if (broken !== undefined) {
      t.fail(`seed ${seed}: ${broken}; node build/test/io/files/upload/cluster-simulation.test.js ${seed}`);
      return;
    }
  }
  t.comment(`seeds ${histories[0]} to ${histories.at(-1)}: ${JSON.stringify(figures)}`);
  t.pass('no promise was broken');
});

const FAULTS: readonly BucketFault[] = [
  'streams share names',
  'a piece is acknowledged before it is stored',
  'listed pieces are removed',
  'a former stream is heard',
  'a sweep takes what drafts list',
];

for (const fault of first === undefined ? FAULTS : []) {
  t.test(`simulation of uploads: catches: ${fault}`, (t) =>
    expectCaught(t, FAULT_SEEDS, (seed) => simulateUploadCluster(seed, { fault })),
  );
}
