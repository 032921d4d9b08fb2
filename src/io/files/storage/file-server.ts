/** Port of what keeps files apart from this machine: an HTTP server (storage-server.ts), or a bucket (s3/bucket.ts). */
import type { ReadableFile } from './file-body.ts';

/** Bytes that are sent: a file whose ranges can be hashed beforehand. */
export interface SentFile extends ReadableFile {
  /** CRC-32 of a range within the file. */
  crc32Of(position: number, lengthBytes: number): Promise<number>;
}

/** Form in which a browser shows the target of a link. */
export interface LinkForm {
  readonly contentType: string;
  readonly contentDisposition: string;
  readonly cacheControl: string;
}

/** Result of a sweep of file servers. */
export interface Swept {
  /** Transfers and objects that were ended. */
  readonly ended: number;
  /** It came to its bound: the next sweep continues. */
  readonly hasMore: boolean;
}

/** Paths begin with `/`. Every failure is an error that names the server. */
export interface FileServer {
  /** Bytes of a file; undefined when there is none. */
  sizeOf(path: string): Promise<number | undefined>;
  /** Fills `target`, which is not empty and lies within the file. */
  read(path: string, target: Uint8Array, position: number): Promise<void>;
  /** The whole file is there afterwards, or an earlier one, which the caller finds by its size. */
  put(path: string, file: SentFile): Promise<void>;
  /** False when the file did not exist. */
  remove(path: string): Promise<boolean>;
  /** At start: rejects with `FileServerUnusable` when it lacks what the gateway needs. */
  probe?(): Promise<void>;
  /** Ends what transfers left behind that were begun before this moment. */
  sweep?(beforeMs: number): Promise<Swept>;
  /** An address at which a client gets the file itself for a minute; absent where clients must not. */
  linkTo?(path: string, form: LinkForm): string;
  close(): void;
}

/** `isAnswered`: it answered, and its answer was not what the gateway needs; otherwise it may answer later. */
export class FileServerUnusable extends Error {
  readonly isAnswered: boolean;

  constructor(message: string, isAnswered: boolean) {
    super(message);
    this.isAnswered = isAnswered;
  }
}
