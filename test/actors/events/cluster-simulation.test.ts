/**
 * The log of events of three nodes in simulation. One seed alone, with its steps:
 * `node build/test/actors/events/cluster-simulation.test.js SEED`; all of some: `… FIRST LAST`, with so many streams: `… FIRST LAST STREAMS`.
 */
import t from 'tap';
import { depth, seeds } from '../../support/depth.ts';
import {
  type EventHistoryFigures,
  simulateEventCluster,
} from '../../support/events/event-cluster-simulation.ts';
import type { EventFault } from '../../support/events/event-faults.ts';
import { expectCaught } from '../../support/planted-fault.ts';

const SEEDS = 1_000;
const QUICK_SEEDS = 100;
/** Seeds within which a planted fault must show. */
const FAULT_SEEDS = 500;

const [first, last = first, streams] = process.argv.slice(2).map(Number);

function chosenSeeds(): readonly number[] {
  if (first !== undefined && last !== undefined)
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return depth.isQuick ? seeds(SEEDS).slice(0, QUICK_SEEDS) : seeds(SEEDS);
}

/** Longer than tap's 30 s: the machine may be busy. Seeds that are chosen by hand take as long as they take. */
t.setTimeout(first === undefined ? 600_000 : 0);

t.test('events of a cluster: keeps every promise in simulated histories', async (t) => {
  const histories = chosenSeeds();
  const figures: EventHistoryFigures = { faults: {}, acknowledged: 0, polled: 0, takeovers: 0, resumed: 0 };
  const isAlone = first !== undefined && first === last;
  const given = streams === undefined ? {} : { streams };
  const options = { figures, ...given, ...(isAlone && { trace: (line: string) => t.comment(line) }) };
  for (const seed of histories) {
    const broken = await simulateEventCluster(seed, options);
    if (broken !== undefined) {
      t.fail(`seed ${seed}: ${broken}; node build/test/actors/events/cluster-simulation.test.js ${seed}`);
      return;
    }
  }
  t.comment(`seeds ${histories[0]} to ${histories.at(-1)}: ${JSON.stringify(figures)}`);
  t.pass('no promise was broken');
});

const FAULTS: readonly EventFault[] = [
  'a number from memory',
  'an accept that is not deduplicated',
  'a release that is not judged',
  'a fenced release that stops a node',
  'a position that is not waited for',
];

for (const fault of first === undefined ? FAULTS : []) {
  t.test(`simulation of events: catches: ${fault}`, (t) =>
    expectCaught(t, FAULT_SEEDS, (seed) => simulateEventCluster(seed, { fault })),
  );
}
