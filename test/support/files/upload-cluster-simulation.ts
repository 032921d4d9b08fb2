/**
 * The deterministic simulation of uploads of a cluster into a bucket: one seed is one history of three nodes, uploaders that
 * send bodies to any of them, a bucket that is late, slow or loses answers, and the faults of cluster-faults.ts.
 */
import { crc32 } from 'node:zlib';
import { draft, type OpenedDraft } from '../../../src/actors/files/v2/draft.ts';
import { slotIdOf } from '../../../src/actors/files/v2/draft-state.ts';
import { ownerUnavailable, type RemoteReply } from '../../../src/actors/routed-system.ts';
import { NotOwner } from '../../../src/actors/runtime/not-owner.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { UploadPlan } from '../../../src/domain/files/upload-plan.ts';
import { type DraftSlot, findUpload, viewDraft } from '../../../src/io/files/upload/draft-access.ts';
import type { PrebufferedBody } from '../../../src/io/files/upload/prebuffered-body.ts';
import {
  brokenPromiseOf,
  type ClusterFigures,
  ClusterHistory,
  type HistoryOptions,
} from '../actors/cluster-history.ts';
import type { ProcessTools } from '../actors/simulated-cluster.ts';
import { EventDisk } from '../events/event-process.ts';
import { FakeChat } from './draft-world.ts';
import { type BucketFault, SIMULATED_PIECE_BYTES, SimulatedBucket } from './simulated-bucket.ts';
import { SETTINGS, SimulatedBody, UploadProcess } from './upload-process.ts';

const OWNERS = ['7', '8', '9'];
const FILES = 2;
const PIECES_MAX = 5;
const STEPS = 40;
/** Milliseconds passed in one step, at most. */
const PASS_MAX_MS = 400;
const ROUND_MS = 2_000;
const ROUNDS_MAX = 150;
/** A call between nodes takes so long, a caller waits so much longer. */
const CALL_MAX_MS = 30;
const CALL_GIVE_UP_MS = 2_000;
const LOST_CALLS = 0.04;
const ANSWER_MS = 5_000;
const PAUSE_MAX_MS = 400;
/** Shares of the bodies. */
const LEAVES = 0.2;
const PARTIAL = 0.4;
const DROPPED = 0.05;
/** Share of the bodies for whose answer an uploader does not wait before it sends the next one. */
const BOTH = 0.15;
const SWEEPS_MAX = 1_000;
/** Replicas of nodes that serve are not so far behind. */
const SWEPT_AGE_MS = 5_000;
const NOTHING_WANTED = { has: () => false };

export interface UploadHistoryFigures extends ClusterFigures {
  bodies: number;
  kept: number;
  files: number;
  requests: number;
  late: number;
  lost: number;
  swept: number;
  /** Offsets that a node told which did not know the newest one. */
  stale: number;
}

interface UploadClusterOptions extends HistoryOptions {
  readonly fault?: BucketFault;
  readonly figures?: UploadHistoryFigures;
}

/** No answer came: what was asked for may have happened. */
class Unanswered extends Error {}

/** A body that was sent, and how much of it an answer said is kept. */
interface SentBody {
  readonly number: number;
  /** It began before bytes that were acknowledged. */
  readonly isVoid: boolean;
  readonly beginBytes: number;
  readonly endBytes: number;
  keptBytes: number;
}

/** Runs one seed; what was promised and not kept, or undefined. */
export function simulateUploadCluster(
  seed: number,
  options: UploadClusterOptions = {},
): Promise<string | undefined> {
  return brokenPromiseOf(() => new UploadHistory(seed, options).run(STEPS), options);
}

class UploadHistory extends ClusterHistory<UploadProcess, EventDisk, UploadClusterOptions> {
  readonly #bucket: SimulatedBucket;
  readonly #chat = new FakeChat();
  /** The newest stream of each file, which a planted fault needs. */
  readonly #streams = new Map<string, number>();
  /** Files that the bucket has to have at the end. */
  readonly #files = new Set<string>();
  #uploading = OWNERS.length;
  #bodies = 0;
  #kept = 0;
  #swept = 0;
  #stale = 0;

