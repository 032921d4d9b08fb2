/**
 * The deterministic simulation of the runtime: one seed is one history of asks, resends, flushes, passivations,
 * clock moves and crashes over a journal in memory. Everything that happens follows from the seed.
 */
import { Cell } from '../../src/actors/runtime/cell.ts';
import { MemoryJournal, type MemoryJournalOptions } from '../../src/actors/runtime/memory-journal.ts';
import { createActorSystem, type RunningSystem } from '../../src/actors/runtime/system.ts';
import { LiveSettings } from '../../src/domain/settings.ts';
import { ManualClock, seededBytes, seededNumbers } from './actors.ts';
import { type LedgerCommand, type LedgerState, ledgerKind } from './ledger-kind.ts';

const STEPS = 60;
const SETTINGS = new LiveSettings();
const ACTORS = ['a', 'b', 'c', 'd'];
const NAMES = ['x', 'y', 'z'];
/** Time for back-offs, timers and sweeps to run their course at the end. */
const EPILOGUE_MS = 200_000;
const ROUNDS_MAX = 2_000;
/** Small enough that every bound is met; the watchdog has a test of its own. */
const LIMITS = {
  groupCommandsMax: 3,
  releaseSlice: 2,
  callsPerActorMax: 2,
  liveActorsMax: 3,
  sweepMs: 40_000,
  commitTimeoutMs: 1_000_000_000,
};

interface Operation {
  readonly id: string;
  readonly command: LedgerCommand;
  acknowledged: boolean;
}

export interface SimulationOptions {
  /** Planted faults of the journal. */
  readonly faults?: MemoryJournalOptions;
  /** Receives each step, for a failing seed that is run alone. */
  readonly trace?: (line: string) => void;
}

