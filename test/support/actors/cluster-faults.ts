/** Disturbances of the processes of a simulated cluster. Every fault ends by itself. */
import type { Application, SimulatedCluster, SimulatedProcess } from './simulated-cluster.ts';

/** A fault lasts at most so many milliseconds. */
const FAULT_MAX_MS = 2_500;
/** Half of them end about when the other nodes expel: from so many milliseconds on, for as many. */
const FAULT_NEAR_LEASE_MS = 800;
/** After a pause so many operations are asked in so many milliseconds. */
const ASKS_AT_RETURN = 6;
const RETURN_MS = 600;
const SKEW_MAX_MS = 2_000;
/** Clocks that no member may have: from so many milliseconds on. Timers of a node that was ahead are still to fire. */
const WRONG_MS = 7_000;
const WRONG_MORE_MS = { node: 20_000, database: 3_600_000 };
/** A clock is repaired so long after the fault. */
const REPAIR_MS = 2_000;
/** A step with which a node that renews late seems to have stopped: from so many milliseconds on, for as many. */
const STEP_NEAR_LEASE_MS = 350;
/** While owners change, callers without an answer repeat so many operations, in so many milliseconds. */
const REPEATS_AT_MOVE = 6;
const MOVE_MS = 120;

interface ClusterFaultsOptions<App> {
  readonly cluster: SimulatedCluster<App & Application>;
  readonly random: () => number;
  readonly trace: (line: string) => void;
  readonly ask: () => void;
  /** Asks again for an operation that has no answer. */
  readonly repeat: () => void;
  /** Starts the process of that name again, with its replica or without. */
  readonly restart: (name: string, isKept: boolean) => void;
  readonly trim: () => void;
}

export class ClusterFaults<App> {
  readonly #options: ClusterFaultsOptions<App>;
  readonly #random: () => number;
  /**
   * A suspended machine, and a database whose clock steps, in one half of the histories; clocks of nodes that step in the
   * other one (decision 0210).
   */
  readonly #hasSuspension: boolean;
  /** Names of the nodes whose clock was wrong at some time. */
  readonly wrongClocks = new Set<string>();
  readonly counts: Record<string, number> = {};

  constructor(options: ClusterFaultsOptions<App>) {
    this.#options = options;
    this.#random = options.random;
    this.#hasSuspension = this.#random() < 0.5;
  }

