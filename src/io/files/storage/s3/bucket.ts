/**
 * Files as objects of a bucket, at `{Prefix}{owner}/{fileId}`. A key is written once, so that no rule of consistency counts;
 * `If-None-Match: *` says so to the storage where it understands that.
 */
import type { BucketConfiguration } from '../../../../domain/config/file-servers.ts';
import { parseId } from '../../../../domain/ids.ts';
import {
  type FileServer,
  FileServerUnusable,
  type LinkForm,
  type SentFile,
  type Swept,
} from '../file-server.ts';
import { StorageServerFault } from '../storage-server.ts';
import {
  type BucketAnswer,
  BucketClient,
  BucketRefusal,
  type BucketRequest,
  type ClientOptions,
} from './client.ts';
import { BucketList, TRANSFERS } from './lists.ts';
import { copyInParts, isSuccessful, type PartSlots, putInParts } from './multipart.ts';
import { isDone, objectHeaders, UploadObjects } from './upload-objects.ts';
import { textOf } from './xml.ts';

/** Larger files than so many parts, 16 MiB, are sent in parts. */
const SINGLE_PUT_PARTS = 2;
const LINK_SECONDS = 60;
const PROBE = Buffer.from('gatehouse');
/** CRC-32 of `PROBE`. */
const PROBE_CRC32 = 0x23a3fcb7;
const ONCE: Readonly<Record<string, string>> = { 'if-none-match': '*' };

interface BucketOptions extends ClientOptions {
  readonly slots: PartSlots;
  /** Name of this node's probe: no other node uses it, and the next probe overwrites the object of a killed one. */
  readonly probeName: string;
}

export class Bucket implements FileServer {
  readonly #configuration: BucketConfiguration;
  readonly #client: BucketClient;
  readonly #slots: PartSlots;
  readonly #probeName: string;
  readonly #swept: BucketList;
  /** Set by the probe where the storage refuses to overwrite. */
  #conditions: Readonly<Record<string, string>> = {};
  readonly linkTo?: (path: string, form: LinkForm) => string;

  constructor(configuration: BucketConfiguration, { slots, probeName, ...options }: BucketOptions) {
    this.#configuration = configuration;
    this.#client = new BucketClient(configuration, options);
    this.#slots = slots;
    this.#probeName = probeName;
    this.#swept = new BucketList(this.#client, TRANSFERS, configuration.prefix);
    if (configuration.redirectDownloads) this.linkTo = (path, form) => this.#linkTo(path, form);
  }

  /** The storage refuses to overwrite an object. */
  get writesOnce(): boolean {
    return this.#conditions === ONCE;
  }

  sizeOf(path: string): Promise<number | undefined> {
    return this.#client.sizeOf(this.#pathOf(path));
  }

  async read(path: string, target: Uint8Array, position: number): Promise<void> {
    const answer = await this.#ask({ method: 'GET', path, target: { bytes: target, position } });
    if (answer.status !== 206) throw this.#client.refusal('GET', answer);
  }

