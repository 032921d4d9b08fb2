/** Requests of actors to the outside. Types only: io implements them, the entry plugs them in. */
import type { SealedKey } from '../../domain/apps.ts';
import type { ContactChannel } from '../../domain/contacts.ts';
import type { ErrorName } from '../../domain/errors.ts';
import type { ChunkBytes, FileKey } from '../../domain/files/files.ts';
import type { FileSegment, SegmentRange } from '../../domain/files/segments.ts';
import type { WebhookNotice } from '../../domain/webhooks/types.ts';
import type { TaskInput, TaskName, TaskOutput } from '../../workers/tasks.ts';

/** Ports resolve with a failure value and never reject. */
export type PortResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: ErrorName };

export interface WorkerPort {
  /**
   * Refuses with `Overloaded` when the queue is full, with `InternalError` when the worker died, with `TaskTimedOut`. A
   * task that holds a file resolves when nothing uses it any more; `late` tells when its caller has waited long enough.
   */
  run<N extends TaskName>(
    name: N,
    input: TaskInput<N>,
    late?: () => void,
  ): Promise<PortResult<TaskOutput<N>>>;
}

/** One-time codes: what is secret about them stays behind this port (decision 0014). */
export interface CodePort {
  /** Sends the code of this seed. Any failure may be tried again: the same seed is the same code. */
  deliver(message: CodeMessage): Promise<PortResult<null>>;
  /** Is this the code of the seed? Compared in constant time. */
  matches(source: CodeSource, code: string): Promise<PortResult<boolean>>;
}

/** Values that a code is derived from. */
export interface CodeSource {
  /** 32 random bytes, base64url. */
  readonly seed: string;
  readonly digits: number;
}

export interface CodeMessage extends CodeSource {
  readonly channel: ContactChannel;
  readonly address: string;
}

/** A file under upload: a pending message of the chat module, not visible yet (spec 3). */
export interface PendingFile {
  /** The gateway's name of the upload, at most 64 characters: the same key again is the same file. */
  readonly uploadKey: string;
  readonly userId: string;
  /** Null: the personal-storage chat of the user, made when it is not there (spec 4.6 rule 3). */
  readonly chatId: string | null;
  readonly name: string;
  /** Null: not known yet. */
  readonly sizeBytes: number | null;
  readonly message?: string | undefined;
  readonly linkedMessageId?: string | undefined;
  /** Kept verbatim on the message (spec 4.7), at most 128 characters. */
  readonly declaredCrc32?: string | undefined;
}

export interface CompleteFile {
  readonly fileId: string;
  readonly userId: string;
  readonly sizeBytes: number;
  /** Unsigned, of all bytes. */
  readonly crc32: number;
  /** Digest of all bytes, 64 hexadecimal digits, where the uploader gave it and it was checked. */
  readonly sha256?: string;
}

/** Messages of files in the chat module. Every call may be made again with the same outcome. */
export interface ChatFilePort {
  /**
   * `Forbidden`: not a member, or no such chat. `LinkedMessageNotFound`: no such message in the chat.
   * `ChartApiFileError`: whatever else went wrong; it may have happened.
   */
  create(file: PendingFile): Promise<PortResult<{ readonly fileId: string }>>;
  /** `Forbidden`: blocked, or no longer a member. `ChartApiFileError`: whatever else; it may have happened. */
  complete(file: CompleteFile): Promise<PortResult<null>>;
  /** Removes the message, pending or complete. Any failure may be tried again, and has to be. */
  cancel(uploadKey: string): Promise<PortResult<null>>;
}

/**
 * Bytes of files as actors see them; each method is one of `FileStorage` (io/files/storage/port.ts), where it is explained.
 * Fails with `StorageFull` or `FileStorageFailed`. Every one may be repeated.
 */
export interface FilePort {
  readonly isShared: boolean;
  /** True if the acknowledged bytes of an upload are in a bucket: no crash takes them. */
  readonly isDurable: boolean;
  create(key: FileKey): Promise<PortResult<null>>;
  publish(key: FileKey, sizeBytes: number, partBytesMax?: number): Promise<PortResult<null>>;
  /** Numbers of the chunks that have other bytes: then nothing is published. */
  publishCopy(key: FileKey, chunks: readonly ChunkBytes[]): Promise<PortResult<readonly number[]>>;
  /** False: the bytes are not those that were listed. */
  publishSegments(key: FileKey, segments: readonly FileSegment[]): Promise<PortResult<boolean>>;
  remove(key: FileKey): Promise<PortResult<null>>;
  removeSegments(key: FileKey, numbers: readonly number[]): Promise<PortResult<null>>;
  reserve(holder: string, sizeBytes: number): Promise<PortResult<null>>;
  release(holder: string): void;
  /**
   * CRC-32 of each chunk in the table of a v1 part (domain/files/chunk-table.ts), null where it has no entry; all of
   * them null when the part is gone.
   */
  readTable(key: FileKey, sizeBytes: number): Promise<PortResult<readonly (number | null)[]>>;
  /**
   * CRC-32 of each range of a part as it lies on the disk, for what a crash may have taken. Undefined for a range that
   * is not there in full, all of them undefined when the part is gone.
   */
  hashRanges(
    key: FileKey,
    ranges: readonly FileSection[],
  ): Promise<PortResult<readonly (number | undefined)[]>>;
  /** The same of one segment of a file, from its beginning up to this position of the file. */
  hashSegment(key: FileKey, segment: SegmentRange, endBytes: number): Promise<PortResult<number | undefined>>;
}

export interface FileSection {
  readonly positionBytes: number;
  readonly lengthBytes: number;
}

/** Webhook deliveries, and notices of them to owners. */
export interface WebhookPort {
  /** The application changed: address, filters, accounts that allow it, or state. */
  changed(appId: string): void;
  tell(notice: WebhookNotice): Promise<PortResult<null>>;
}

/** A credential for another MCP server after its refresh. */
export interface RenewedUpstream {
  readonly sealed: SealedKey;
  readonly expiresMs: number | null;
}

export interface UpstreamPort {
  /** `UpstreamLoginRequired`: the grant is over. After any other failure the refresh token may work, or may be used up. */
  refresh(given: {
    readonly server: string;
    readonly url: string;
    readonly sealed: SealedKey;
  }): Promise<PortResult<RenewedUpstream>>;
}

/** Modules that want to know of removed accounts. */
export interface AccountEventPort {
  /** Tells these, all while it is null. Resolves with those that did not confirm it. */
  tellRemoval(userId: string, modules: readonly string[] | null): Promise<readonly string[]>;
  /** They are not asked again. */
  gaveUp(userId: string, modules: readonly string[]): void;
}

export interface Ports {
  readonly workers: WorkerPort;
  /** Absent only in tests without files. */
  readonly files?: FilePort;
  /** Absent: no module delivers codes. */
  readonly codes?: CodePort;
  /** Absent: no module keeps messages of files. */
  readonly chatFiles?: ChatFilePort;
  /** Absent: no module is notified. */
  readonly accountEvents?: AccountEventPort;
  /** Absent: nothing is delivered. */
  readonly webhooks?: WebhookPort;
  /** Absent only in tests: nothing is refreshed. */
  readonly upstreams?: UpstreamPort;
}