  /** One fault, of one process or of all. */
  disturb(): void {
    const { cluster, trace } = this.#options;
    const process = this.#pick(cluster.processes);
    if (process === undefined) return;
    const isNear = this.#random() < 0.5;
    const durationMs = isNear
      ? FAULT_NEAR_LEASE_MS + this.#below(FAULT_NEAR_LEASE_MS)
      : this.#below(FAULT_MAX_MS);
    const faults: Record<string, () => void> = {
      'lost answer': () => this.#loseCall(true),
      'lost question': () => this.#loseCall(false),
      pause: () => this.#pause(process, durationMs),
      cut: () => this.#during(process, durationMs, 'isCut'),
      'database away': () => {
        for (const each of cluster.processes) this.#during(each, durationMs, 'isCut');
      },
      'links cut': () => this.#during(process, durationMs, 'isUnlinked'),
      'clock step': () => this.#step(process, durationMs),
      'wrong clock': () => this.#stepFar(process, durationMs),
      'crash, replica kept': () => this.#crash(process, durationMs, true),
      'crash, replica lost': () => this.#crash(process, durationMs, false),
      leave: () => this.#leave(process, durationMs),
      trim: () => this.#options.trim(),
    };
    const name = this.#pick(Object.keys(faults)) ?? '';
    trace(`${process.name}: ${name} for ${durationMs} ms`);
    this.counts[name] = (this.counts[name] ?? 0) + 1;
    faults[name]?.();
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[this.#below(items.length)];
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** A question may still arrive. */
  #loseCall(isExecuted: boolean): void {
    const { log } = this.#options.cluster;
    const calls = log.calls.filter(({ abandoned, executed }) => !abandoned && executed === isExecuted);
    const call = this.#pick(calls.filter(({ method }) => method === 'append').concat(calls));
    if (call === undefined) return;
    this.#options.trace(`lost: ${call.method} of client ${call.client}`);
    if (this.#random() < 0.5) log.lose(call);
    else log.drop(call);
  }

  #pause(process: SimulatedProcess<App & Application>, durationMs: number): void {
    if (process.paused !== undefined) return;
    const { cluster } = this.#options;
    cluster.pause(process, this.#hasSuspension && this.#random() < 0.5);
    cluster.plan(durationMs, () => cluster.resume(process));
    // The time in which a node that others have given up may still believe that it is in.
    if (this.#random() < 0.5) this.#during(process, durationMs + RETURN_MS, 'isUnlinked');
    this.#askFrom(durationMs);
  }

  /** Asks while a node may not know that it is out. */
  #askFrom(fromMs: number): void {
    const { cluster, ask } = this.#options;
    for (let afterMs = 0; afterMs < RETURN_MS; afterMs += RETURN_MS / ASKS_AT_RETURN)
      cluster.plan(fromMs + afterMs, ask);
  }

  /** A clock steps: anywhere, or forward by less than a lease while another node cannot renew. */
  #step(process: SimulatedProcess<App & Application>, durationMs: number): void {
    if (this.#hasSuspension) return;
    const other = this.#pick(this.#options.cluster.processes.filter((each) => each !== process));
    if (other === undefined || this.#random() < 0.5) {
      process.skewMs = this.#below(2 * SKEW_MAX_MS) - SKEW_MAX_MS;
      return;
    }
    const stepMs = STEP_NEAR_LEASE_MS + this.#below(STEP_NEAR_LEASE_MS);
    process.skewMs = Math.min(process.skewMs + stepMs, SKEW_MAX_MS);
    this.#during(other, durationMs, 'isCut');
    this.#during(other, durationMs, 'isUnlinked');
    this.#askFrom(0);
  }

  /** Far off: of a node for a while, or of the database until its next step. */
  #stepFar(process: SimulatedProcess<App & Application>, durationMs: number): void {
    const { cluster } = this.#options;
    const whose = this.#hasSuspension ? 'database' : 'node';
    const skewMs = (WRONG_MS + this.#below(WRONG_MORE_MS[whose])) * (this.#random() < 0.5 ? -1 : 1);
    if (whose === 'database') {
      cluster.databaseSkewMs = skewMs;
      return;
    }
    this.wrongClocks.add(process.name);
    process.skewMs = skewMs;
    cluster.plan(durationMs + REPAIR_MS, () => {
      process.skewMs = 0;
    });
  }

  #during(
    process: SimulatedProcess<App & Application>,
    durationMs: number,
    what: 'isCut' | 'isUnlinked',
  ): void {
    process[what] = true;
    this.#options.cluster.plan(durationMs, () => {
      process[what] = false;
    });
  }

  #crash(process: SimulatedProcess<App & Application>, durationMs: number, isKept: boolean): void {
    const { cluster } = this.#options;
    cluster.crash(process);
    this.#planReturn(process.name, durationMs, isKept);
  }

  #planReturn(name: string, afterMs: number, isKept: boolean): void {
    const { cluster, restart } = this.#options;
    cluster.plan(afterMs, () => {
      restart(name, isKept);
      this.#move();
    });
  }

  /** Owners change soon. Some node may lack the newest rows then. */
  #move(): void {
    const { cluster, ask, repeat } = this.#options;
    const other = this.#pick(cluster.processes);
    if (other !== undefined && this.#random() < 0.5) this.#during(other, MOVE_MS, 'isUnlinked');
    ask();
    for (let afterMs = 0; afterMs < MOVE_MS; afterMs += MOVE_MS / REPEATS_AT_MOVE)
      cluster.plan(afterMs, repeat);
  }

  #leave(process: SimulatedProcess<App & Application>, durationMs: number): void {
    if (process.paused !== undefined) return;
    const { cluster } = this.#options;
    this.#move();
    cluster.plan(this.#below(MOVE_MS), () => {
      if (!cluster.processes.includes(process) || process.paused !== undefined) return;
      process.app.leave().then(
        () => {
          if (cluster.processes.includes(process)) this.#crash(process, durationMs, true);
        },
        () => {},
      );
    });
  }
}
