/**
 * Webhooks of three nodes in simulation. One seed alone, with its steps:
 * `node build/test/io/webhooks/cluster-simulation.test.js SEED`; all of some: `… FIRST LAST`.
 */
import t from 'tap';
import { depth, seeds } from '../../support/depth.ts';
import {
  simulateWebhookCluster,
  type WebhookHistoryFigures,
} from '../../support/events/webhook-cluster-simulation.ts';
import type { WebhookFault } from '../../support/events/webhook-process.ts';
import { expectCaught } from '../../support/planted-fault.ts';

/** Found once that a run of an application that had left and come back began with an empty backlog. */
const FOUND = [10];
const SEEDS = 500;
const QUICK_SEEDS = 30;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;

const [first, last = first] = process.argv.slice(2).map(Number);

function chosenSeeds(): readonly number[] {
  if (first !== undefined && last !== undefined)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return [...FOUND, ...(depth.isQuick ? seeds(SEEDS).slice(0, QUICK_SEEDS) : seeds(SEEDS))];
}

/** Longer than tap's 30 s: the machine may be busy. Seeds that are chosen by hand take as long as they take. */
t.setTimeout(first === undefined ? 600_000 : 0);

// covers C19
t.test('webhooks of a cluster: keep every promise in simulated histories', async (t) => {
  const histories = chosenSeeds();
  const figures: WebhookHistoryFigures = { faults: {}, events: 0, arrivals: 0, repeats: 0, takeovers: 0 };
  const isAlone = first !== undefined && first === last;
  const options = { figures, ...(isAlone && { trace: (line: string) => t.comment(line) }) };
  for (const seed of histories) {
    const broken = await simulateWebhookCluster(seed, options);
    if (broken !== undefined) {
      t.fail(`seed ${seed}: ${broken}; node build/test/io/webhooks/cluster-simulation.test.js ${seed}`);
      return;
    }
  }
  t.comment(`seeds ${histories[1] ?? first} to ${histories.at(-1)}: ${JSON.stringify(figures)}`);
  t.pass('no promise was broken');
});

const FAULTS: readonly WebhookFault[] = ['the lease is not asked', 'ids by chance'];

for (const fault of first === undefined ? FAULTS : []) {
  t.test(`simulation of webhooks: catches: ${fault}`, (t) =>
    expectCaught(t, FAULT_SEEDS, (seed) => simulateWebhookCluster(seed, { fault })),
  );
}
