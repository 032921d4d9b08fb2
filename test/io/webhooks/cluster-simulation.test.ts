/** Webhooks of three nodes in simulation. */

import { seedsOf, testHistories } from '../../support/actors/history-tests.ts';
import { simulateWebhookCluster } from '../../support/events/webhook-cluster-simulation.ts';

/** Found once that a run of an application that had left and come back began with an empty backlog. */
const FOUND = 10;

// covers C19
testHistories('webhooks of a cluster: keep every promise in simulated histories', {
  seeds: [FOUND, ...seedsOf(500, 30)],
  figures: { faults: {}, events: 0, arrivals: 0, repeats: 0, takeovers: 0 },
  catches: 'simulation of webhooks: catches:',
  faults: { 'the lease is not asked': 75, 'ids by chance': 2 },
  simulate: simulateWebhookCluster,
});
