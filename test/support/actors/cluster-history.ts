/**
 * Common parts of the histories of a simulated cluster: three nodes with their disks, steps by chance, the faults of
 * cluster-faults.ts, and rounds until everything has come to rest.
 */
import type { MemoryJournal } from '../../../kit/journal/memory.ts';
import { seededNumbers } from './actors.ts';
import { ClusterFaults } from './cluster-faults.ts';
import {
  type Application,
  type ProcessTools,
  SimulatedCluster,
  type SimulatedClusterOptions,
  type SimulatedProcess,
} from './simulated-cluster.ts';

const NODES = ['one', 'two', 'three'];
/** Calls, frames and immediates let through in a row, at most. */
const LET_THROUGH_MAX = 8;

export interface ClusterFigures {
  readonly faults: Record<string, number>;
  takeovers: number;
}

export interface HistoryOptions {
  /** Receives each step, for a failing seed that is run alone. */
  readonly trace?: (line: string) => void;
  readonly figures?: ClusterFigures;
}

interface ServingApplication extends Application {
  readonly cluster: { readonly replica: { readonly position: number } };
}

/** Rounds at the end, in which clocks are right: returns, takeovers and timers run their course. */
interface Rounds {
  readonly roundMs: number;
  readonly roundsMax: number;
}

export abstract class ClusterHistory<
  App extends ServingApplication,
  Disk extends { readonly journal: MemoryJournal },
  Options extends HistoryOptions,
> {
  protected readonly options: Options;
  protected readonly random: () => number;
  protected readonly trace: (line: string) => void;
  protected readonly cluster: SimulatedCluster<App>;
  protected readonly faults: ClusterFaults<App>;
  protected readonly disks = new Map<string, Disk>();
  protected broken: string | undefined;

  constructor(
    seed: number,
    options: Options,
    log?: Pick<SimulatedClusterOptions<App>, 'expelsRenewed' | 'letsFormerWrite' | 'leaseOf'>,
  ) {
    this.options = options;
    this.random = seededNumbers(seed);
    const { trace } = options;
    this.trace =
      trace === undefined ? () => {} : (line) => trace(`${this.cluster.nowMs % 1_000_000} ${line}`);
    this.cluster = new SimulatedCluster({
      ...log,
      random: this.random,
      start: (tools) => this.start(tools),
      check: () => this.check(),
      onFatal: (name, error) => this.ended(name, error),
    });
    this.faults = new ClusterFaults({
      cluster: this.cluster,
      random: this.random,
      trace: this.trace,
      ask: () => this.ask(),
      repeat: () => this.repeat(),
      restart: (name, isKept) => void this.restart(name, isKept),
      trim: () => this.trim(),
    });
  }

  protected abstract newDisk(): Disk;
  protected abstract start(tools: ProcessTools): App;
  protected abstract step(): Promise<void>;
  protected abstract epilogue(): Promise<void>;
  /** Nothing is under way. */
  protected abstract get isIdle(): boolean;

  /** Before the first step. */
  protected async begin(): Promise<void> {}
  protected check(): void {}
  protected ask(): void {}
  protected repeat(): void {}
  protected trim(): void {}
  protected verdict(): string | undefined {
    return undefined;
  }

  async run(steps: number): Promise<string | undefined> {
    for (const name of NODES) {
      this.cluster.startProcess(name);
      await this.cluster.pass(100, true);
    }
    await this.cluster.pass(500, true);
    await this.begin();
    for (let step = 0; step < steps && this.broken === undefined; step += 1) await this.step();
    this.trace('epilogue');
    if (this.broken === undefined) await this.epilogue();
    this.count();
    return this.broken ?? this.verdict();
  }

  protected break(promise: string): void {
    if (this.broken === undefined) this.trace(`broken: ${promise}`);
    this.broken ??= promise;
  }

  protected below(end: number): number {
    return Math.floor(this.random() * end);
  }

  protected pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  protected async letThrough(): Promise<void> {
    for (let count = this.below(LET_THROUGH_MAX); count >= 0; count -= 1) await this.cluster.step();
  }

  protected pass(maxMs: number): Promise<void> {
    return this.cluster.pass(this.below(maxMs), this.random() < 0.7);
  }

  protected diskOf(name: string): Disk {
    const disk = this.disks.get(name) ?? this.newDisk();
    this.disks.set(name, disk);
    return disk;
  }

  protected restart(name: string, isKept: boolean): void | Promise<void> {
    this.trace(`${name}: starts`);
    if (isKept) this.disks.get(name)?.journal.crash(this.random() < 0.5 ? 'lost' : 'written');
    else this.disks.delete(name);
    this.cluster.startProcess(name);
  }

  /** A process ended by itself. One whose writes were rejected when it left is started again by its supervisor. */
  protected ended(name: string, error: Error): void {
    this.trace(`${name} ended: ${error.message}`);
    if (error.name === 'NameTaken' || error.name === 'NodeStopped') void this.restart(name, true);
    else this.break(`${name} ended: ${error.message}\n${error.stack}`);
  }

  protected async settle({ roundMs, roundsMax }: Rounds, beforeEach = () => {}): Promise<void> {
    for (let round = 0; round < roundsMax && this.broken === undefined && !this.isIdle; round += 1) {
      for (const process of this.cluster.processes) process.skewMs = 0;
      this.cluster.databaseSkewMs = 0;
      beforeEach();
      await this.cluster.pass(roundMs, true);
    }
  }

  protected get areAllUp(): boolean {
    return this.cluster.processes.length === NODES.length;
  }

  /** They have applied everything, and admit. */
  protected get areAllServing(): boolean {
    const { processes, log, planned } = this.cluster;
    const serves = ({ app, paused }: SimulatedProcess<App>) =>
      paused === undefined && app.node.admits && app.cluster.replica.position === log.position;
    return this.areAllUp && planned === 0 && processes.every(serves);
  }

  protected count(): void {
    const { figures } = this.options;
    if (figures === undefined) return;
    for (const [name, count] of Object.entries(this.faults.counts))
      figures.faults[name] = (figures.faults[name] ?? 0) + count;
    for (const { app } of this.cluster.processes) figures.takeovers += app.node.counts.expelled;
  }
}

/**
 * Returns the promise that a history breaks, or its error, with its stack where it is traced; undefined when it keeps
 * all promises.
 */
export async function brokenPromiseOf(
  run: () => Promise<string | undefined>,
  options: { readonly trace?: unknown },
): Promise<string | undefined> {
  const { stackTraceLimit } = Error;
  // Refusals are expected here by the thousand; their stacks would be half of the work.
  Error.stackTraceLimit = options.trace === undefined ? 0 : stackTraceLimit;
  try {
    return await run();
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
