/**
 * Processes of a cluster over the log in memory, in one thread and in simulated time. Calls, frames and immediates wait
 * until the simulation lets one through; processes stop, lose the database or their links, and end.
 */
import { type MemoryCall, MemoryLog, type MemoryLogClient } from '../../../kit/journal/memory-log.ts';
import type { LogNode } from '../../../src/actors/runtime/replication/node.ts';
import type { PeerListener, Peers } from '../../../src/actors/runtime/replication/port.ts';
import type { Schedule } from '../../../src/actors/runtime/runtime-context.ts';
import { ManualClock, START_MS } from './actors.ts';

export const LEASE_MS = 1_000;
/** A client of the log gives up after so many milliseconds. */
const GIVE_UP_MS = 400;
const ROUNDS_MAX = 20_000;
const FRAMES_LOST = 0.15;
const FRAMES_DOUBLED = 0.03;
/** Share of the writes that are slow on their way, and by how many milliseconds at most. */
const SLOW_WRITES = 0.1;
const SLOW_EXPULSIONS = 0.5;
const SLOW_MAX_MS = 1_500;
const NEVER_SLOW: ReadonlySet<string> = new Set(['renew', 'look', 'resolve']);
/** The same of reads of the log. */
const SLOW_READS = 0.03;
const SLOW_READ_MAX_MS = 400;

/** Outside of a process. */
export interface ProcessTools {
  readonly name: string;
  readonly client: MemoryLogClient;
  readonly leaseMs: number;
  readonly schedule: Schedule;
  readonly clock: () => number;
  readonly monotonicMs: () => number;
  readonly peers: (listener: PeerListener) => Peers;
  readonly onFatal: (error: Error) => void;
}

export interface Application {
  readonly node: LogNode;
  leave(): Promise<void>;
  /** Kills it. */
  stop(): void;
}

export interface SimulatedProcess<App> {
  readonly name: string;
  readonly app: App;
  readonly client: MemoryLogClient;
  readonly timers: ManualClock;
  readonly immediates: (() => void)[];
  listener: PeerListener | undefined;
  skewMs: number;
  suspendedMs: number;
  /** When it was stopped, and whether its monotonic clock stands still meanwhile. */
  paused: { readonly sinceMs: number; readonly isSuspended: boolean } | undefined;
  /** Its connections to the database are dead. */
  isCut: boolean;
  /** Its links to other nodes are dead. */
  isUnlinked: boolean;
}

interface Frame<App> {
  readonly to: SimulatedProcess<App>;
  readonly deliver: (listener: PeerListener) => void;
}

interface Planned {
  readonly atMs: number;
  readonly run: () => void;
}

export interface SimulatedClusterOptions<App> {
  readonly random: () => number;
  readonly start: (tools: ProcessTools) => App;
  readonly onFatal: (name: string, error: Error) => void;
  /** Called after each step. */
  readonly check: () => void;
  /** No frame is lost or doubled, no call is slow, and clients wait for ever. Without it all that happens by chance. */
  readonly isReliable?: true;
  readonly expelsRenewed?: boolean;
  readonly letsFormerWrite?: boolean;
  /** Lease of a node by its name; `LEASE_MS` unless given. */
  readonly leaseOf?: (name: string) => number;
}

export class SimulatedCluster<App extends Application> {
  readonly #options: SimulatedClusterOptions<App>;
  readonly #random: () => number;
  readonly log: MemoryLog;
  /** Those that run. */
  readonly processes: SimulatedProcess<App>[] = [];
  /** The same by client of the log. */
  readonly #clients = new Map<number, SimulatedProcess<App>>();
  /** Frames are lost although links are open. */
  losesFrames = false;
  /** Calls that stay where they are. */
  holds: (call: MemoryCall) => boolean = () => false;
  #frames: Frame<App>[] = [];
  #planned: Planned[] = [];
  readonly #asked = new WeakMap<MemoryCall, { readonly sinceMs: number; readonly arrivesMs: number }>();
  nowMs = START_MS;
  /** Offset by which the clock of the database is ahead. Milliseconds. */
  databaseSkewMs = 0;

