/** What disturbs the processes of a simulated cluster. Every fault ends by itself. */
import type { Application, SimulatedCluster, SimulatedProcess } from './simulated-cluster.ts';

/** A fault lasts at most so many milliseconds. */
const FAULT_MAX_MS = 2_500;
/** Half of them end about when the other nodes expel: from so many milliseconds on, for as many. */
const FAULT_NEAR_LEASE_MS = 800;
/** After a pause so many operations are asked in so many milliseconds. */
const ASKS_AT_RETURN = 6;
const RETURN_MS = 600;
const SKEW_MAX_MS = 2_000;

interface ClusterFaultsOptions<App> {
  readonly cluster: SimulatedCluster<App & Application>;
  readonly random: () => number;
  readonly trace: (line: string) => void;
  readonly ask: () => void;
  /** Starts the process of that name again, with its replica or without. */
  readonly restart: (name: string, isKept: boolean) => void;
  readonly trim: () => void;
}

export class ClusterFaults<App> {
  readonly #options: ClusterFaultsOptions<App>;
  readonly #random: () => number;
  /** A suspended machine in one half of the histories, clocks that step in the other one (decision 0210). */
  readonly #hasSuspension: boolean;
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
      'clock step': () => {
        if (!this.#hasSuspension) process.skewMs = this.#below(2 * SKEW_MAX_MS) - SKEW_MAX_MS;
      },
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
    const { cluster, ask } = this.#options;
    cluster.pause(process, this.#hasSuspension && this.#random() < 0.5);
    cluster.plan(durationMs, () => cluster.resume(process));
    // The time in which a node that others have given up may still believe that it is in.
    if (this.#random() < 0.5) this.#during(process, durationMs + RETURN_MS, 'isUnlinked');
    for (let afterMs = 0; afterMs < RETURN_MS; afterMs += RETURN_MS / ASKS_AT_RETURN)
      cluster.plan(durationMs + afterMs, ask);
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
    const { cluster, restart } = this.#options;
    cluster.crash(process);
    cluster.plan(durationMs, () => restart(process.name, isKept));
  }

  #leave(process: SimulatedProcess<App & Application>, durationMs: number): void {
    if (process.paused !== undefined) return;
    const { cluster, restart } = this.#options;
    process.app.leave().then(
      () => {
        if (!cluster.processes.includes(process)) return;
        cluster.crash(process);
        cluster.plan(durationMs, () => restart(process.name, true));
      },
      () => {},
    );
  }
}