  put(path: string, file: SentFile): Promise<void> {
    const isLarge = file.sizeBytes > SINGLE_PUT_PARTS * this.#slots.partBytes;
    const send = () => (isLarge ? putInParts(this.#targetOf(path), file) : this.#putOnce(path, file));
    return this.#whole(path, file.sizeBytes, send);
  }

  async #putOnce(path: string, file: SentFile): Promise<void> {
    const crc32 = await file.crc32Of(0, file.sizeBytes);
    const headers = { ...objectHeaders(crc32), ...this.#conditions };
    const answer = await this.#ask({ method: 'PUT', path, headers, body: file });
    // 412: an attempt whose answer was lost has stored it.
    if (answer.status !== 200 && !(answer.status === 412 && this.writesOnce))
      throw this.#client.refusal('PUT', answer);
  }

  /** Objects of uploads under way that belong to one log. */
  uploadsOf(logId: string): UploadObjects {
    const { bucket, prefix } = this.#configuration;
    return new UploadObjects({ client: this.#client, slots: this.#slots, bucket, prefix, logId });
  }

  /**
   * Makes a file of objects of the bucket. The storage copies `sources`, of which all but the last one have the size of a part; where it
   * does not, or where there are none, `file` is sent, which reads them. One that is there already stays.
   */
  async join(path: string, file: SentFile, sources: readonly string[]): Promise<void> {
    if ((await this.sizeOf(path)) === file.sizeBytes) return;
    if (sources.length > 0 && (await this.#copies(path, file.sizeBytes, sources))) return;
    await this.put(path, file);
  }

  /** False where the storage refuses to copy. */
  async #copies(path: string, sizeBytes: number, sources: readonly string[]): Promise<boolean> {
    const [only = '', ...more] = sources;
    try {
      if (more.length === 0) await this.#copy(path, only);
      else await this.#whole(path, sizeBytes, () => copyInParts(this.#targetOf(path), sources));
      return true;
    } catch (error) {
      if (error instanceof BucketRefusal) return false;
      throw error;
    }
  }

  async #copy(path: string, source: string): Promise<void> {
    const answer = await this.#ask({ method: 'PUT', path, headers: { 'x-amz-copy-source': source } });
    if (!isSuccessful(answer)) throw this.#client.refusal('PUT', answer);
  }

  #targetOf(path: string) {
    return {
      client: this.#client,
      slots: this.#slots,
      path: this.#pathOf(path),
      conditions: this.#conditions,
    };
  }

  /** The answer may be lost, or another node may have stored the file and removed its sources: then it is there. */
  async #whole(path: string, sizeBytes: number, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const stored = await this.sizeOf(path).catch((fault: unknown) => {
        // Without an answer sources that are gone say nothing about the file.
        throw error instanceof StorageServerFault ? error : fault;
      });
      if (stored !== sizeBytes) throw error;
    }
  }

  /** The storage answers alike whether there was an object or not, so it is asked before. */
  async remove(path: string): Promise<boolean> {
    if ((await this.sizeOf(path)) === undefined) return false;
    await this.#delete(path);
    return true;
  }

  /** Writes, writes again, reads a range and removes. */
  async probe(): Promise<void> {
    const path = `/gatehouse-probe-${this.#probeName}`;
    try {
      await this.#putProbe(path, {});
      this.#conditions = (await this.#refusesToOverwrite(path)) ? ONCE : {};
      const target = Buffer.alloc(3);
      await this.read(path, target, 4);
      if (!target.equals(PROBE.subarray(4, 7))) throw new BucketRefusal('GET: the range had other bytes');
      await this.#delete(path);
      if ((await this.sizeOf(path)) !== undefined)
        throw new BucketRefusal('DELETE: the object is still there');
    } catch (error) {
      if (!(error instanceof StorageServerFault)) throw error;
      throw new FileServerUnusable(error.message, error instanceof BucketRefusal);
    }
  }

  async sweep(beforeMs: number): Promise<Swept> {
    let ended = 0;
    for await (const row of this.#swept.rows()) if (await this.#sweepRow(row, beforeMs)) ended += 1;
    return { ended, hasMore: this.#swept.hasMore };
  }

  close(): void {
    this.#client.close();
  }

  /** True when the transfer was old, of a file below the prefix, and is ended. */
  async #sweepRow(row: string, beforeMs: number): Promise<boolean> {
    const [key = '', uploadId = ''] = [textOf(row, 'Key'), textOf(row, 'UploadId')];
    const begunMs = Date.parse(textOf(row, 'Initiated') ?? '');
    const { prefix } = this.#configuration;
    const [owner = '', fileId = '', ...rest] = key.startsWith(prefix)
      ? key.slice(prefix.length).split('/')
      : [];
    const isFile = rest.length === 0 && parseId(owner) !== undefined && parseId(fileId) !== undefined;
    if (!isFile || uploadId === '' || !(begunMs < beforeMs)) return false;
    const answer = await this.#client.ask({ method: 'DELETE', path: `/${key}`, query: { uploadId } });
    return isDone(answer);
  }

  #linkTo(path: string, { contentType, contentDisposition, cacheControl }: LinkForm): string {
    const query = {
      'response-content-type': contentType,
      'response-content-disposition': contentDisposition,
      'response-cache-control': cacheControl,
    };
    return this.#client.linkTo(this.#pathOf(path), query, LINK_SECONDS);
  }

  async #putProbe(path: string, conditions: Readonly<Record<string, string>>): Promise<void> {
    const answer = await this.#sendProbe(path, conditions);
    if (answer.status !== 200) throw this.#client.refusal('PUT', answer);
  }

  /** One that does not know the condition overwrites, or refuses it as unknown. */
  async #refusesToOverwrite(path: string): Promise<boolean> {
    return (await this.#sendProbe(path, ONCE)).status === 412;
  }

  #sendProbe(path: string, conditions: Readonly<Record<string, string>>): Promise<BucketAnswer> {
    const body = {
      sizeBytes: PROBE.length,
      read: async (target: Buffer, position: number) => ({ bytesRead: PROBE.copy(target, 0, position) }),
    };
    const headers = { ...objectHeaders(PROBE_CRC32), ...conditions };
    return this.#ask({ method: 'PUT', path, headers, body });
  }

  async #delete(path: string): Promise<void> {
    const answer = await this.#ask({ method: 'DELETE', path });
    if (!isDone(answer)) throw this.#client.refusal('DELETE', answer);
  }

  #ask(request: BucketRequest): Promise<BucketAnswer> {
    return this.#client.ask({ ...request, path: this.#pathOf(request.path) });
  }

  #pathOf(path: string): string {
    return `/${this.#configuration.prefix}${path.slice(1)}`;
  }
}
