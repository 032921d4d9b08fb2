/**
 * The deterministic simulation of the runtime: one seed is one history of asks, resends, flushes, passivations,
 * clock moves and crashes over a journal in memory; in every fourth one rows rot, the file is cut off, and a second
 * process opens the journal. Everything that happens follows from the seed.
 */

import { MemoryJournal, type MemoryJournalOptions } from '../../../kit/journal/memory.ts';
import { Cell } from '../../../src/actors/runtime/cell.ts';
import {
  DamagedRow,
  type Operation as JournalOperation,
  JournalTaken,
} from '../../../src/actors/runtime/journal/port.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { ManualClock, seededBytes, seededNumbers } from './actors.ts';
import { brokenPromiseOf } from './cluster-history.ts';
import { type LedgerCommand, type LedgerRequest, type LedgerState, ledgerKind } from './ledger-kind.ts';
import { StandingThreads } from './standing-threads.ts';

const STEPS = 60;
const SETTINGS = new LiveSettings();
const ACTORS = ['a', 'b', 'c', 'd'];
const NAMES = ['x', 'y', 'z'];
/** Time for back-offs, timers and sweeps to run their course at the end. */
const EPILOGUE_MS = 200_000;
const ROUNDS_MAX = 2_000;
/** Every so many seeds the disk is bad, by so much a step. */
const BAD_DISK_SEEDS = 4;
const BAD_DISK_SHARE = 0.05;
/** Small enough that every bound is met; the watchdog has a test of its own. */
export const LIMITS = {
  groupCommandsMax: 3,
  releaseSlice: 2,
  callsPerActorMax: 2,
  liveActorsMax: 3,
  sweepMs: 40_000,
  commitTimeoutMs: 1_000_000_000,
};

interface Operation {
  readonly id: string;
  readonly command: LedgerRequest;
  acknowledged: boolean;
  sends: number;
  /** The one answer that it got: its thread stood still. */
  isLate: boolean;
}

export interface SimulationOptions {
  /** Planted faults of the journal. */
  readonly faults?: MemoryJournalOptions;
  /** Slow work is done by worker threads of which some stand still; `silent`: a planted fault of their pool. */
  readonly threads?: 'standing' | 'silent';
  /** Receives each step, for a failing seed that is run alone. */
  readonly trace?: (line: string) => void;
}

/** Runs one seed; what was promised and not kept, or undefined. */
export function simulate(seed: number, options: SimulationOptions = {}): Promise<string | undefined> {
  return brokenPromiseOf(() => new Simulation(seed, options).run(), options);
}