  constructor(options: SimulatedClusterOptions<App>) {
    this.#options = options;
    this.#random = options.random;
    this.log = new MemoryLog({
      ...options,
      clock: () => this.nowMs,
      wallClock: () => this.nowMs + this.databaseSkewMs,
      leaseMs: LEASE_MS,
    });
  }

  startProcess(
    name: string,
    start: (tools: ProcessTools) => App = this.#options.start,
  ): SimulatedProcess<App> {
    const leaseMs = this.#options.leaseOf?.(name) ?? LEASE_MS;
    const client = this.log.connect(() => this.nowMs + process.skewMs, leaseMs);
    const timers = new ManualClock(this.nowMs);
    const immediates: (() => void)[] = [];
    const state = {
      listener: undefined,
      skewMs: 0,
      suspendedMs: 0,
      paused: undefined,
      isCut: false,
      isUnlinked: false,
    };
    const process = { name, client, timers, immediates, ...state } as unknown as SimulatedProcess<App>;
    const app = start({
      ...{ name, client, leaseMs },
      schedule: {
        immediate: (run) => immediates.push(run),
        timer: (delayMs, run) => {
          timers.nowMs = this.nowMs;
          return timers.timer(delayMs, run);
        },
      },
      clock: () => this.nowMs + process.skewMs,
      monotonicMs: () => this.nowMs - process.suspendedMs,
      onFatal: (error) => {
        if (!this.processes.includes(process)) return;
        this.crash(process);
        this.#options.onFatal(name, error);
      },
      peers: (listener) => {
        process.listener = listener;
        return {
          push: (row) => this.#send(process, (to) => to.onPush(row)),
          applied: (position) => {
            const { node } = process.app.node;
            this.#send(process, (to) => to.onApplied(node, position));
          },
          isFedBy: (node) =>
            !process.isUnlinked &&
            this.processes.some((each) => each.app.node.node === node && !each.isUnlinked),
        };
      },
    });
    Object.assign(process, { app });
    this.processes.push(process);
    this.#clients.set(client.client, process);
    return process;
  }

  /** Ends a process as `kill -9` does. */
  crash(process: SimulatedProcess<App>): void {
    const index = this.processes.indexOf(process);
    if (index < 0) return;
    this.processes.splice(index, 1);
    this.#clients.delete(process.client.client);
    process.app.stop();
    process.timers.clear();
    process.immediates.length = 0;
    this.#frames = this.#frames.filter(({ to }) => to !== process);
    this.log.disconnect(process.client.client);
  }

  pause(process: SimulatedProcess<App>, isSuspended = false): void {
    process.paused ??= { sinceMs: this.nowMs, isSuspended };
  }

  resume(process: SimulatedProcess<App>): void {
    const { paused } = process;
    if (paused?.isSuspended === true) process.suspendedMs += this.nowMs - paused.sinceMs;
    process.paused = undefined;
    this.#options.check();
  }

  /** Events that are still to come. */
  get planned(): number {
    return this.#planned.length;
  }

  /** Happens when the time has come. */
  plan(afterMs: number, run: () => void): void {
    this.#planned.push({ atMs: this.nowMs + afterMs, run });
  }

