/** The section `Cluster`: its form in the program, and faults that depend on several keys. */
import { type ClusterConfiguration, DEFAULTS } from '../domain/config/configuration.ts';
import type { ConfigurationFile } from '../domain/config/file.ts';
import { parseHostPort } from '../domain/host-port.ts';
import { isLoopback } from '../domain/limits/networks.ts';
import type { Fault } from '../domain/schema.ts';
import { isRecord } from './source.ts';

/** Undefined without the section: one process with a journal of its own. */
export function resolveCluster({ Cluster: given }: ConfigurationFile): ClusterConfiguration | undefined {
  if (given === undefined) return undefined;
  return {
    url: given.url,
    name: given.name,
    listen: given.listen ?? DEFAULTS['Cluster.listen'],
    advertise: given.advertise,
    secret: [given.secret].flat(),
    tls: given.tls,
    plain: given.plain ?? DEFAULTS['Cluster.plain'],
    leaseMilliseconds: given.leaseMilliseconds ?? DEFAULTS['Cluster.leaseMilliseconds'],
    logHours: given.logHours ?? DEFAULTS['Cluster.logHours'],
    audit: given.audit ?? DEFAULTS['Cluster.audit'],
    sharedFiles: given.sharedFiles ?? DEFAULTS['Cluster.sharedFiles'],
  };
}

/** Faults of a file as written; `sandbox`: sandbox modules would run. */
export function clusterFaults(file: unknown, sandbox: boolean): readonly Fault[] {
  const cluster = isRecord(file) ? file['Cluster'] : undefined;
  if (!isRecord(cluster)) return [];
  const faults: Fault[] = [];
  if (sandbox)
    faults.push({
      path: 'Cluster',
      message:
        'the sandbox of one process cannot serve other nodes: name a configuration with --config, leave out --sandbox, and name the modules in Modules',
    });
  const place = FILE_PLACES.find(({ isFaulty }) => isFaulty(filePlaceOf(file, cluster)));
  if (place !== undefined) faults.push(place.fault);
  const { listen, advertise, tls, plain } = cluster;
  const address = typeof listen === 'string' ? parseHostPort(listen) : undefined;
  if (address !== undefined && !isLoopback(address.host) && tls === undefined && plain !== true)
    faults.push({
      path: 'Cluster.tls',
      message:
        'is needed, as Cluster.listen is not a loopback address; a private network may set Cluster.plain',
    });
  if (address !== undefined && advertise === undefined && isWildcard(address.host))
    faults.push({
      path: 'Cluster.advertise',
      message: 'is needed, as other nodes cannot connect to the address of Cluster.listen',
    });
  return faults;
}

/** Keys of a configuration file that say where files are kept. */
interface FilePlace {
  readonly hasFolder: boolean;
  readonly isShared: boolean;
  readonly hasServers: boolean;
  readonly hasStaging: boolean;
  /** Each of them is a bucket, which gets uploads as they arrive. */
  readonly areBuckets: boolean;
}

function filePlaceOf(file: unknown, cluster: Readonly<Record<string, unknown>>): FilePlace {
  const given = isRecord(file) ? file : {};
  const servers = Object.values(isRecord(given['FileServers']) ? given['FileServers'] : {});
  return {
    hasFolder: given['LocalFileStoragePath'] !== undefined,
    isShared: cluster['sharedFiles'] === true,
    hasServers: servers.length > 0,
    hasStaging: given['FileStagingPath'] !== undefined,
    areBuckets: servers.every((server) => isRecord(server) && server['S3'] !== undefined),
  };
}

/** Places of files that not all nodes reach. The first that is found is named. */
const FILE_PLACES: readonly { readonly isFaulty: (place: FilePlace) => boolean; readonly fault: Fault }[] = [
  {
    isFaulty: ({ hasFolder, isShared }) => isShared && !hasFolder,
    fault: {
      path: 'Cluster.sharedFiles',
      message: 'needs LocalFileStoragePath: the folder that all nodes share',
    },
  },
  {
    isFaulty: ({ hasFolder, isShared }) => hasFolder && !isShared,
    fault: {
      path: 'LocalFileStoragePath',
      message: 'must be one folder that all nodes share, with Cluster.sharedFiles true',
    },
  },
  {
    isFaulty: ({ hasFolder, hasServers, hasStaging, areBuckets }) =>
      !hasFolder && hasServers && !hasStaging && !areBuckets,
    fault: {
      path: 'FileServers',
      message:
        'need FileStagingPath with Cluster, the folder that all nodes share for uploads under way, unless all are S3',
    },
  },
  {
    isFaulty: ({ hasFolder, hasServers }) => !hasFolder && !hasServers,
    fault: {
      path: 'Cluster',
      message:
        'needs a place of files that all nodes reach: LocalFileStoragePath with Cluster.sharedFiles true, FileServers that are all S3, or FileServers with FileStagingPath',
    },
  },
];

function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}
