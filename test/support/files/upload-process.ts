/**
 * One process of a simulated cluster that receives v2 uploads into a bucket: the streams, pieces and joins of the program,
 * over parts in memory and bodies of the simulation.
 */

import { draft } from '../../../src/actors/files/v2/draft.ts';
import { createRoutedSystem, ownerUnavailable, type RemoteReply } from '../../../src/actors/routed-system.ts';
import type { ActorSystem } from '../../../src/actors/runtime/actor.ts';
import type { ChatFilePort, WorkerPort } from '../../../src/actors/runtime/ports.ts';
import type { ClusterNode } from '../../../src/actors/runtime/replication/cluster-node.ts';
import type { LogNode } from '../../../src/actors/runtime/replication/node.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { FileKey } from '../../../src/domain/files/files.ts';
import type { FileSegment } from '../../../src/domain/files/segments.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { actorVerbs, RemoteActors } from '../../../src/io/cluster/actor-calls.ts';
import type { Verbs } from '../../../src/io/cluster/rpc.ts';
import { filePort } from '../../../src/io/files/storage/actor-port.ts';
import { BucketUploads } from '../../../src/io/files/storage/bucket-uploads.ts';
import { StorageFaults } from '../../../src/io/files/storage/faults.ts';
import type { FileStorage, PartLease } from '../../../src/io/files/storage/port.ts';
import { Bucket } from '../../../src/io/files/storage/s3/bucket.ts';
import { PartSlots } from '../../../src/io/files/storage/s3/multipart.ts';
import type { Received, ReceiveOptions } from '../../../src/io/files/upload/body-writer.ts';
import type { PrebufferedBody } from '../../../src/io/files/upload/prebuffered-body.ts';
import type { BodyReceiver } from '../../../src/io/files/upload/receiver.ts';
import { UploadProgress } from '../../../src/io/files/upload/upload-progress.ts';
import { DraftUploads } from '../../../src/io/files/upload/v2-stream.ts';
import type { IncomingBody, IncomingSink } from '../../../src/io/http/body/incoming-body.ts';
import { crc32 } from '../../../src/workers/crc32.ts';
import type { Application, ProcessTools } from '../actors/simulated-cluster.ts';
import { type EventDisk, EventProcess, type OpenedEvents } from '../events/event-process.ts';
import { bucketAt } from './s3-oracle.ts';
import { type BucketFault, SIMULATED_PIECE_BYTES, type SimulatedBucket } from './simulated-bucket.ts';

export const SETTINGS = new LiveSettings();
const RETRY_MS = 50;
/** A client sends so much after so long, at most. */
const STEP_BYTES_MAX = 80;
const STEP_MAX_MS = 120;

/** Calls another node. Rejects when no answer comes. */
export type CallNode = (
  from: UploadProcess,
  node: number,
  verb: string,
  args: readonly unknown[],
) => Promise<RemoteReply>;

interface UploadProcessOptions {
  readonly disk: EventDisk;
  readonly tools: ProcessTools;
  readonly random: () => number;
  readonly bucket: SimulatedBucket;
  readonly chat: ChatFilePort;
  readonly call: CallNode;
  /** The newest stream of each file: of a planted fault. */
  readonly streams: Map<string, number>;
  readonly fault: BucketFault | undefined;
  readonly trace: (line: string) => void;
}

/** A body of the simulation, with all that an upload asks of one that waits in memory. */
export class SimulatedBody implements IncomingBody {
  readonly declaredBytes = undefined;
  readonly failedUnread = false;
  readonly bytes: Buffer;
  /** Its client leaves after so many bytes. */
  lostAtBytes: number;

  constructor(bytes: Buffer, lostAtBytes = Number.POSITIVE_INFINITY) {
    this.bytes = bytes;
    this.lostAtBytes = lostAtBytes;
  }

  check(): void {}

  /** Delivers all bytes at once: a repeat of the end of a complete upload is compared with the file. */
  read(sink: IncomingSink): void {
    sink.data(this.bytes);
    sink.end();
  }

  sendContinue(): void {}

  pause(): void {}

  resume(): void {}

  discard(): void {}
}

export class UploadProcess implements Application {
  readonly tools: ProcessTools;
  readonly direct: BucketUploads;
  readonly objects: Bucket;
  actors: ActorSystem | undefined;
  uploads: DraftUploads | undefined;
  /** Other nodes may call these, once it serves. */
  verbs: Verbs | undefined;
  readonly watchers = new Set<() => void>();
  readonly #options: UploadProcessOptions;
  readonly #events: EventProcess;
  readonly #parts: MemoryParts;
  readonly #storage: FileStorage;

