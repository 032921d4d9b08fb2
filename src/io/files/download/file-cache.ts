/**
 * What the chat module says of finished files, remembered for two seconds: a client that fetches a file in small ranges
 * costs one module call and not hundreds, and a file that was deleted or an access that was taken away holds two seconds
 * later (decision 0044). Only good answers are kept.
 */
import { GatewayError } from '../../../domain/errors.ts';
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
  /** By last question, oldest first. */
  readonly #entries = new Map<string, Entry>();
  /** Questions that are under way: who asks the same meanwhile waits for the same answer. */
  readonly #open = new Map<string, Promise<ChatFile>>();
  #asked = 0;
  #remembered = 0;

  /** Undefined: there is no chat module. */
  constructor(chatFiles: Pick<ChatFiles, 'describe'> | undefined) {
    this.#chatFiles = chatFiles;
  }

  /** What `find` would answer, where that is remembered. */
  known(fileId: string, readerId: string | null, nowMs: number): ChatFile | undefined {
    const entry = this.#entries.get(keyOf(fileId, readerId));
    if (entry === undefined) return undefined;
    const ageMs = nowMs - entry.askedMs;
    // A clock that was set back must not prolong anything.
    if (ageMs < 0 || ageMs >= REMEMBERED_MS) return undefined;
    this.#remembered += 1;
    return entry.file;
  }

  /**
   * The file as `readerId` may see it; null: whoever is entitled without being asked. Throws `FileNotFound` and the
   * module's failures.
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
      // Its age counts from the question: the module answered for some moment after it.
      if (this.#open.get(key) === question) this.#remember(key, { file, askedMs: nowMs });
      return file;
    } finally {
      if (this.#open.get(key) === question) this.#open.delete(key);
    }
  }

  /** The files are removed: nothing that was said of them is good any more, nor what is being asked now. */
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
    // A file of others and one that is not there are one answer: ids in turn would tell which files exist.
    if (!described.ok)
      throw new GatewayError(described.error === 'Forbidden' ? 'FileNotFound' : described.error);
    if (described.value.fileId !== fileId) throw new GatewayError('ModuleFailed');
    return described.value;
  }

  #remember(key: string, entry: Entry): void {
    const oldest = this.#entries.size >= ENTRIES_MAX ? this.#entries.keys().next().value : undefined;
    if (oldest !== undefined) this.#entries.delete(oldest);
    this.#entries.set(key, entry);
  }
}

function keyOf(fileId: string, readerId: string | null): string {
  return `${fileId} ${readerId ?? ''}`;
}