  constructor(seed: number, options: UploadClusterOptions) {
    super(seed, options);
    const { random, trace } = this;
    this.#bucket = new SimulatedBucket({
      ...{ random, trace, fault: options.fault },
      plan: (afterMs, run) => this.cluster.plan(afterMs, run),
      nowMs: () => this.cluster.nowMs,
      onBroken: (promise) => this.break(promise),
    });
  }

  protected newDisk(): EventDisk {
    return new EventDisk();
  }

  protected start(tools: ProcessTools): UploadProcess {
    const { random, trace } = this;
    return new UploadProcess({
      ...{ disk: this.diskOf(tools.name), tools, random, trace, fault: this.options.fault },
      ...{ chat: this.#chat, bucket: this.#bucket, streams: this.#streams },
      call: (...call) => this.#call(...call),
    });
  }

  protected override async begin(): Promise<void> {
    for (const ownerId of OWNERS)
      this.#upload(ownerId).catch((error: Error) => this.break(`bug: ${error.stack}`));
  }

  protected async step(): Promise<void> {
    const dice = this.random();
    if (dice < 0.2) await this.letThrough();
    else if (dice < 0.78) await this.pass(PASS_MAX_MS);
    else if (dice < 0.82) this.#sweepEarly();
    else this.faults.disturb();
  }

  /** Between two nodes: either way may take long, or lead nowhere. */
  #call(from: UploadProcess, node: number, verb: string, args: readonly unknown[]): Promise<RemoteReply> {
    const { schedule } = from.tools;
    const losesOne = () => !this.#bucket.isCalm && this.random() < LOST_CALLS;
    const isLinked = (app: UploadProcess) =>
      this.cluster.processes.some((each) => each.app === app && !each.isUnlinked);
    return new Promise((resolve, reject) => {
      schedule.timer(CALL_GIVE_UP_MS, () => reject(ownerUnavailable()));
      if (losesOne()) return;
      this.cluster.plan(this.below(CALL_MAX_MS), () => {
        const target = this.cluster.processes.find(({ app }) => app.node.node === node)?.app;
        if (target === undefined || !isLinked(target) || !isLinked(from)) return;
        target.tools.schedule.immediate(async () => {
          const reply = await replyOf(target, verb, args);
          if (losesOne()) return;
          this.cluster.plan(this.below(CALL_MAX_MS), () => {
            if (isLinked(target) && isLinked(from)) schedule.immediate(() => resolve(reply));
          });
        });
      });
    });
  }

  /** At any node. Rejects with `Unanswered` when that ends, or does not answer. */
  #request<T>(work: (app: UploadProcess) => Promise<T>): Promise<T> {
    const running = this.cluster.processes.filter(
      ({ app, paused }) => paused === undefined && app.uploads !== undefined && app.node.admits,
    );
    const app = this.pick(running)?.app;
    if (app === undefined) return Promise.reject(new Unanswered('no node answers'));
    return new Promise((resolve, reject) => {
      const end = (reason: string) => reject(new Unanswered(reason));
      const watcher = () => end('the node ended');
      app.watchers.add(watcher);
      this.cluster.plan(ANSWER_MS, () => end('no answer'));
      work(app)
        .then(resolve, reject)
        .finally(() => app.watchers.delete(watcher));
    });
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.cluster.plan(1 + this.below(PAUSE_MAX_MS), resolve));
  }

  /** The same until it is answered, with a row of the error table at most. */
  async #answered<T>(work: (app: UploadProcess) => Promise<T>): Promise<T | GatewayError> {
    for (;;) {
      try {
        return await this.#request(work);
      } catch (error) {
        if (error instanceof GatewayError && !PASSING.has(error.row)) return error;
        if (!(error instanceof GatewayError) && !(error instanceof Unanswered)) throw error;
        await this.#pause();
      }
    }
  }

  async #upload(ownerId: string): Promise<void> {
    const slot = slotIdOf(ownerId, 0);
    for (let file = 0; file < FILES; file += 1) {
      const sizeBytes = 1 + this.below(PIECES_MAX * SIMULATED_PIECE_BYTES);
      let isDone = false;
      for (let draftNumber = 0; !isDone && this.broken === undefined; draftNumber += 1) {
        const opened = await this.#open(slot, ownerId, `${ownerId} ${file} ${draftNumber}`, sizeBytes);
        if (opened !== undefined)
          isDone = await this.#send({ slot, ownerId, fileId: opened.fileId }, sizeBytes);
        else await this.#pause();
      }
    }
    this.#uploading -= 1;
  }

  async #open(
    slot: string,
    ownerId: string,
    idempotencyKey: string,
    sizeBytes: number,
  ): Promise<OpenedDraft | undefined> {
    const facts = { name: 'a.bin', chatId: null, message: null, linkedMessageId: null, declaredCrc32: null };
    const command = { type: 'openDraft' as const, ownerId, sizeBytes, ...facts };
    const opened = await this.#answered((app) => systemOf(app).ask(draft, slot, command, { idempotencyKey }));
    return opened instanceof GatewayError || opened === null ? undefined : opened;
  }

  /** Bodies until the file is complete; true when it is, false when the draft has ended without it. */
  async #send(target: DraftSlot, sizeBytes: number): Promise<boolean> {
    const sent: SentBody[] = [];
    let toldBytes = 0;
    while (this.broken === undefined) {
      const view = await this.#answered((app) => viewOf(app, target));
      if (view instanceof GatewayError) return this.#endedWithout(target, toldBytes);
      if ('untilMs' in view) return this.#verify(target, sent, view.crc32);
      const { receivedBytes: offsetBytes, phase } = view;
      this.trace(`${target.fileId}: ${phase} at ${offsetBytes}`);
      // A node that does not know yet that the draft is another one's may tell an older offset, at which no stream begins.
      if (offsetBytes < toldBytes) this.#stale += 1;
      const isVoid = offsetBytes < toldBytes;
      toldBytes = Math.max(toldBytes, offsetBytes);
      if (phase === 'completing') await this.#pause();
      else if (this.random() < DROPPED && !this.#bucket.isCalm) {
        const dropped = await this.#answered((app) =>
          uploadsOf(app)
            .drop(target)
            .then(() => true),
        );
        if (dropped === true) return false;
      } else {
        const body = this.#body(target, sent, { offsetBytes, isVoid }, sizeBytes);
        // The body may still run when the next one begins.
        if (this.random() < BOTH) body.catch(() => undefined);
        else toldBytes = Math.max(toldBytes, await body);
      }
    }
    return true;
  }

  #endedWithout({ fileId }: DraftSlot, toldBytes: number): boolean {
    const state = this.#chat.byFile(fileId)?.state;
    if (state === 'complete') this.break(`${fileId} is complete and unknown`);
    else if (toldBytes > 0 && state === 'pending') this.break(`${fileId} ended with ${toldBytes} bytes`);
    return state === 'complete';
  }

  async #body(
    target: DraftSlot,
    sent: SentBody[],
    { offsetBytes, isVoid }: { readonly offsetBytes: number; readonly isVoid: boolean },
    sizeBytes: number,
  ): Promise<number> {
    const isPartial = this.random() < PARTIAL && sizeBytes - offsetBytes > 1;
    const endBytes = isPartial ? offsetBytes + 1 + this.below(sizeBytes - offsetBytes - 1) : sizeBytes;
    this.#bodies += 1;
    const extent = { beginBytes: offsetBytes, endBytes, keptBytes: offsetBytes };
    const mine: SentBody = { number: this.#bodies, isVoid, ...extent };
    sent.push(mine);
    const bytes = contentOf(mine);
    const leaves = !this.#bucket.isCalm && this.random() < LEAVES;
    const body = new SimulatedBody(bytes, leaves ? this.below(bytes.length) : undefined);
    const plan: UploadPlan = {
      ...{ offsetBytes, appends: true, keeps: true, bodyBytes: undefined, totalBytes: undefined },
      ...{ completes: isPartial ? 'never' : 'always', resumable: true, contentDigests: {}, fileDigests: {} },
    };
    const incoming = body as unknown as PrebufferedBody;
    try {
      const outcome = await this.#request((app) => {
        this.trace(
          `${target.fileId}: body ${mine.number} of ${offsetBytes}-${endBytes} at ${app.tools.name}`,
        );
        return uploadsOf(app).upload({ target, plan, incoming: incoming as never, address: '::1' });
      });
      this.trace(`${target.fileId}: body ${mine.number}: ${JSON.stringify(outcome)}`);
      if (isVoid && outcome.end !== 'elsewhere')
        this.break(`${target.fileId}: ${offsetBytes} are kept of what was acknowledged`);
      if (outcome.end === 'complete') mine.keptBytes = endBytes;
      else if (outcome.end === 'kept') {
        this.#kept += 1;
        mine.keptBytes = outcome.offsetBytes;
        return outcome.offsetBytes;
      }
    } catch (error) {
      this.trace(`${target.fileId}: body ${mine.number}: ${String(error)}`);
      if (!(error instanceof GatewayError) && !(error instanceof Unanswered)) throw error;
      // The client gives up.
      body.lostAtBytes = 0;
      await this.#pause();
    }
    return offsetBytes;
  }

  /** The file is what the answers told of, and each other byte is of a body that sent one there. */
  #verify({ ownerId, fileId }: DraftSlot, sent: readonly SentBody[], sum: number): boolean {
    this.#files.add(fileId);
    const bytes = this.#bucket.server.objects.get(`one/${ownerId}/${fileId}`)?.bytes;
    if (bytes === undefined) this.break(`${fileId} is complete, and not in the bucket`);
    else if (crc32(bytes) !== sum) this.break(`${fileId} has other bytes than were hashed`);
    else {
      for (const [at, byte] of bytes.entries()) {
        const told = sent.findLast(({ beginBytes, keptBytes }) => beginBytes <= at && at < keptBytes);
        const writers = told === undefined ? sent.filter((each) => covers(each, at)) : [told];
        if (!writers.some((each) => byteOf(each, at) === byte)) this.break(`${fileId}: another byte ${at}`);
      }
    }
    return true;
  }

  protected async epilogue(): Promise<void> {
    this.#bucket.isCalm = true;
    await this.settle({ roundMs: ROUND_MS, roundsMax: ROUNDS_MAX });
    if (!this.isIdle) this.break(`never comes to rest: ${this.#uploading} upload`);
    if (this.broken === undefined) await this.#sweep();
  }

  protected get isIdle(): boolean {
    const rests = ({ app }: { readonly app: UploadProcess }) =>
      app.backlog === 0 && app.actors?.count('draft') === 0;
    return this.#uploading === 0 && this.areAllServing && this.cluster.processes.every(rests);
  }

  /** One node removes what no draft wants, as it knows. It has heard of each draft whose objects are so old. */
  #sweepEarly(): void {
    const running = this.cluster.processes.filter(
      ({ app, paused }) => paused === undefined && app.node.admits,
    );
    const app = this.pick(running)?.app;
    if (app === undefined) return;
    const isOpen = { has: (fileId: string) => app.actors?.lookup('draft', fileId) !== undefined };
    const takesAll = this.options.fault === 'a sweep takes what drafts list';
    const beforeMs = this.cluster.nowMs - (takesAll ? 0 : SWEPT_AGE_MS);
    app.direct.sweep(app.objects, beforeMs, takesAll ? NOTHING_WANTED : isOpen).then(
      ({ ended }) => {
        this.#swept += ended;
        this.trace(`${app.tools.name}: swept ${ended}`);
      },
      (error: Error) => this.trace(`${app.tools.name}: the sweep ended: ${error.message}`),
    );
  }

  /** A day later nothing is there but files that are complete. */
  async #sweep(): Promise<void> {
    const { server } = this.#bucket;
    const [process] = this.cluster.processes;
    const beforeMs = this.cluster.nowMs + 1;
    const before = server.objects.size + server.transfers.size;
    let isOver = false;
    const sweep = async (app: UploadProcess) => {
      for (let more = true, count = 0; more && count < SWEEPS_MAX; count += 1) {
        const transfers = await app.objects.sweep(beforeMs);
        more = (await app.direct.sweep(app.objects, beforeMs, NOTHING_WANTED)).hasMore || transfers.hasMore;
      }
      isOver = true;
    };
    if (process !== undefined)
      sweep(process.app).catch((error: Error) => this.break(`the sweep: ${error.stack}`));
    for (let round = 0; round < ROUNDS_MAX && !isOver; round += 1) await this.cluster.pass(ROUND_MS, true);
    this.#swept += before - server.objects.size - server.transfers.size;
    const left = [...server.objects.keys()].filter((key) => !this.#files.has(key.split('/').at(-1) ?? ''));
    if (!isOver) this.break('the sweep never ends');
    else if (left.length + server.transfers.size > 0)
      this.break(`the bucket still has ${left} and ${server.transfers.size} transfers`);
    const present = [...this.#files].filter(
      (id) => ![...server.objects.keys()].some((key) => key.endsWith(`/${id}`)),
    );
    if (present.length > 0) this.break(`the bucket has lost ${present}`);
  }

  protected override count(): void {
    super.count();
    const { figures } = this.options;
    if (figures === undefined) return;
    figures.bodies += this.#bodies;
    figures.kept += this.#kept;
    figures.files += this.#files.size;
    figures.swept += this.#swept;
    figures.stale += this.#stale;
    for (const name of ['requests', 'late', 'lost'] as const) figures[name] += this.#bucket.counts[name];
  }
}

