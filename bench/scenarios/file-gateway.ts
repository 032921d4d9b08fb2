/** The gateway for the benches of files: no quota, the largest files, its files in a folder that can be emptied. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { signUp } from '../../kit/agent.ts';
import { eventLoopP99Ms } from '../measure/metrics.ts';
import { costOf } from '../measure/process-cost.ts';
import type { Bench } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import { gatewayUnderLoad } from '../subjects/gateway.ts';
import { storedFiles } from '../subjects/transfers.ts';

export const MIB = 1024 * 1024;
/** The hard cap (spec 8.3). */
export const LARGE_FILE_BYTES = 100 * MIB;
/** Bytes of a file that rounds move: a few of them stay within memory that was touched lately. */
export const FILE_BYTES = 20 * MIB;
/** Bytes of each of several files at once: all of them together stay within memory that was touched lately. */
export const CONCURRENT_FILE_BYTES = 5 * MIB;

/** Virtual machines give free memory to their host (free page reporting); the next writer of it waits for the host. */
export const MEMORY_NOTE =
  'On a host that takes memory back, ratios of files may spread by 10 to 30 % from run to run.';

export const NO_TARGET = 'it stores files that no public call removes, and needs a gateway without quotas';

export interface FileGateway {
  /** `gatehouse`, or that of a baseline. */
  readonly suffix: Build['suffix'];
  readonly url: string;
  readonly internal: string;
  readonly pids: readonly number[];
  readonly folder: string;
  /** One account for each stream. */
  readonly cookies: readonly string[];
  rssBytes(): number;
  eventLoopP99Ms(): Promise<number>;
  /** Removes the stored bytes, when nothing is under way. Folders and messages stay. */
  empty(): void;
}

export async function startFileGateway(
  bench: Bench,
  streams: number,
  settings: object = {},
  build: Build = { suffix: '' },
  more: object = {},
): Promise<FileGateway> {
  const folder = storedFiles(bench);
  const gateway = await gatewayUnderLoad(bench, undefined, {
    // A journal on a disk would leave the disk in the picture: a chunk of v1 waits for its commit.
    ...(bench.options.folder === undefined ? {} : { dataPath: join(storedFiles(bench), 'data') }),
    sandbox: true,
    build,
    configuration: { LocalFileStoragePath: folder, ...more },
    settings: {
      FileMaxSizeBytes: LARGE_FILE_BYTES,
      FileUploadBytesPerSecond: 0,
      FileDownloadBytesPerSecond: 0,
      ...settings,
    },
  });
  const { url, internal, pids } = gateway;
  if (internal === undefined) throw new Error('no internal listener');
  const people = await Promise.all(Array.from({ length: streams }, () => signUp(url)));
  return {
    suffix: build.suffix,
    url,
    internal,
    pids,
    folder,
    cookies: people.map(({ cookie }) => cookie),
    rssBytes: () => pids.reduce((sum, pid) => sum + (costOf(pid)?.rssBytes ?? 0), 0),
    eventLoopP99Ms: () => eventLoopP99Ms(internal),
    empty() {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
        if (entry.isFile()) rmSync(join(entry.parentPath, entry.name));
    },
  };
}
