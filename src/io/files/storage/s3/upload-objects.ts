/**
 * Objects of uploads under way, at `{Prefix}uploads/{id of the log}/{owner}/{fileId}.{name}`. A name says what the bytes are,
 * and never gets others: what a late writer sends is the same, or nothing asks for it and a sweep removes it.
 */
import type { FileKey } from '../../../../domain/files/files.ts';
import { parseId } from '../../../../domain/ids.ts';
import type { ReadableFile } from '../file-body.ts';
import type { Swept } from '../file-server.ts';
import type { WantedFiles } from '../port.ts';
import { type BucketAnswer, type BucketClient, isMissing } from './client.ts';
import { BucketList, OBJECTS } from './lists.ts';
import { crc32Text, type PartSlots } from './multipart.ts';
import { textOf } from './xml.ts';

const REMOVED_AT_ONCE = 8;

interface UploadObjectsOptions {
  readonly client: BucketClient;
  readonly slots: PartSlots;
  readonly bucket: string;
  readonly prefix: string;
  readonly logId: string;
}

export class UploadObjects {
  readonly #client: BucketClient;
  readonly #slots: PartSlots;
  readonly #bucket: string;
  readonly #root: string;
  readonly #swept: BucketList;

  constructor({ client, slots, bucket, prefix, logId }: UploadObjectsOptions) {
    this.#client = client;
    this.#slots = slots;
    this.#bucket = bucket;
    this.#root = `${prefix}uploads/${logId}/`;
    this.#swept = new BucketList(client, OBJECTS, this.#root);
  }

  /** One of the eight bodies that are sent at once. */
  async put(key: FileKey, name: string, body: ReadableFile, crc32: number): Promise<void> {
    const path = this.#pathOf(key, name);
    const headers = objectHeaders(crc32);
    const send = () => this.#client.ask({ method: 'PUT', path, headers, body });
    const answer = await this.#slots.run(send);
    if (answer.status !== 200) throw this.#client.refusal('PUT', answer);
  }

  /** Fills `target` from `position` of the object on. False when there is no such object. */
  async read(key: FileKey, name: string, target: Uint8Array, position: number): Promise<boolean> {
    const path = this.#pathOf(key, name);
    const answer = await this.#client.ask({ method: 'GET', path, target: { bytes: target, position } });
    if (isMissing(answer)) return false;
    if (answer.status !== 206) throw this.#client.refusal('GET', answer);
    return true;
  }

  /** Bytes of an object; undefined when there is none. */
  sizeOf(key: FileKey, name: string): Promise<number | undefined> {
    return this.#client.sizeOf(this.#pathOf(key, name));
  }

  /** For a copy within the bucket. */
  sourceOf(key: FileKey, name: string): string {
    return `/${this.#bucket}${this.#pathOf(key, name)}`;
  }

  /** Those of a file that are chosen by name, whichever stream sent them. */
  async remove(key: FileKey, isChosen: (name: string) => boolean): Promise<void> {
    const prefix = `${this.#root}${key.owner}/${key.fileId}.`;
    const rows = new BucketList(this.#client, OBJECTS, prefix).rows();
    const work = async () => {
      for await (const row of rows) {
        const path = textOf(row, 'Key') ?? '';
        if (isChosen(path.slice(prefix.length))) await this.#delete(path);
      }
    };
    const settled = await Promise.allSettled(Array.from({ length: REMOVED_AT_ONCE }, work));
    const failed = settled.find((each) => each.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Those of files that are not wanted, last written before this moment. */
  async sweep(beforeMs: number, wanted: WantedFiles): Promise<Swept> {
    let removed = 0;
    for await (const row of this.#swept.rows()) {
      const key = textOf(row, 'Key') ?? '';
      const fileId = this.#fileIdOf(key);
      const isOld = Date.parse(textOf(row, 'LastModified') ?? '') < beforeMs;
      if (!isOld || fileId === undefined || wanted.has(fileId)) continue;
      await this.#delete(key);
      removed += 1;
    }
    return { ended: removed, hasMore: this.#swept.hasMore };
  }

  /** Undefined for an object that is none of an upload. */
  #fileIdOf(key: string): string | undefined {
    if (!key.startsWith(this.#root)) return undefined;
    const [owner, name = '', ...rest] = key.slice(this.#root.length).split('/');
    return rest.length === 0 && parseId(owner) !== undefined ? parseId(name.split('.')[0]) : undefined;
  }

  async #delete(key: string): Promise<void> {
    if (this.#fileIdOf(key) === undefined) return;
    const answer = await this.#client.ask({ method: 'DELETE', path: `/${key}` });
    if (!isDone(answer)) throw this.#client.refusal('DELETE', answer);
  }

  #pathOf({ owner, fileId }: FileKey, name: string): string {
    return `/${this.#root}${owner}/${fileId}.${name}`;
  }
}

export function objectHeaders(crc32: number): Record<string, string> {
  return { 'content-type': 'application/octet-stream', 'x-amz-checksum-crc32': crc32Text(crc32) };
}

export function isDone(answer: BucketAnswer): boolean {
  return answer.status === 200 || answer.status === 204 || isMissing(answer);
}
