/** The proof that a node shares its folder of files, as the rest of the gateway uses it. */
import { randomBytes } from 'node:crypto';
import { nodeSchedule } from '../../actors/runtime/runtime-context.ts';
import type { FeatureFacts } from '../../domain/features.ts';
import { FolderProof } from '../../io/files/storage/folder-proof.ts';
import type { Markers } from '../../io/files/storage/marker-folder.ts';
import { type Log, onceAMinute } from '../../io/observability/log.ts';
import type { KnownNodes } from './nodes.ts';

const MARKER_BYTES = 16;
const monotonicMs = () => performance.now();

export interface SharedFolder {
  /** Facts that decide which features this node offers. */
  features(): FeatureFacts;
  /** The folder of files is that of the other nodes, or no folder is shared. */
  readonly sharesFiles: () => boolean;
  /** Proves from now on that the folder with these markers is that of the other nodes. Call it before `join`. */
  shareFolder(markers: Markers): void;
  /** Resolves when the folder was found shared for the first time. */
  folderShared(): Promise<void>;
}

export function folderOf(known: KnownNodes, log: Log): SharedFolder {
  const { watch, work } = known;
  const isDue = onceAMinute(monotonicMs);
  const sharesFiles = () => known.proof?.isShared !== false;
  return {
    features: () => ({ membersReadEvents: work.membersReadEvents, sharesFiles: sharesFiles() }),
    sharesFiles,
    shareFolder(markers) {
      known.proof = new FolderProof({
        markers,
        newValue: () => randomBytes(MARKER_BYTES).toString('hex'),
        schedule: nodeSchedule,
        monotonicMs,
        onChange: (isShared, missing) => watch.sharesFolder(isShared, missing),
        onFault(error) {
          if (isDue('fault')) log.write('markerFailed', { err: error });
        },
      });
    },
    folderShared: async () => known.proof?.shared(),
  };
}
