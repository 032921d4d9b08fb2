/**
 * The outside that the runtime needs: time, randomness and scheduling. All of it is injected, so that the simulation
 * replays a whole run from one seed.
 */
import type { SettingsReader } from '../../domain/settings/settings.ts';
import type { Clock } from '../../domain/time.ts';
import type { Turn } from './actor.ts';

export interface Schedule {
  /** Runs once, after the present turn of the event loop. */
  immediate(run: () => void): void;
  /** Runs once after `delayMs`; what it returns cancels it. */
  timer(delayMs: number, run: () => void): () => void;
}

export interface RuntimeContext {
  readonly clock: Clock;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly settings: SettingsReader;
  readonly ids: { next(nowMs: number): bigint };
  /** See `Turn`. */
  readonly hasPeers: boolean;
}

/** Bounds of the runtime. Every refusal at one of them is counted under its name. */
export interface RuntimeLimits {
  /** Commands without an answer in all. */
  readonly pendingMax: number;
  readonly groupCommandsMax: number;
  readonly groupBytesMax: number;
  /** Replies per turn of the event loop after a commit. */
  readonly releaseSlice: number;
  /** Slow calls (`next`) of one actor at a time; more wait. */
  readonly callsPerActorMax: number;
  /** Live actors of one kind; the one that was idle longest is evicted. */
  readonly liveActorsMax: number;
  /** A commit that takes longer has failed. */
  readonly commitTimeoutMs: number;
  /** Interval between searches for idle actors. */
  readonly sweepMs: number;
}

export const DEFAULT_LIMITS: RuntimeLimits = {
  pendingMax: 20_000,
  groupCommandsMax: 4_000,
  groupBytesMax: 4 * 1024 * 1024,
  releaseSlice: 256,
  callsPerActorMax: 16,
  liveActorsMax: 100_000,
  commitTimeoutMs: 10_000,
  sweepMs: 5_000,
};

/** The schedule of the process. Its timers keep the process alive: a system that is closed has cancelled them. */
export const nodeSchedule: Schedule = {
  immediate: (run) => {
    setImmediate(run);
  },
  timer: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** View of a turn on its context. One per turn: the time stands still within it. */
export class TurnView implements Turn {
  readonly #context: RuntimeContext;
  readonly nowMs: number;
  readonly commandId: string;

  /** `nowMs`: where the clock was just read. */
  constructor(context: RuntimeContext, commandId: string, nowMs = context.clock()) {
    this.#context = context;
    this.nowMs = nowMs;
    this.commandId = commandId;
  }

  get settings(): SettingsReader {
    return this.#context.settings;
  }

  get hasPeers(): boolean {
    return this.#context.hasPeers;
  }

  newId(): string {
    return String(this.#context.ids.next(this.nowMs));
  }

  randomBytes(length: number): Uint8Array {
    return this.#context.randomBytes(length);
  }
}
