/**
 * The deterministic simulation of the log of events: one seed is one history of pushes, resends, flushes, clock moves
 * and crashes over a journal in memory. A reader follows the log all the while, and keeps what it has seen over every
 * crash.
 */

import { MemoryJournal, type MemoryJournalOptions } from '../../../kit/journal/memory.ts';
import { EventInbox } from '../../../src/actors/events/inbox.ts';
import { type JournalEventLog, openEventLog } from '../../../src/actors/events/log.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import type { StoredEvent } from '../../../src/domain/events/events.ts';
import { type IncomingEvent, readEvents } from '../../../src/domain/events/intake.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { ManualClock, seededBytes, seededNumbers } from '../actors/actors.ts';

const STEPS = 120;
const MODULES = ['wallet', 'chat', 'core'];
const ROUNDS_MAX = 5_000;
const EPILOGUE_MS = 5_000;

export interface EventSimulationOptions {
  readonly faults?: MemoryJournalOptions;
  /** Events kept; 1,000,000 unless given. */
  readonly rowsMax?: number;
}

/** Runs one seed; what was promised and not kept, or undefined. */
export function simulateEvents(
  seed: number,
  options: EventSimulationOptions = {},
): Promise<string | undefined> {
  return new EventSimulation(seed, options).run();
}

class EventSimulation {
  readonly #random: () => number;
  readonly #bytes: (length: number) => Uint8Array;
  readonly #journal: MemoryJournal;
  readonly #settings: LiveSettings;
  readonly #trims: boolean;
  readonly #clock = new ManualClock();
  #immediates: (() => void)[] = [];
  #system: RunningSystem;
  #log: JournalEventLog | undefined;
  #inbox: EventInbox | undefined;
  /** All events that were ever sent, by identity, and those whose sender was told that they are taken. */
  readonly #sent = new Map<string, IncomingEvent>();
  readonly #acknowledged = new Set<string>();
  /** Events that the reader saw, by place. */
  readonly #seen: StoredEvent[] = [];
  #missed = 0;
  #ticks = 0;
  #broken: string | undefined;

  constructor(seed: number, { faults, rowsMax }: EventSimulationOptions) {
    this.#random = seededNumbers(seed);
    this.#bytes = seededBytes(seed);
    this.#journal = new MemoryJournal(faults);
    this.#settings = new LiveSettings(rowsMax === undefined ? {} : { EventRowsMax: rowsMax });
    this.#trims = rowsMax !== undefined;
    this.#system = this.#start();
  }

  async run(): Promise<string | undefined> {
    await this.#open();
    for (let step = 0; step < STEPS && this.#broken === undefined; step += 1) {
      await this.#step();
      await undefined;
    }
    await this.#rest(EPILOGUE_MS);
    return this.#broken ?? this.#verdict();
  }

  #schedule() {
    return { immediate: (run: () => void) => void this.#immediates.push(run), timer: this.#clock.timer };
  }