function printed(operation: JournalOperation): string {
  return JSON.stringify(operation, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
}

class Simulation {
  readonly #random: () => number;
  readonly #bytes: (length: number) => Uint8Array;
  readonly #clock = new ManualClock();
  readonly #journal: MemoryJournal;
  readonly #kind = ledgerKind(
    (operation) => this.#work({ type: 'receive', operation }),
    (operation) => this.#trace(`notified ${operation}`),
  );
  readonly #trace: (line: string) => void;
  readonly #threads: StandingThreads | undefined;
  readonly #operations: Operation[] = [];
  #immediates: (() => void)[] = [];
  #works: (() => void)[] = [];
  #system: RunningSystem;
  /** Asks of the present run without an answer. */
  #asking = 0;
  #runs = 0;
  readonly #hasBadDisk: boolean;
  /** Rows have rotted: what cannot be read is not held against the runtime. */
  #rotten = false;
  /** Systems that another one took the journal from. */
  #former: RunningSystem[] = [];
  #poisoned = new Set<number>();
  #broken: string | undefined;

  constructor(seed: number, { faults, threads, trace }: SimulationOptions) {
    this.#bytes = seededBytes(seed);
    this.#random = seededNumbers(seed);
    this.#trace = trace ?? (() => {});
    this.#hasBadDisk = seed % BAD_DISK_SEEDS === 0;
    const written = (group: readonly JournalOperation[]) => {
      for (const operation of group) trace?.(`written ${printed(operation)}`);
      return group;
    };
    this.#journal = new MemoryJournal({ ...(trace !== undefined && { tamper: written }), ...faults });
    const isSilent = threads === 'silent';
    const later = (end: () => void) => void this.#works.push(end);
    this.#threads =
      threads && new StandingThreads({ random: this.#random, clock: this.#clock, later, isSilent });
    this.#system = this.#start();
  }

  #start(): RunningSystem {
    const run = this.#runs;
    return createActorSystem({
      kinds: [this.#kind],
      journal: this.#hasBadDisk ? this.#journal.open() : this.#journal,
      ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
      settings: SETTINGS,
      clock: this.#clock.read,
      randomBytes: this.#bytes,
      schedule: { immediate: (run) => this.#immediates.push(run), timer: this.#clock.timer },
      limits: LIMITS,
      onFatal: (error) => {
        if (run !== this.#runs && error instanceof JournalTaken) return;
        this.#broken = `fatal: ${error.message}`;
      },
      onBug: ({ error }) => {
        if (run !== this.#runs || (this.#rotten && error instanceof DamagedRow)) return;
        if (!(error instanceof Error) || error.message !== 'planted') this.#broken = `bug: ${String(error)}`;
      },
    });
  }

  #pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random() * items.length)] as T;
  }

  /** Slow work that the simulation ends when it likes; now and then it breaks the rule and rejects. */
  #slow<Command extends LedgerCommand>(command: Command): Promise<Command> {
    this.#trace(`calls ${command.type} ${command.operation}`);
    const rejects = this.#random() < 0.1;
    if (rejects) this.#poisoned.add(command.operation);
    return new Promise((resolve, reject) =>
      this.#works.push(() => (rejects ? reject(new Error('planted')) : resolve(command))),
    );
  }

  /** The same by a worker thread, which may stand still. */
  #work(command: LedgerCommand): Promise<LedgerCommand> {
    if (this.#threads === undefined) return this.#slow(command);
    const { type, operation } = command;
    return this.#threads
      .task()
      .then(({ ok }) => (ok ? command : { type: 'late', operation, again: type === 'receive' }));
  }

  async run(): Promise<string | undefined> {
    for (let step = 0; step < STEPS && this.#broken === undefined; step += 1) {
      this.#step();
      await this.#promises();
    }
    await this.#epilogue();
    return this.#broken ?? this.#verdict();
  }

  /** The answer of a thread passes more promises before it reaches its actor: a crash must not come in between. */
  async #promises(): Promise<void> {
    if (this.#threads !== undefined) for (let passed = 0; passed < 10; passed += 1) await undefined;
  }

  #step(): void {
    if (this.#hasBadDisk && this.#random() < BAD_DISK_SHARE) {
      this.#badDisk();
      return;
    }
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
    this.#operations.push({
      id,
      command: this.#command(operation, id),
      acknowledged: false,
      sends: 0,
      isLate: false,
    });
    this.#send(operation);
  }

  #command(operation: number, id: string): LedgerRequest {
    const name = this.#pick(NAMES);
    const dice = this.#random();
    if (dice < 0.25) return { type: 'apply', operation };
    if (dice < 0.35) return { type: 'work', operation, work: () => this.#work({ type: 'apply', operation }) };
    if (dice < 0.55) {
      const how = this.#pick(['receive', 'receive', 'receive', 'fetch', 'fetch', 'poison'] as const);
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
    this.#trace(`ask ${entry.id} ${JSON.stringify(entry.command)}`);
    entry.sends += 1;
    const former = this.#former.length > 0 && this.#random() < 0.5 ? this.#pick(this.#former) : undefined;
    // A former owner counts its own callers, and may never answer them.
    const counted = former === undefined ? 1 : 0;
    this.#asking += counted;
    const answered = () => {
      if (run === this.#runs) this.#asking -= counted;
    };
    (former ?? this.#system)
      .ask(this.#kind, entry.id, entry.command, { idempotencyKey: `key-${operation}` })
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
          entry.isLate = entry.sends === 1 && error instanceof GatewayError && error.row === 'TaskTimedOut';
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
      const seen = this.#system.query(this.#kind, id, { type: 'state' });
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

  #badDisk(): void {
    const dice = this.#random();
    if (dice < 0.5) {
      const row = this.#journal.rot(this.#random());
      this.#rotten ||= row !== undefined;
      this.#trace(`rot of ${row}`);
    } else if (dice < 0.8) this.#secondOwner();
    else this.#crash(() => this.#startOnCutFile());
  }

  /** Another process opens the journal; the former owner continues as long as it can. */
  #secondOwner(): void {
    this.#trace('second owner');
    this.#former.push(this.#system);
    this.#runs += 1;
    this.#asking = 0;
    this.#system = this.#start();
  }

  /** A file that was cut off is not opened; a backup of the same moment is. */
  #startOnCutFile(): RunningSystem {
    const { restore } = this.#journal.cutOff();
    this.#trace('cut off');
    try {
      return this.#start();
    } catch {
      restore();
      return this.#start();
    }
  }

  #crash(start = () => this.#start()): void {
    const inFlight = this.#random() < 0.5 ? 'lost' : 'written';
    this.#trace(`crash, group in flight ${inFlight}`);
    this.#journal.crash(inFlight);
    this.#immediates = [];
    this.#works = [];
    this.#clock.clear();
    this.#threads?.crash();
    this.#runs += 1;
    this.#asking = 0;
    this.#former = [];
    this.#broken ??= this.#checkAcknowledged();
    this.#system = start();
  }

  #states(): Map<string, LedgerState> {
    const states = new Map<string, LedgerState>();
    for (const id of ACTORS) {
      const cell = new Cell(this.#kind, id);
      try {
        cell.replay(this.#journal);
        states.set(id, cell.state as LedgerState);
      } catch (error) {
        if (!this.#rotten || !(error instanceof DamagedRow)) throw error;
      }
    }
    return states;
  }

  /**
   * Checks that acknowledged operations are there, unless their actor cannot be read, and that nothing is there twice.
   */
  #checkAcknowledged(): string | undefined {
    const states = this.#states();
    for (const [id, { applied, received, fired }] of states) {
      for (const list of [applied, received, fired]) {
        if (new Set(list).size !== list.length) return `${id} did something twice: ${list.join(' ')}`;
      }
    }
    for (const [index, { id, acknowledged }] of this.#operations.entries()) {
      if (acknowledged && states.get(id)?.applied.includes(index + 1) === false) {
        return `${index + 1} was acknowledged by ${id} and is lost`;
      }
    }
    return undefined;
  }

  async #epilogue(): Promise<void> {
    if (this.#threads !== undefined) this.#threads.stands = false;
    const endMs = this.#clock.nowMs + EPILOGUE_MS;
    for (let round = 0; round < ROUNDS_MAX && this.#broken === undefined; round += 1) {
      this.#rest();
      for (const work of this.#works.splice(0)) work();
      await this.#promises();
      await this.#promises();
      for (const { kind, id, quarantined, lastError } of this.#system.administration.failing()) {
        if (quarantined && !lastError.includes('is damaged')) this.#system.administration.reset(kind, id);
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
    const standing = this.#verdictOfThreads();
    if (standing !== undefined) return standing;
    const states = this.#states();
    if (this.#rotten) return this.#verdictOfSound(states);
    const all = [...states.values()];
    const received = all.flatMap((state) => state.received);
    const dead = this.#journal.dead(1_000).map(({ command }) => (command as LedgerCommand).operation);
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

  #verdictOfThreads(): string | undefined {
    if (this.#threads === undefined) return undefined;
    if (this.#threads.waiting > 0) return `${this.#threads.waiting} callers of threads have no answer`;
    if (this.#threads.isDescriptorFree) return 'a descriptor is free that a task uses, or is never free';
    const states = this.#states();
    const undone = this.#operations.findIndex(
      ({ id, isLate, sends }, at) => isLate && sends === 1 && states.get(id)?.applied.includes(at + 1),
    );
    return undone < 0 ? undefined : `${undone + 1} was late, and is applied`;
  }

  /** Verdict on a history with rotten rows: readable rows are true, and only unreadable ones are missing. */
  #verdictOfSound(states: Map<string, LedgerState>): string | undefined {
    let missing = 0;
    const letters = this.#journal.dead(1_000).map(({ command }) => command as { operation?: number });
    for (const [id, { received, sent }] of states) {
      for (const operation of received) {
        const command = this.#operations[operation - 1]?.command;
        if (command?.type !== 'send' || command.toId !== id) return `${id} received ${operation}`;
      }
      for (const operation of sent) {
        const command = this.#operations[operation - 1]?.command;
        const target = command?.type === 'send' ? states.get(command.toId) : undefined;
        if (target === undefined || target.received.includes(operation)) continue;
        if (!letters.some((letter) => letter.operation === operation)) missing += 1;
      }
    }
    const unreadable = letters.filter(({ operation }) => operation === undefined).length;
    if (missing > unreadable) return `${missing} messages are missing, ${unreadable} could not be read`;
    return this.#checkNames(states);
  }

  #checkNames(states: Map<string, LedgerState>): string | undefined {
    for (const name of NAMES) {
      const owners = [...states].filter(([, state]) => state.names.includes(name)).map(([id]) => id);
      if (owners.length > 1) return `${name} belongs to ${owners.join(' and ')}`;
      const indexed = this.#lookUp(name);
      const cannotBeRead = indexed instanceof DamagedRow || (indexed !== undefined && !states.has(indexed));
      if (this.#rotten && cannotBeRead) continue;
      if (indexed !== owners[0]) return `${name} is indexed for ${String(indexed)}, owned by ${owners[0]}`;
    }
    return undefined;
  }

  #lookUp(name: string): string | DamagedRow | undefined {
    try {
      return this.#journal.lookup('publicKey', name);
    } catch (error) {
      if (error instanceof DamagedRow) return error;
      throw error;
    }
  }
}
