/**
 * Metadata of finished files from the chat module, cached for two seconds, so that a client that fetches small ranges
 * costs one module call. A deletion or a revoked access takes effect within that time (docs/decisions/0043).
 */

import { GatewayError } from '../../../domain/errors.ts';
import { keepNewest } from '../../../domain/limits/newest.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { ChatFile, ChatFiles } from '../../modules/chat-files.ts';

const REMEMBERED_MS = 2 * SECOND_MS;
const ENTRIES_MAX = 4_096;

interface Entry {
  readonly file: ChatFile;
  readonly askedMs: number;
}

export interface FileMetadataCacheCounters {
  readonly entries: number;
  readonly asked: number;
  readonly remembered: number;
}

export class FileMetadataCache {
  readonly #chatFiles: Pick<ChatFiles, 'describe'> | undefined;
  /** Entries by last request, oldest first. */
  readonly #entries = new Map<string, Entry>();
  /** Module calls under way: the same request meanwhile shares their answer. */
  readonly #open = new Map<string, Promise<ChatFile>>();
  #asked = 0;
  #remembered = 0;

  /** Undefined: there is no chat module. */
  constructor(chatFiles: Pick<ChatFiles, 'describe'> | undefined) {
    this.#chatFiles = chatFiles;
  }

  /** The cached answer of `find`, if any. */
  known(fileId: string, readerId: string | null, nowMs: number): ChatFile | undefined {
    const entry = this.#entries.get(keyOf(fileId, readerId));
    if (entry === undefined) return undefined;
    const ageMs = nowMs - entry.askedMs;
    // A clock that was set back must not extend an entry.
    if (ageMs < 0 || ageMs >= REMEMBERED_MS) return undefined;
    this.#remembered += 1;
    return entry.file;
  }

  /**
   * The file if `readerId` may read it; null: access is not checked. Throws `FileNotFound` and the module's failures.
   */
  async find(fileId: string, readerId: string | null, nowMs: number): Promise<ChatFile> {
    const known = this.known(fileId, readerId, nowMs);
    if (known !== undefined) return known;
    const key = keyOf(fileId, readerId);
    this.#entries.delete(key);
    const open = this.#open.get(key);
    if (open !== undefined) return open;
    const question = this.#ask(fileId, readerId);
    this.#open.set(key, question);
    try {
      const file = await question;
      // The age counts from the call: the module's answer describes a later moment.
      if (this.#open.get(key) === question)
        keepNewest(this.#entries, ENTRIES_MAX, key, { file, askedMs: nowMs });
      return file;
    } finally {
      if (this.#open.get(key) === question) this.#open.delete(key);
    }
  }

  /** The files are removed: entries and calls under way are invalid. */
  forget(fileIds: ReadonlySet<string>): void {
    for (const known of [this.#entries, this.#open])
      for (const key of known.keys()) if (fileIds.has(key.slice(0, key.indexOf(' ')))) known.delete(key);
  }

  counters(): FileMetadataCacheCounters {
    return { entries: this.#entries.size, asked: this.#asked, remembered: this.#remembered };
  }

  async #ask(fileId: string, readerId: string | null): Promise<ChatFile> {
    if (this.#chatFiles === undefined) throw new GatewayError('ModuleUnavailable');
    this.#asked += 1;
    const described = await this.#chatFiles.describe(fileId, readerId);
    // The same answer as for a missing file, so that ids cannot be probed.
    if (!described.ok)
      throw new GatewayError(described.error === 'Forbidden' ? 'FileNotFound' : described.error);
    if (described.value.fileId !== fileId) throw new GatewayError('ModuleFailed');
    return described.value;
  }
}

function keyOf(fileId: string, readerId: string | null): string {
  return `${fileId} ${readerId ?? ''}`;
}