  constructor(options: UploadProcessOptions) {
    this.#options = options;
    const { disk, tools, bucket, chat, fault, trace } = options;
    this.tools = tools;
    this.#parts = new MemoryParts();
    const slots = new PartSlots(SIMULATED_PIECE_BYTES);
    const transport = () => bucket.transport(tools.schedule);
    const world = { clock: tools.clock, retryMs: RETRY_MS, slots, probeName: tools.name, transport };
    this.objects = new Bucket(bucketAt('http://bucket'), world);
    const workers = this.#workers();
    this.direct = new BucketUploads({
      logId: 'memory',
      pieceBytes: SIMULATED_PIECE_BYTES,
      workers,
      faults: new StorageFaults((message) => trace(`${tools.name}: ${message}`)),
      bucketOf: () => this.objects,
      pathOf,
      discard: async (key) => this.#parts.remove(key),
    });
    if (fault === 'listed pieces are removed') this.#removesListed();
    this.#storage = this.#storageOf();
    this.#events = new EventProcess({
      disk,
      tools,
      kinds: [draft],
      ports: { workers, chatFiles: chat, files: filePort(this.#storage, workers) },
      onOpened: (opened, cluster) => this.#open(opened, cluster, workers),
    });
  }

  get node(): LogNode {
    return this.#events.node;
  }

  get cluster(): ClusterNode {
    return this.#events.cluster;
  }

  get backlog(): number {
    return this.#events.events?.system.counters().backlog ?? 1;
  }

  async leave(): Promise<void> {
    this.uploads?.suspend();
    await this.#events.leave();
  }

  stop(): void {
    this.#events.stop();
    for (const watcher of this.watchers) watcher();
  }

  #open({ system }: OpenedEvents, { view, replica, node }: ClusterNode, workers: WorkerPort): void {
    const { tools, call, fault } = this.#options;
    const admit = () => {
      if (!node.admits) throw ownerUnavailable();
    };
    this.verbs = actorVerbs({
      local: system,
      kinds: [draft],
      owns: (kind, id) => view.owns(kind, id),
      admit,
    });
    const routing = {
      node: node.node,
      departure: { isLeaving: false, hold: <T>(work: () => T) => work() },
      ownerOf: (kind: string, id: string) => replica.members.ownerOf(kind, id),
      appliedAtLeast: (position: number) => replica.appliedAtLeast(position),
    };
    const remote = new RemoteActors((to, verb, ...args) => call(this, to, verb, args));
    const routed = createRoutedSystem({ local: system, remote, routing, kinds: [draft] });
    this.actors = fault === 'a former stream is heard' ? this.#hearing(routed) : routed;
    this.uploads = new DraftUploads({
      actors: this.actors,
      settings: SETTINGS,
      storage: this.#storage,
      receiver: this.#receiver(),
      throttle: { open: () => FREE_STREAM },
      workers,
      clock: tools.clock,
      timer: (delayMs, run) => tools.schedule.timer(delayMs, run),
    });
  }

  /** Does the same with the bucket as RemoteStorage. */
  #storageOf(): FileStorage {
    const { direct, objects } = this;
    const parts = this.#parts;
    const storage: Partial<FileStorage> = {
      isShared: true,
      direct,
      async create(key) {
        if (key.segment !== undefined) parts.create(key);
      },
      lease: async (key) => parts.lease(key),
      reserve: async () => undefined,
      release: () => undefined,
      publishSegments: (key, segments) => direct.publishPieces(key, segments),
      async remove(key) {
        await objects.remove(pathOf(key));
        await direct.remove(key);
      },
      removeSegments: (key) => direct.remove(key),
    };
    return storage as FileStorage;
  }

  /** The planted fault: what a draft lists goes with the rest. */
  #removesListed(): void {
    const removeUnlisted = this.direct.removeUnlisted.bind(this.direct);
    this.direct.removeUnlisted = (key: FileKey, stream: number, _: readonly FileSegment[]) =>
      removeUnlisted(key, stream, []);
  }

  /** The planted fault: what any stream says is taken as a word of the newest one. */
  #hearing(routed: ActorSystem): ActorSystem {
    const { streams } = this.#options;
    const ask = async (kind: never, id: never, command: SaidByStream, options: never) => {
      const { fileId, stream } = command;
      const said = stream === undefined ? command : { ...command, stream: streams.get(fileId) ?? stream };
      const reply = await routed.ask(kind, id, said as never, options);
      const begun = (reply as SaidByStream | null)?.stream;
      if (begun !== undefined) streams.set(fileId, Math.max(begun, streams.get(fileId) ?? 0));
      return reply;
    };
    return Object.assign(Object.create(routed) as ActorSystem, {
      ask,
      query: routed.query.bind(routed),
      lookup: routed.lookup.bind(routed),
      count: routed.count.bind(routed),
    });
  }

  #later(): Promise<void> {
    return new Promise((resolve) => this.tools.schedule.immediate(resolve));
  }

  #workers(): WorkerPort {
    const run = async (name: string, input: WorkerInput) => {
      await this.#later();
      if (name === 'hashRange') {
        const bytes = this.#parts
          .bytesOf(input.fd ?? -1)
          .subarray(input.position, input.position + input.length);
        return { ok: true, value: bytes.length < input.length ? undefined : crc32(bytes) };
      }
      if (name !== 'writeBuffer' || input.sharedBuffer === undefined)
        throw new Error(`no thread for ${name}`);
      return { ok: true, value: crc32(new Uint8Array(input.sharedBuffer, 0, input.length)) };
    };
    return { run } as unknown as WorkerPort;
  }

  #receiver(): Pick<BodyReceiver, 'prebuffer' | 'receive'> {
    return {
      prebuffer: (body, work) => work(body as unknown as PrebufferedBody),
      receive: (options) => this.#receive(options),
    };
  }

  async #receive(options: ReceiveOptions): Promise<Received> {
    const { lease, positionBytes, checkpoint, signal } = options;
    const body = options.body as unknown as SimulatedBody;
    const { random } = this.#options;
    let [sizeBytes, sum] = [0, 0];
    let resume: () => void = () => undefined;
    const isStopped = () => signal?.aborted === true;
    const isLost = () => sizeBytes >= body.lostAtBytes;
    signal?.addEventListener('abort', () => resume(), { once: true });
    const flow = () => resume();
    const progress =
      checkpoint &&
      new UploadProgress(checkpoint, { sizeBytes: () => sizeBytes, flush: () => undefined, flow });
    while (sizeBytes < body.bytes.length && !isStopped() && !isLost()) {
      await new Promise<void>((resolve) => {
        resume = resolve;
        if (progress?.mustWait !== true)
          this.tools.schedule.timer(Math.floor(random() * STEP_MAX_MS), resolve);
      });
      if (isStopped() || progress?.mustWait === true) continue;
      const end = Math.min(body.lostAtBytes, sizeBytes + 1 + Math.floor(random() * STEP_BYTES_MAX));
      const piece = body.bytes.subarray(sizeBytes, end);
      this.#parts.write(lease.fd, positionBytes + sizeBytes, piece);
      sizeBytes += piece.length;
      sum = crc32(piece, sum);
      progress?.reached(sizeBytes, sum);
    }
    progress?.end();
    const ended = isStopped() ? 'stopped' : isLost() ? 'lost' : 'complete';
    return { ended, sizeBytes, crc32: sum, sha256: undefined };
  }
}

