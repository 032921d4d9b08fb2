/**
 * Recovery before the first request: open uploads continue from journal and parts, orphaned parts are removed. After an
 * unclean stop chunks are hashed first: the journal knows some that are lost, and may not know some that are there.
 */

import { upload } from '../../../actors/files/v1/upload.ts';
import type { CheckUpload } from '../../../actors/files/v1/upload-check.ts';
import { type FreeSlot, UPLOAD_SLOTS_ID, uploadSlots } from '../../../actors/files/v1/upload-slots.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { Administration } from '../../../actors/runtime/administration.ts';
import { OWNS_ALL, type Ownership } from '../../../actors/runtime/ownership.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { FileStorage, SweepScope, WantedFiles } from '../storage/port.ts';

const META_KEY = 'filesClean';

export interface RecoveryOptions {
  readonly actors: ActorSystem;
  readonly administration: Pick<Administration, 'metaGet' | 'metaPut'>;
  readonly storage: Pick<FileStorage, 'sweep'>;
  /**
   * Limits a node to its own uploads, and hashes none of them, because acknowledged bytes are on the disk. Parts that
   * were written at or after `keepSinceMs` stay: one may be of an upload that this node does not know yet.
   */
  readonly node?: { readonly ownership: Ownership; readonly keepSinceMs: number };
}

interface RecoveryReport {
  /** The last run stopped cleanly, or there was none. */
  readonly clean: boolean;
  /** v1 uploads that are open. */
  readonly uploads: number;
  readonly chunksLost: number;
  /** Acknowledged, or written, shortly before the stop: the journal did not know them. */
  readonly chunksFound: number;
  readonly partsSwept: number;
}

/** On one machine before the first request: an upload must not complete before its bytes were checked. */
export async function recoverUploads(options: RecoveryOptions): Promise<RecoveryReport> {
  const { actors, administration, storage, node } = options;
  const { ownership } = node ?? { ownership: OWNS_ALL };
  const clean = node === undefined && administration.metaGet(META_KEY) === true;
  if (node === undefined) await administration.metaPut(META_KEY, false);
  const all = await actors.query(uploadSlots, UPLOAD_SLOTS_ID, { type: 'slots' });
  const slots = all.filter(({ userId }) => ownership.owns(upload.kind, userId));
  const checked = await Promise.all(
    slots.map(({ userId, uploadKey }) => {
      const command: CheckUpload = { type: 'checkUpload', uploadKey, rehash: !clean && node === undefined };
      return actors.ask(upload, userId, command);
    }),
  );
  const open = await openFiles(actors, all);
  const ended = node === undefined ? slots.filter((_, at) => open[at]?.length === 0) : [];
  // Messages under way free these slots too, but the first request must find them free. Other nodes may be opening theirs.
  await Promise.all(
    ended.map(({ uploadKey, userId }) => {
      const command: FreeSlot = { type: 'freeSlot', uploadKey, userId };
      return actors.ask(uploadSlots, UPLOAD_SLOTS_ID, command);
    }),
  );
  const parts = wantedAmong(actors, open);
  // Uploads and drafts of an owner have one home.
  const scope = node && {
    includes: (owner: string) => ownership.owns(upload.kind, owner),
    keepSinceMs: node.keepSinceMs,
  };
  const partsSwept = await sweep(storage, parts, scope);
  const chunksLost = checked.reduce((sum, { lost }) => sum + lost, 0);
  const chunksFound = checked.reduce((sum, { found }) => sum + found, 0);
  return { clean, uploads: slots.length - ended.length, chunksLost, chunksFound, partsSwept };
}

/** Files of uploads and drafts that are open. Of a cluster, at all nodes. */
export async function wantedFiles(actors: ActorSystem): Promise<WantedFiles> {
  const slots = await actors.query(uploadSlots, UPLOAD_SLOTS_ID, { type: 'slots' });
  return wantedAmong(actors, await openFiles(actors, slots));
}

/** File ids of the v1 upload of each slot. */
function openFiles(
  actors: ActorSystem,
  slots: readonly { readonly userId: string }[],
): Promise<(readonly string[])[]> {
  return Promise.all(slots.map(({ userId }) => actors.query(upload, userId, { type: 'fileIds' })));
}

function wantedAmong(actors: ActorSystem, uploads: readonly (readonly string[])[]): WantedFiles {
  const wanted = new Set(uploads.flat());
  return { has: (fileId) => wanted.has(fileId) || actors.lookup('draft', fileId) !== undefined };
}

/** A part that remains only takes space: the failure is logged, and the gateway starts. */
async function sweep(
  storage: Pick<FileStorage, 'sweep'>,
  wanted: WantedFiles,
  scope: SweepScope | undefined,
): Promise<number> {
  try {
    return await storage.sweep(wanted, scope);
  } catch (error) {
    if (error instanceof GatewayError) return 0;
    throw error;
  }
}

/** The last record of a run, once nothing is received any more. */
export async function noteCleanStop(administration: Pick<Administration, 'metaPut'>): Promise<void> {
  await administration.metaPut(META_KEY, true);
}
