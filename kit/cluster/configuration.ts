/** The section `Cluster` of a node on loopback, as the program reads it from a file that names no more than it must. */
import type { ClusterConfiguration } from '../../src/domain/config/configuration.ts';

/** `secret`: as in the file. */
export function loopbackCluster(url: string, secret: string): ClusterConfiguration {
  return {
    url,
    name: 'a',
    listen: '127.0.0.1:0',
    advertise: undefined,
    secret: [secret],
    tls: undefined,
    plain: false,
    leaseMilliseconds: 1_000,
    logHours: 1,
    audit: 'node',
    sharedFiles: true,
  };
}