  /** Lets one of the events through that could happen now; false when there is none. */
  async step(): Promise<boolean> {
    const calls = this.log.calls.filter((call) => this.#isPossible(call));
    const frames = this.#frames.filter(({ to }) => to.paused === undefined);
    const queues = this.processes.filter(
      ({ paused, immediates }) => paused === undefined && immediates.length > 0,
    );
    const chosen = Math.floor(this.#random() * (calls.length + frames.length + queues.length));
    const call = calls[chosen];
    const frame = frames[chosen - calls.length];
    const queue = queues[chosen - calls.length - frames.length];
    if (call !== undefined) this.log.step(call);
    else if (frame !== undefined) this.#deliver(frame);
    else if (queue !== undefined) queue.immediates.shift()?.();
    else return false;
    await settled();
    this.#options.check();
    return true;
  }

  /** Lets all through. */
  async rest(): Promise<void> {
    for (let round = 0; round < ROUNDS_MAX; round += 1) if (!(await this.step())) return;
    throw new Error('never comes to rest');
  }

  /** Moves the time. Between timers everything comes to rest when `isCalm`. */
  async pass(durationMs: number, isCalm = true): Promise<void> {
    const endMs = this.nowMs + durationMs;
    for (;;) {
      if (isCalm) await this.rest();
      const next = this.#next(endMs);
      if (next === undefined) break;
      this.nowMs = Math.max(this.nowMs, next.atMs);
      next.run();
      this.#giveUp();
      await settled();
      this.#options.check();
    }
    this.nowMs = endMs;
    this.#giveUp();
  }

  #isPossible(call: MemoryCall): boolean {
    const process = this.#clients.get(call.client);
    if (process?.isCut === true || (call.executed && process?.paused !== undefined)) return false;
    if (this.holds(call)) return false;
    return this.#timesOf(call).arrivesMs <= this.nowMs;
  }

  #timesOf(call: MemoryCall) {
    let times = this.#asked.get(call);
    if (times === undefined) {
      times = { sinceMs: this.nowMs, arrivesMs: this.nowMs + this.#delayOf(call) };
      this.#asked.set(call, times);
    }
    return times;
  }

  #delayOf({ method }: MemoryCall): number {
    if (this.#options.isReliable === true || NEVER_SLOW.has(method)) return 0;
    if (method === 'fetch')
      return this.#random() < SLOW_READS ? Math.floor(this.#random() * SLOW_READ_MAX_MS) : 0;
    const share = method === 'expel' ? SLOW_EXPULSIONS : SLOW_WRITES;
    return this.#random() < share ? Math.floor(this.#random() * SLOW_MAX_MS) : 0;
  }

  #deliver(frame: Frame<App>): void {
    this.#frames.splice(this.#frames.indexOf(frame), 1);
    if (frame.to.listener !== undefined) frame.deliver(frame.to.listener);
  }

  #send(from: SimulatedProcess<App>, deliver: Frame<App>['deliver']): void {
    const isReliable = this.#options.isReliable === true;
    for (const to of this.processes) {
      if (to === from || from.isUnlinked || to.isUnlinked || this.losesFrames) continue;
      if (!isReliable && this.#random() < FRAMES_LOST) continue;
      this.#frames.push({ to, deliver });
      if (!isReliable && this.#random() < FRAMES_DOUBLED) this.#frames.push({ to, deliver });
    }
  }

  /** The next timer of a process that runs, or event that was planned. */
  #next(endMs: number): Planned | undefined {
    let next: Planned | undefined;
    for (const planned of this.#planned) {
      if (planned.atMs <= endMs && planned.atMs < (next?.atMs ?? Number.POSITIVE_INFINITY)) next = planned;
    }
    const event = next;
    if (event !== undefined) {
      next = {
        ...event,
        run: () => {
          this.#planned = this.#planned.filter((each) => each !== event);
          event.run();
        },
      };
    }
    for (const call of this.log.calls) {
      const { arrivesMs } = this.#timesOf(call);
      if (
        arrivesMs <= this.nowMs ||
        arrivesMs > endMs ||
        arrivesMs >= (next?.atMs ?? Number.POSITIVE_INFINITY)
      )
        continue;
      next = { atMs: arrivesMs, run: () => {} };
    }
    for (const { paused, timers } of this.processes) {
      const atMs = paused === undefined ? timers.nextMs : undefined;
      if (atMs === undefined || atMs > endMs || atMs >= (next?.atMs ?? Number.POSITIVE_INFINITY)) continue;
      next = {
        atMs,
        run: () => {
          timers.nowMs = this.nowMs;
          timers.fireNext(this.nowMs);
        },
      };
    }
    return next;
  }

  /** Clients do not wait for ever. Of the questions that are still under way then, half arrive. */
  #giveUp(): void {
    if (this.#options.isReliable === true) return;
    for (const call of [...this.log.calls]) {
      if (call.abandoned || this.nowMs - this.#timesOf(call).sinceMs < GIVE_UP_MS) continue;
      if (this.#clients.get(call.client)?.paused !== undefined) continue;
      if (this.#random() < 0.5) this.log.drop(call);
      else this.log.lose(call);
    }
  }
}

/** Resolves when nothing is left that only waits for promises: the next tick comes after them. */
export function settled(): Promise<void> {
  return new Promise((resolve) => process.nextTick(resolve));
}