/** An uploader asks again. */
const PASSING: ReadonlySet<string> = new Set([
  'Overloaded',
  'Stopping',
  'TaskTimedOut',
  'UploadConflict',
  'FileStorageFailed',
]);

function systemOf({ actors }: UploadProcess) {
  if (actors === undefined) throw new Unanswered('it does not serve');
  return actors;
}

/** Finds the draft as a request for the offset does. */
async function viewOf(app: UploadProcess, { ownerId, fileId }: DraftSlot) {
  const actors = systemOf(app);
  const session = { loginType: null, userId: ownerId };
  const found = await findUpload({ actors, session, settings: SETTINGS, nowMs: app.tools.clock() }, fileId);
  return 'slot' in found ? await viewDraft(actors, found) : found;
}

function uploadsOf({ uploads }: UploadProcess) {
  if (uploads === undefined) throw new Unanswered('it does not serve');
  return uploads;
}

async function replyOf(target: UploadProcess, verb: string, args: readonly unknown[]): Promise<RemoteReply> {
  const position = () => target.cluster.replica.position;
  try {
    const called = target.verbs?.[verb];
    if (called === undefined) throw ownerUnavailable();
    const value: unknown = await called(...args);
    return { position: position(), value };
  } catch (error) {
    const isRow = error instanceof GatewayError || error instanceof NotOwner;
    return { position: position(), error: isRow ? error : ownerUnavailable() };
  }
}

function covers({ beginBytes, endBytes, isVoid }: SentBody, at: number): boolean {
  return !isVoid && beginBytes <= at && at < endBytes;
}

/** Two bodies have other bytes at the same place. */
function byteOf({ number }: SentBody, at: number): number {
  return (number * 101 + at * 31) % 251;
}

function contentOf(body: SentBody): Buffer {
  const { beginBytes, endBytes } = body;
  return Buffer.from(Array.from({ length: endBytes - beginBytes }, (_, at) => byteOf(body, beginBytes + at)));
}
