/**
 * The deterministic simulation of a cluster: one seed is one history of three nodes with asks, reads, lost answers,
 * pauses, cuts, clocks that step, crashes, leaves and a trimmed log.
 */
import type { LogRow } from '../../../src/actors/runtime/log/port.ts';
import { seededNumbers } from './actors.ts';
import { ModelProcess, ModelStore, type PlantedFault } from './cluster-model.ts';
import { SimulatedCluster, type SimulatedProcess } from './simulated-cluster.ts';

const NAMES = ['one', 'two', 'three'];
const ACTORS = ['a', 'b', 'c', 'd', 'e', 'f'];
const CLAIMED = ['x', 'y'];
const STEPS = 60;
const EPILOGUE_MS = 8_000;
/** Events let through in a row, and milliseconds passed in one step, at most. */
const EVENTS_MAX = 8;
const PASS_MAX_MS = 250;
/** A fault lasts at most so many milliseconds. */
const FAULT_MAX_MS = 2_500;
/** Half of them end about when the other nodes expel: from so many milliseconds on, for as many. */
const FAULT_NEAR_LEASE_MS = 800;
/** After a pause so many operations are asked in so many milliseconds. */
const ASKS_AT_RETURN = 6;
const RETURN_MS = 600;
const SKEW_MAX_MS = 2_000;

export interface HistoryFigures {
  readonly faults: Record<string, number>;
  acknowledged: number;
  takeovers: number;
  reads: number;
}

export interface ClusterSimulationOptions {
  readonly fault?: PlantedFault;
  /** Receives each step, for a failing seed that is run alone. */
  readonly trace?: (line: string) => void;
  readonly figures?: HistoryFigures;
}

