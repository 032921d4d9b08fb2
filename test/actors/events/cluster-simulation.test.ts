/** The log of events of three nodes in simulation; by hand with so many streams: `… FIRST LAST STREAMS`. */

import { seedsOf, testHistories } from '../../support/actors/history-tests.ts';
import { simulateEventCluster } from '../../support/events/event-cluster-simulation.ts';

const streams = process.argv[4];

testHistories('events of a cluster: keeps every promise in simulated histories', {
  seeds: seedsOf(1_000, 100),
  figures: { faults: {}, acknowledged: 0, polled: 0, takeovers: 0, resumed: 0 },
  catches: 'simulation of events: catches:',
  faults: {
    'a number from memory': 1,
    'an accept that is not deduplicated': 1,
    'a release that is not judged': 71,
    'a fenced release that stops a node': 128,
    'a position that is not waited for': 25,
  },
  simulate: (seed, options) =>
    simulateEventCluster(seed, { ...options, ...(streams !== undefined && { streams: Number(streams) }) }),
});
