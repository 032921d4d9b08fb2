/** Uploads of three nodes into a bucket, in simulation. */

import { seedsOf, testHistories } from '../../../support/actors/history-tests.ts';
import { simulateUploadCluster } from '../../../support/files/upload-cluster-simulation.ts';

// covers C2
testHistories('uploads of a cluster into a bucket: keep every promise in simulated histories', {
  seeds: seedsOf(500, 30),
  figures: {
    ...{ faults: {}, bodies: 0, kept: 0, files: 0, stale: 0, requests: 0, late: 0, lost: 0 },
    ...{ swept: 0, takeovers: 0 },
  },
  catches: 'simulation of uploads: catches:',
  faults: {
    'streams share names': 1,
    'a piece is acknowledged before it is stored': 2,
    'listed pieces are removed': 1,
    'a former stream is heard': 30,
    'a sweep takes what drafts list': 8,
  },
  simulate: simulateUploadCluster,
});