/** Runs one seed; what was promised and not kept, or undefined. */
export async function simulateCluster(
  seed: number,
  options: ClusterSimulationOptions = {},
): Promise<string | undefined> {
  const history = new History(seed, options);
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = options.trace === undefined ? 0 : stackTraceLimit;
  try {
    return await history.run();
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

type Process = SimulatedProcess<ModelProcess>;

class History {
  readonly #random: () => number;
  readonly #fault: PlantedFault | undefined;
  readonly #trace: (line: string) => void;
  readonly #figures: HistoryFigures | undefined;
  readonly #cluster: SimulatedCluster<ModelProcess>;
  readonly #stores = new Map<string, ModelStore>();
  /** All rows there ever were: from them a checkpoint is made. */
  readonly #archive: LogRow[] = [];
  /** Of each actor: the longest list that an answer has told of. */
  readonly #told = new Map<string, number>();
  readonly #acknowledged = new Map<number, string>();
  /** First verdict that a store gave at a position. */
  readonly #verdicts: string[] = [];
  /** A suspended machine in one half of the histories, clocks that step in the other one. */
  readonly #hasSuspension: boolean;
  #operations = 0;
  #broken: string | undefined;

  constructor(seed: number, { fault, trace, figures }: ClusterSimulationOptions) {
    this.#random = seededNumbers(seed);
    this.#hasSuspension = this.#random() < 0.5;
    this.#fault = fault;
    this.#figures = figures;
    this.#trace = (line) => trace?.(`${this.#cluster.nowMs % 1_000_000} ${line}`);
    this.#cluster = new SimulatedCluster({
      random: this.#random,
      start: (tools) => {
        const app = new ModelProcess(this.#storeOf(tools.name), tools, fault);
        app.start();
        return app;
      },
      check: () => this.#check(),
      onFatal: (name, error) => this.#ended(name, error),
      expelsRenewed: fault === 'a member that renews is expelled',
      letsFormerWrite: fault === 'a question arrives after its resolution',
    });
  }

  async run(): Promise<string | undefined> {
    for (const name of NAMES) {
      this.#cluster.start(name);
      await this.#cluster.pass(100, true);
    }
    await this.#cluster.pass(500, true);
    for (let step = 0; step < STEPS && this.#broken === undefined; step += 1) await this.#step();
    if (this.#broken === undefined) await this.#epilogue();
    return this.#broken ?? this.#verdict();
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random() * items.length)] as T;
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  #storeOf(name: string): ModelStore {
    let store = this.#stores.get(name);
    if (store === undefined) {
      store = new ModelStore(this.#fault);
      this.#stores.set(name, store);
    }
    return store;
  }

  async #step(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.4) for (let count = this.#below(3); count >= 0; count -= 1) this.#ask();
    else if (dice < 0.55)
      for (let count = this.#below(EVENTS_MAX); count >= 0; count -= 1) await this.#cluster.step();
    else if (dice < 0.85) await this.#cluster.pass(this.#below(PASS_MAX_MS), this.#random() < 0.7);
    else this.#disturb();
  }

  #ask(): void {
    this.#operations += 1;
    const operation = this.#operations;
    const id = this.#pick(ACTORS);
    const name = this.#random() < 0.3 ? this.#pick(CLAIMED) : undefined;
    const process = this.#pick(this.#cluster.processes);
    if (process === undefined || process.paused !== undefined) return;
    const owner = process.app.store.ownerOf(id);
    const target = this.#cluster.processes.find(({ app }) => app.node.node === owner) ?? process;
    if (target.paused !== undefined) return;
    const { store } = target.app;
    const verdict = target.app.ask(id, operation, name);
    this.#trace(
      `${target.name}: ask ${id} ${operation} ${name ?? ''}${verdict === undefined ? ' refused' : ''}`,
    );
    verdict?.then(
      (decided) => {
        this.#trace(`${target.name}: ${operation} is ${decided}`);
        if (decided !== 'applied') return;
        this.#acknowledged.set(operation, id);
        if (this.#figures !== undefined) this.#figures.acknowledged += 1;
        const told = store.operationsOf(id).indexOf(operation) + 1;
        this.#told.set(id, Math.max(told, this.#told.get(id) ?? 0));
      },
      () => {},
    );
  }

  /** One fault that ends by itself. */
  #disturb(): void {
    const process = this.#pick(this.#cluster.processes);
    const isNear = this.#random() < 0.5;
    const durationMs = isNear
      ? FAULT_NEAR_LEASE_MS + this.#below(FAULT_NEAR_LEASE_MS)
      : this.#below(FAULT_MAX_MS);
    const faults: Record<string, () => void> = {
      'lost answer': () => this.#loseCall(),
      'lost question': () => this.#loseCall(),
      pause: () => this.#pause(process, durationMs),
      cut: () => this.#during(process, durationMs, 'isCut'),
      'database away': () => {
        for (const each of this.#cluster.processes) this.#during(each, durationMs, 'isCut');
      },
      'links cut': () => this.#during(process, durationMs, 'isUnlinked'),
      'clock step': () => {
        if (process !== undefined && !this.#hasSuspension)
          process.skewMs = this.#below(2 * SKEW_MAX_MS) - SKEW_MAX_MS;
      },
      'crash, replica kept': () => this.#crash(process, durationMs, true),
      'crash, replica lost': () => this.#crash(process, durationMs, false),
      leave: () => this.#leave(process, durationMs),
      trim: () => this.#trim(),
    };
    const name = this.#pick(Object.keys(faults));
    this.#trace(`${process?.name ?? 'no node'}: ${name} for ${durationMs}`);
    if (this.#figures !== undefined) this.#figures.faults[name] = (this.#figures.faults[name] ?? 0) + 1;
    faults[name]?.();
  }

  /** Of a call that has been executed the answer, of another one the question; it may still arrive. */
  #loseCall(): void {
    const calls = this.#cluster.log.calls.filter(({ abandoned }) => !abandoned);
    const call = this.#pick(calls.filter(({ method }) => method === 'append').concat(calls));
    if (call === undefined) return;
    this.#trace(`lost: ${call.method} of client ${call.client}, executed: ${call.executed}`);
    if (this.#random() < 0.5) this.#cluster.log.lose(call);
    else this.#cluster.log.drop(call);
  }

  #pause(process: Process | undefined, durationMs: number): void {
    if (process === undefined || process.paused !== undefined) return;
    this.#cluster.pause(process, this.#hasSuspension && this.#random() < 0.5);
    this.#cluster.plan(durationMs, () => this.#cluster.resume(process));
    // The time in which a node that others have given up may still believe that it is in.
    if (this.#random() < 0.5) this.#during(process, durationMs + RETURN_MS, 'isUnlinked');
    for (let afterMs = 0; afterMs < RETURN_MS; afterMs += RETURN_MS / ASKS_AT_RETURN)
      this.#cluster.plan(durationMs + afterMs, () => this.#ask());
  }

  #during(process: Process | undefined, durationMs: number, what: 'isCut' | 'isUnlinked'): void {
    if (process === undefined) return;
    process[what] = true;
    this.#cluster.plan(durationMs, () => {
      process[what] = false;
    });
  }

  #crash(process: Process | undefined, durationMs: number, isKept: boolean): void {
    if (process === undefined) return;
    this.#cluster.crash(process);
    this.#startLater(process.name, durationMs, isKept);
  }

  #startLater(name: string, durationMs: number, isKept: boolean): void {
    this.#cluster.plan(durationMs, () => {
      const store = this.#storeOf(name);
      const first = this.#cluster.log.rows[0]?.position ?? this.#cluster.log.position + 1;
      if (!isKept || store.position < first - 1) this.#restore(name, first - 1);
      this.#trace(`${name}: starts at ${this.#storeOf(name).position}`);
      this.#cluster.start(name);
    });
  }

  /** An empty store, or the checkpoint when the rows before it are gone. */
  #restore(name: string, position: number): void {
    this.#keepRows();
    const store = new ModelStore(this.#fault);
    for (const row of this.#archive.slice(0, position)) store.applyNow(row);
    this.#stores.set(name, store);
  }

  #leave(process: Process | undefined, durationMs: number): void {
    if (process === undefined || process.paused !== undefined) return;
    process.app.node.leave().then(
      () => {
        if (!this.#cluster.processes.includes(process)) return;
        this.#cluster.crash(process);
        this.#startLater(process.name, durationMs, true);
      },
      () => {},
    );
  }

  /** As far as every process that runs has come, as the engine knows it. */
  #trim(): void {
    this.#keepRows();
    const applied = this.#cluster.processes.map(({ app }) => app.store.position);
    this.#cluster.log.trim(Math.min(...applied, this.#cluster.log.position) - 1);
  }

  #keepRows(): void {
    for (const row of this.#cluster.log.rows) this.#archive[row.position - 1] = row;
  }

  /** A process ended by itself: its supervisor starts another one, from a checkpoint. */
  #ended(name: string, error: Error): void {
    this.#trace(`${name} ended: ${error.message}`);
    if (error.name === 'LogLost') this.#startLater(name, 0, false);
    else if (error.name === 'NameTaken') this.#startLater(name, 0, true);
    else this.#broken ??= `${name} ended: ${error.message}`;
  }

  /** A node that admits knows what every answer has told; equal positions have equal verdicts. */
  #check(): void {
    for (const { name, paused, app } of this.#cluster.processes) {
      const { position, verdicts } = app.store;
      const verdict = verdicts[position];
      if (verdict !== undefined) {
        this.#verdicts[position] ??= verdict;
        if (this.#verdicts[position] !== verdict)
          this.#broken ??= `${name} differs at ${position}: ${verdict}`;
      }
      if (paused !== undefined || !app.admits) continue;
      if (this.#figures !== undefined) this.#figures.reads += 1;
      for (const [id, count] of this.#told) {
        const seen = app.store.operationsOf(id).length;
        if (seen < count) this.#broken ??= `${name} admits with ${seen} of ${count} operations of ${id}`;
      }
    }
  }

  async #epilogue(): Promise<void> {
    this.#trace('epilogue');
    await this.#cluster.pass(EPILOGUE_MS, true);
    if (this.#broken !== undefined) return;
    const { position } = this.#cluster.log;
    for (const { name, app } of this.#cluster.processes) {
      if (!app.node.admits) this.#broken ??= `${name} never came back`;
      if (app.store.position !== position)
        this.#broken ??= `${name} is at ${app.store.position}, not ${position}`;
      if (app.node.gated > 0) this.#broken ??= `${name} holds answers back`;
    }
    const { length } = this.#cluster.processes;
    if (length !== NAMES.length) this.#broken ??= `${length} processes run`;
    if (this.#figures !== undefined)
      this.#figures.takeovers += this.#cluster.processes.reduce(
        (sum, { app }) => sum + app.node.counts.expelled,
        0,
      );
  }

  #verdict(): string | undefined {
    this.#keepRows();
    const written = this.#archive
      .map(({ body }) => Buffer.from(body).toString())
      .filter((text) => text.includes('turn'));
    const doubled = written.find((text, index) => written.indexOf(text) !== index);
    if (doubled !== undefined) return `the log has ${doubled} twice`;
    const [first, ...others] = this.#cluster.processes.map(({ app }) => app.store);
    if (first === undefined) return 'no process runs';
    const [fault] = first.faults;
    if (fault !== undefined) return fault;
    for (const [operation, id] of this.#acknowledged) {
      if (!first.operationsOf(id).includes(operation))
        return `${operation} was acknowledged by ${id} and is lost`;
    }
    for (const [id, operations] of first.actors) {
      if (new Set(operations).size !== operations.length)
        return `${id} did something twice: ${operations.join(' ')}`;
    }
    for (const other of others) {
      for (const id of ACTORS) {
        if (other.operationsOf(id).join(' ') !== first.operationsOf(id).join(' '))
          return `replicas differ in ${id}`;
      }
      for (const name of CLAIMED)
        if (other.names.get(name) !== first.names.get(name)) return `replicas differ in ${name}`;
    }
    return undefined;
  }
}