/** Runs one seed; what was promised and not kept, or undefined. */
export async function simulate(seed: number, options: SimulationOptions = {}): Promise<string | undefined> {
  const simulation = new Simulation(seed, options);
  const { stackTraceLimit } = Error;
  // Refusals are expected here by the thousand; their stacks would be half of the work.
  Error.stackTraceLimit = options.trace === undefined ? 0 : stackTraceLimit;
  try {
    return await simulation.run();
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}

class Simulation {
  readonly #random: () => number;
  readonly #bytes: (length: number) => Uint8Array;
  readonly #clock = new ManualClock();
  readonly #journal: MemoryJournal;
  readonly #kind = ledgerKind((operation) => this.#slow({ type: 'receive', operation }));
  readonly #trace: (line: string) => void;
  readonly #operations: Operation[] = [];
  #immediates: (() => void)[] = [];
  #works: (() => void)[] = [];
  #system: RunningSystem;
  /** Asks of the present run without an answer. */
  #asking = 0;
  #runs = 0;
  #poisoned = new Set<number>();
  #broken: string | undefined;

  constructor(seed: number, { faults, trace }: SimulationOptions) {
    this.#bytes = seededBytes(seed);
    this.#random = seededNumbers(seed);
    this.#trace = trace ?? (() => {});
    this.#journal = new MemoryJournal(faults);
    this.#system = this.#start();
  }

  #start(): RunningSystem {
    return createActorSystem({
      kinds: [this.#kind],
      journal: this.#journal,
      ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
      settings: SETTINGS,
      clock: this.#clock.read,
      randomBytes: this.#bytes,
      schedule: { immediate: (run) => this.#immediates.push(run), timer: this.#clock.timer },
      limits: LIMITS,
      onFatal: (error) => {
        this.#broken = `fatal: ${error.message}`;
      },
      onBug: ({ error }) => {
        if (!(error instanceof Error) || error.message !== 'planted') this.#broken = `bug: ${String(error)}`;
      },
    });
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random() * items.length)] as T;
  }

  /** Slow work that the simulation ends when it likes; now and then it breaks the rule and rejects. */
  #slow(command: { readonly type: string; readonly operation: number }): Promise<object> {
    const rejects = this.#random() < 0.1;
    if (rejects) this.#poisoned.add(command.operation);
    return new Promise((resolve, reject) =>
      this.#works.push(() => (rejects ? reject(new Error('planted')) : resolve(command))),
    );
  }

  async run(): Promise<string | undefined> {
    for (let step = 0; step < STEPS && this.#broken === undefined; step += 1) {
      this.#step();
      await undefined;
    }
    await this.#epilogue();
    return this.#broken ?? this.#verdict();
  }

  #step(): void {
    const dice = this.#random();
    if (dice < 0.4) this.#newOperation();
    else if (dice < 0.47) this.#resend();
    else if (dice < 0.65) this.#immediates.shift()?.();
    else if (dice < 0.8) this.#journal.flush();
    else if (dice < 0.85) this.#works.splice(Math.floor(this.#random() * this.#works.length), 1)[0]?.();
    else if (dice < 0.89) this.#moveClock(Math.floor(this.#random() * 3_000));
    else if (dice < 0.92) this.#system.passivate();
    else if (dice < 0.95) this.#look();
    else if (dice < 0.97) this.#rest();
    else if (dice < 0.98) this.#drain();
    else this.#crash();
  }

  #newOperation(): void {
    const operation = this.#operations.length + 1;
    const id = this.#pick(ACTORS);
    this.#operations.push({ id, command: this.#command(operation, id), acknowledged: false });
    this.#send(operation);
  }

  #command(operation: number, id: string): LedgerCommand {
    const name = this.#pick(NAMES);
    const dice = this.#random();
    if (dice < 0.25) return { type: 'apply', operation };
    if (dice < 0.35) return { type: 'work', operation, work: () => this.#slow({ type: 'apply', operation }) };
    if (dice < 0.55) {
      const how = this.#pick(['receive', 'receive', 'receive', 'fetch', 'fetch', 'poison']);
      if (how === 'poison') this.#poisoned.add(operation);
      return { type: 'send', operation, toId: this.#pick(ACTORS), how };
    }
    if (dice < 0.65) return { type: 'take', operation, name, id };
    if (dice < 0.7) return { type: 'drop', operation, name, id };
    if (dice < 0.8) {
      return { type: 'time', operation, name, delayMs: Math.floor(this.#random() * 2_000) };
    }
    if (dice < 0.84) return { type: 'cancel', operation, name };
    if (dice < 0.92) return { type: 'queue', operation };
    if (dice < 0.985) return { type: 'settle', operation };
    return { type: 'poison', operation };
  }

  #send(operation: number): void {
    const entry = this.#operations[operation - 1];
    if (entry === undefined) return;
    const run = this.#runs;
    this.#asking += 1;
    const answered = () => {
      if (run === this.#runs) this.#asking -= 1;
    };
    this.#trace(`ask ${entry.id} ${JSON.stringify(entry.command)}`);
    this.#system
      .ask<unknown>(this.#kind, entry.id, entry.command, { idempotencyKey: `key-${operation}` })
      .then(
        (reply) => {
          this.#trace(`acknowledged ${operation}`);
          answered();
          entry.acknowledged = true;
          if (reply !== operation) this.#broken = `${operation} was answered ${String(reply)}`;
        },
        (error: Error) => {
          this.#trace(`refused ${operation}: ${error.message}`);
          answered();
        },
      );
  }

  #resend(): void {
    if (this.#operations.length > 0) this.#send(Math.floor(this.#random() * this.#operations.length) + 1);
  }

  #moveClock(durationMs: number): void {
    const endMs = this.#clock.nowMs + durationMs;
    while (this.#clock.fireNext(endMs));
    this.#clock.nowMs = endMs;
  }

  #look(): void {
    const id = this.#pick(ACTORS);
    try {
      this.#system.now(this.#kind, id, { type: 'hit' });
      const seen = this.#system.query<LedgerState>(this.#kind, id, {});
      if (seen instanceof Promise) seen.catch(() => {});
    } catch (error) {
      this.#trace(`not looked at ${id}: ${String(error)}`);
    }
  }

  /** Everything but slow work and time comes to rest. */
  #rest(): void {
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const run = this.#immediates.shift();
      if (run !== undefined) run();
      else if (!this.#journal.flush()) return;
    }
    this.#broken = 'never comes to rest';
  }

  /** A graceful stop: what was asked is answered or still on its way; then the next run begins. */
  #drain(): void {
    this.#trace('drain');
    void this.#system.drain(0);
    this.#rest();
    this.#crash();
  }

  #crash(): void {
    const inFlight = this.#random() < 0.5 ? 'lost' : 'written';
    this.#trace(`crash, group in flight ${inFlight}`);
    this.#journal.crash(inFlight);
    this.#immediates = [];
    this.#works = [];
    this.#clock.clear();
    this.#runs += 1;
    this.#asking = 0;
    this.#broken ??= this.#checkAcknowledged();
    this.#system = this.#start();
  }

  #states(): Map<string, LedgerState> {
    return new Map(
      ACTORS.map((id) => {
        const cell = new Cell(this.#kind, id);
        cell.replay(this.#journal);
        return [id, cell.state as LedgerState] as const;
      }),
    );
  }

  /** What was acknowledged is there, and nothing is there twice. */
  #checkAcknowledged(): string | undefined {
    const states = this.#states();
    for (const [id, { applied, received, fired }] of states) {
      for (const list of [applied, received, fired]) {
        if (new Set(list).size !== list.length) return `${id} did something twice: ${list.join(' ')}`;
      }
    }
    for (const [index, { id, acknowledged }] of this.#operations.entries()) {
      if (acknowledged && states.get(id)?.applied.includes(index + 1) !== true) {
        return `${index + 1} was acknowledged by ${id} and is lost`;
      }
    }
    return undefined;
  }

  async #epilogue(): Promise<void> {
    const endMs = this.#clock.nowMs + EPILOGUE_MS;
    for (let round = 0; round < ROUNDS_MAX && this.#broken === undefined; round += 1) {
      this.#rest();
      for (const work of this.#works.splice(0)) work();
      await undefined;
      await undefined;
      for (const { kind, id, quarantined } of this.#system.administration.failing()) {
        if (quarantined) this.#system.administration.reset(kind, id);
      }
      if (this.#immediates.length > 0 || this.#journal.flushing || this.#works.length > 0) continue;
      if (!this.#clock.fireNext(endMs)) return;
    }
    this.#broken ??= 'the epilogue never ends';
  }

  #verdict(): string | undefined {
    const lost = this.#checkAcknowledged();
    if (lost !== undefined) return lost;
    const { pending } = this.#system.counters();
    if (pending !== this.#asking) return `${pending} commands are counted, ${this.#asking} wait`;
    const states = this.#states();
    const all = [...states.values()];
    const received = all.flatMap((state) => state.received);
    const dead = this.#journal.dead(1_000).map(({ command }) => (command as { operation: number }).operation);
    const arrived = [...received, ...dead].sort((a, b) => a - b).join(' ');
    const sent = all.flatMap((state) => state.sent).sort((a, b) => a - b);
    if (sent.join(' ') !== arrived) return `sent ${sent.join(' ')}, arrived ${arrived}`;
    if (dead.some((operation) => !this.#poisoned.has(operation))) return `dead letters: ${dead.join(' ')}`;
    if ([...this.#journal.mailboxes()].length > 0) return 'mail is left over';
    if (this.#journal.timers(Number.MAX_SAFE_INTEGER, 1).length > 0) return 'timers are left over';
    for (const [id, { timers, fired, dropped }] of states) {
      if (Object.keys(timers).length > 0) return `${id} still waits for ${JSON.stringify(timers)}`;
      const ghost = fired.find((operation) => dropped.includes(operation));
      if (ghost !== undefined) return `${id} fired ${ghost}, which was cancelled`;
    }
    return this.#checkNames(states);
  }

  #checkNames(states: Map<string, LedgerState>): string | undefined {
    for (const name of NAMES) {
      const owners = [...states].filter(([, state]) => state.names.includes(name)).map(([id]) => id);
      if (owners.length > 1) return `${name} belongs to ${owners.join(' and ')}`;
      const indexed = this.#journal.lookup('publicKey', name);
      if (indexed !== owners[0]) return `${name} is indexed for ${indexed}, owned by ${owners[0]}`;
    }
    return undefined;
  }
}
