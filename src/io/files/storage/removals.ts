/**
 * Removes files whose messages the chat module has deleted (docs/modules.md "Files"). Authenticates the module and keeps
 * uploads under way: the gateway removes those itself when they fail.
 */

import { upload } from '../../../actors/files/v1/upload.ts';
import { UPLOAD_SLOTS_ID, uploadSlots } from '../../../actors/files/v1/upload-slots.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import { GatewayError } from '../../../domain/errors.ts';
import type { FileKey } from '../../../domain/files/files.ts';
import { parseId } from '../../../domain/ids.ts';
import { parseJson } from '../../http/exchange/json.ts';
import type { ModuleKeys } from '../../modules/module-keys.ts';
import type { FileMetadataCache } from '../download/file-cache.ts';
import type { FileStorage } from './port.ts';

const REMOVALS_PER_REQUEST_MAX = 1_000;
/** Bytes of one request's body; a file takes some 70 bytes. */
export const REMOVALS_BODY_MAX_BYTES = 256 * 1024;
/** Concurrent requests; one more is refused with `Overloaded`. */
const REQUESTS_MAX = 4;
/** Files of one request that are removed at the same time. */
const AT_ONCE = 8;
const FILE_MODULE = 'chat';

interface FileRemovalsOptions {
  readonly keys: ModuleKeys;
  readonly actors: Pick<ActorSystem, 'query' | 'lookup' | 'audit'>;
  readonly storage: Pick<FileStorage, 'removeFinished'>;
  readonly fileCache: Pick<FileMetadataCache, 'forget'>;
  readonly clock: () => number;
}

export interface Removed {
  /** Files that existed and are removed. */
  readonly removed: number;
}

export class FileRemovals {
  readonly #options: FileRemovalsOptions;
  #requests = 0;

  constructor(options: FileRemovalsOptions) {
    this.#options = options;
  }

  /**
   * Removes the files that a body names. Rejects with `AccessDenied`, `InvalidInput`, `Overloaded` and the storage's
   * failures; after one of those the same request may be repeated.
   */
  async remove(key: string | undefined, body: Buffer): Promise<Removed> {
    if (!this.#options.keys.openedBy(key).has(FILE_MODULE))
      throw new GatewayError('AccessDenied', 'X-Module-Key is the key of another module');
    const files = readFiles(parseJson(body));
    if (this.#requests >= REQUESTS_MAX) throw new GatewayError('Overloaded');
    this.#requests += 1;
    try {
      return await this.#removeAll(files);
    } finally {
      this.#requests -= 1;
    }
  }

  async #removeAll(files: readonly FileKey[]): Promise<Removed> {
    const { actors, storage, fileCache, clock } = this.#options;
    const uploading = await this.#uploading(files);
    const waiting = files
      .filter(({ fileId }) => !uploading.has(fileId) && actors.lookup('draft', fileId) === undefined)
      .values();
    fileCache.forget(new Set(files.map(({ fileId }) => fileId)));
    let removed = 0;
    const failures: unknown[] = [];
    const work = async () => {
      for (const file of waiting) {
        if (failures.length > 0) return;
        try {
          if (await storage.removeFinished(file)) removed += 1;
        } catch (error) {
          failures.push(error);
        }
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    const failed = failures.length > 0;
    if (removed > 0 || failed) {
      const fields = { module: FILE_MODULE, asked: files.length, removed, failed };
      actors.audit({ utcMs: clock(), event: 'file_removed', userId: null, fields });
    }
    if (failed) throw failures[0];
    return { removed };
  }

  /** File ids of open v1 uploads of these owners. There are 60 slots in all, so these are few queries. */
  async #uploading(files: readonly FileKey[]): Promise<ReadonlySet<string>> {
    const { actors } = this.#options;
    const owners = new Set(files.map(({ owner }) => owner));
    const slots = await actors.query(uploadSlots, UPLOAD_SLOTS_ID, { type: 'slots' });
    const held = await Promise.all(
      slots
        .filter(({ userId }) => owners.has(userId))
        .map(({ userId }) => actors.query(upload, userId, { type: 'fileIds' })),
    );
    return new Set(held.flat());
  }
}

/** Each file once. Throws `InvalidInput` that names the field. */
function readFiles(body: unknown): FileKey[] {
  const list = isRecord(body) ? body['files'] : undefined;
  if (!Array.isArray(list)) throw new GatewayError('InvalidInput', 'files: an array is required');
  if (list.length > REMOVALS_PER_REQUEST_MAX)
    throw new GatewayError('InvalidInput', `files: at most ${REMOVALS_PER_REQUEST_MAX}`);
  const files = new Map<string, FileKey>();
  for (const [index, item] of list.entries()) {
    const owner = readId(item, 'ownerId', index);
    const fileId = readId(item, 'fileId', index);
    files.set(`${owner}/${fileId}`, { owner, fileId });
  }
  return [...files.values()];
}

function readId(item: unknown, field: string, index: number): string {
  const value = isRecord(item) ? item[field] : undefined;
  const id = typeof value === 'string' ? parseId(value) : undefined;
  if (id === undefined)
    throw new GatewayError(
      'InvalidInput',
      `files.${index}.${field}: a decimal int64 as a string is required`,
    );
  return id;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