interface SaidByStream {
  readonly fileId: string;
  readonly stream?: number;
}

interface WorkerInput {
  readonly fd: number | null;
  readonly position: number;
  readonly length: number;
  readonly sharedBuffer?: SharedArrayBuffer;
}

const FREE_STREAM = {
  charge: () => true,
  owing: false,
  onClear: undefined,
  paid: async () => undefined,
  ask: (bytes: number, go: (granted: number) => void) => go(bytes),
  leave: () => undefined,
};

/** Parts of the streams of one process, which end with it. */
class MemoryParts {
  readonly #parts: Buffer[] = [];
  readonly #names = new Map<string, number>();

  create(key: FileKey): void {
    this.#names.set(nameOf(key), this.#parts.push(Buffer.alloc(0)) - 1);
  }

  remove(key: FileKey): void {
    this.#names.delete(nameOf(key));
  }

  bytesOf(fd: number): Buffer {
    return this.#parts[fd] ?? Buffer.alloc(0);
  }

  write(fd: number, position: number, bytes: Uint8Array): void {
    const before = this.bytesOf(fd);
    const after = Buffer.alloc(Math.max(before.length, position + bytes.length));
    after.set(before);
    after.set(bytes, position);
    this.#parts[fd] = after;
  }

  lease(key: FileKey): PartLease {
    const fd = this.#names.get(nameOf(key));
    if (fd === undefined) throw new GatewayError('InvalidID');
    return {
      fd,
      truncate: async (sizeBytes) => {
        this.#parts[fd] = this.bytesOf(fd).subarray(0, sizeBytes);
      },
      sync: async () => undefined,
      read: async (target, position) =>
        Buffer.from(target.buffer, target.byteOffset, target.length).fill(0) &&
        this.bytesOf(fd).copy(target, 0, position),
      write: async (source, position) => this.write(fd, position, source),
      release: async () => undefined,
      keepFor: () => undefined,
      failure: () => new GatewayError('FileStorageFailed'),
    };
  }
}

function nameOf({ owner, fileId, segment }: FileKey): string {
  return `${owner}/${fileId}.${segment}`;
}

function pathOf({ owner, fileId }: FileKey): string {
  return `/${owner}/${fileId}`;
}