  #start(): RunningSystem {
    return createActorSystem({
      kinds: [],
      journal: this.#journal,
      ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
      settings: this.#settings,
      clock: this.#clock.read,
      randomBytes: this.#bytes,
      schedule: this.#schedule(),
      limits: { groupCommandsMax: 4, releaseSlice: 2, commitTimeoutMs: 1_000_000_000 },
      onFatal: (error) => {
        this.#broken = `fatal: ${error.message}`;
      },
      onBug: ({ error }) => {
        this.#broken = `bug: ${String(error)}`;
      },
    });
  }

  async #open(): Promise<void> {
    const { administration } = this.#system;
    const world = {
      administration,
      settings: this.#settings,
      clock: this.#clock.read,
      schedule: this.#schedule(),
    };
    const opening = openEventLog({ ...world, newEpoch: () => 'epoch' });
    await this.#rest(0);
    this.#log = await opening;
    this.#log.subscribe(() => this.#look());
    this.#inbox = new EventInbox(world);
  }

  async #step(): Promise<void> {
    const dice = this.#random();
    if (dice < 0.35) this.#push(this.#fresh());
    else if (dice < 0.42) this.#resend();
    else if (dice < 0.6) this.#immediates.shift()?.();
    else if (dice < 0.78) this.#journal.flush();
    else if (dice < 0.9) this.#moveClock(Math.floor(this.#random() * 400));
    else if (dice < 0.93) await this.#rest(0);
    else if (dice < 0.96) this.#publish();
    else await this.#crash();
  }

  #fresh(): IncomingEvent[] {
    const module = MODULES[Math.floor(this.#random() * MODULES.length)];
    const texts = Array.from({ length: 1 + Math.floor(this.#random() * 4) }, () => {
      this.#ticks += 1;
      const jitter = Math.floor((this.#random() - 0.5) * 8);
      const tick = this.#random() < 0.02 ? '9223372036854775807' : String(1_000 + this.#ticks + jitter);
      return `{"module":"${module}","tick":"${tick}","type":"x","data":{"id":${this.#ticks}}}`;
    });
    return [...readEvents(`{"events":[${texts.join(',')}]}`, 100, String)];
  }

  #resend(): void {
    const known = [...this.#sent.values()];
    const again = known[Math.floor(this.#random() * known.length)];
    if (again !== undefined) this.#push([again, ...this.#fresh()]);
  }

  #push(events: IncomingEvent[]): void {
    for (const event of events) this.#sent.set(event.identity, event);
    const journal = this.#journal;
    this.#inbox?.accept(events).then(
      ({ accepted, duplicates }) => {
        if (accepted + duplicates !== events.length) this.#broken = 'the counts do not add up';
        for (const { identity } of events) {
          if (!this.#trims && !journal.events.knows(identity))
            this.#broken = `${identity} was acknowledged before it was on disk`;
          this.#acknowledged.add(identity);
        }
      },
      (error: Error) => {
        this.#broken = `refused: ${error.message}`;
      },
    );
  }

  #publish(): void {
    void this.#log?.publish({ type: 'own', userId: '7', data: {} });
  }

  /** The reader: everything after what it has, as far as it is there. */
  #look(): void {
    const log = this.#log;
    if (log === undefined) return;
    const last = this.#seen.at(-1)?.sequence ?? 0;
    const page = log.page(last, 1_000);
    let next = Math.max(last + 1, log.oldest);
    this.#missed += next - last - 1;
    for (const event of page) {
      if (event.sequence !== next) this.#broken = `place ${next} is empty, ${event.sequence} is not`;
      next = event.sequence + 1;
      this.#seen.push(event);
    }
    if (log.newest !== next - 1) this.#broken = `newest is ${log.newest}, the last readable is ${next - 1}`;
  }

  #moveClock(durationMs: number): void {
    const endMs = this.#clock.nowMs + durationMs;
    while (this.#clock.fireNext(endMs));
    this.#clock.nowMs = endMs;
  }

  /** Everything comes to rest; then so much time passes, with rest after every timer. */
  async #rest(durationMs: number): Promise<void> {
    const endMs = this.#clock.nowMs + durationMs;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const run = this.#immediates.shift();
      if (run !== undefined) run();
      else if (!this.#journal.flush()) {
        await undefined;
        await undefined;
        if (this.#immediates.length > 0 || this.#journal.flushing) continue;
        if (durationMs === 0 || !this.#clock.fireNext(endMs)) return;
      }
    }
    this.#broken ??= 'never comes to rest';
  }

  async #crash(): Promise<void> {
    this.#journal.crash(this.#random() < 0.5 ? 'lost' : 'written');
    this.#immediates = [];
    this.#clock.clear();
    this.#broken ??= this.#checkDisk();
    this.#system = this.#start();
    await this.#open();
    this.#look();
  }

  /** Checks the events on disk: each once, everything acknowledged, and the places that the reader knows. */
  #checkDisk(): string | undefined {
    const { events } = this.#journal;
    const log = events.page(0, 1_000_000);
    const identities = [...log, ...events.waiting(0, 1_000_000)].flatMap(({ row }) => row[9] ?? []);
    if (new Set(identities).size !== identities.length) return 'an event is there twice';
    const there = new Set(identities);
    for (const identity of this.#acknowledged) {
      if (!this.#trims && !there.has(identity)) return `${identity} was acknowledged and is lost`;
    }
    const bySequence = new Map(log.map(({ sequence, row }) => [sequence, row[7]]));
    for (const { sequence, jsonText } of this.#seen) {
      const present = bySequence.get(sequence);
      if (present === undefined && !this.#trims) return `place ${sequence} was seen and is empty`;
      if (present !== undefined && present !== jsonText)
        return `place ${sequence} was seen with another event`;
    }
    return undefined;
  }

  #verdict(): string | undefined {
    const faults = this.#checkDisk();
    if (faults !== undefined) return faults;
    if (this.#journal.events.waiting(0, 1).length > 0) return 'an event waits for ever';
    if (this.#trims) return this.#missed < 0 ? 'more was missed than there was' : undefined;
    const delivered = this.#seen.filter(({ module }) => module !== 'gateway').map(({ jsonText }) => jsonText);
    if (new Set(delivered).size !== delivered.length) return 'the reader saw an event twice';
    const jsonTexts = new Set(delivered);
    const unseen = [...this.#acknowledged].filter(
      (identity) => !jsonTexts.has(this.#sent.get(identity)?.jsonText ?? ''),
    );
    return unseen.length > 0 ? `the reader never saw ${unseen.join(' ')}` : undefined;
  }
}
