/**
 * A working actor system for unit tests: the memory journal, a clock that the test moves, randomness from a seed.
 * Time stands still until `advance`; commits happen by themselves.
 */

import { MemoryJournal } from '../../../kit/journal/memory.ts';
import { seededNumbers } from '../../../kit/seeded-numbers.ts';
import type { AnyKind, KindOf } from '../../../src/actors/runtime/actor.ts';
import type { CallAudit } from '../../../src/actors/runtime/audit/call-audit.ts';
import type { Ownership } from '../../../src/actors/runtime/ownership.ts';
import type { Ports } from '../../../src/actors/runtime/ports.ts';
import type { AnyProtocol, Asked, TypeIn } from '../../../src/actors/runtime/protocol.ts';
import type { RuntimeLimits, Schedule } from '../../../src/actors/runtime/runtime-context.ts';
import type { BugReport } from '../../../src/actors/runtime/supervision.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';

export { seededNumbers };

/** 2026-01-01T00:00:00Z. */
export const START_MS = 1_767_225_600_000;

/** A clock with timers that fire only when the test moves it. */
export class ManualClock {
  nowMs: number;
  #sequence = 0;
  readonly #timers = new Map<number, { dueMs: number; run: () => void }>();

  constructor(nowMs = START_MS) {
    this.nowMs = nowMs;
  }

  readonly read = (): number => this.nowMs;

  readonly timer = (delayMs: number, run: () => void): (() => void) => {
    this.#sequence += 1;
    const sequence = this.#sequence;
    this.#timers.set(sequence, { dueMs: this.nowMs + delayMs, run });
    return () => this.#timers.delete(sequence);
  };

  /** Moves to the next timer that is due by `untilMs` and fires it. False when there is none. */
  fireNext(untilMs: number): boolean {
    let found: number | undefined;
    let foundMs = Number.POSITIVE_INFINITY;
    for (const [sequence, { dueMs }] of this.#timers) {
      if (dueMs <= untilMs && dueMs < foundMs) {
        found = sequence;
        foundMs = dueMs;
      }
    }
    if (found === undefined) return false;
    const timer = this.#timers.get(found);
    this.#timers.delete(found);
    this.nowMs = Math.max(this.nowMs, foundMs);
    timer?.run();
    return true;
  }

  /** Time at which the next timer is due; undefined when there is none. */
  get nextMs(): number | undefined {
    let nextMs: number | undefined;
    for (const { dueMs } of this.#timers.values()) nextMs = Math.min(nextMs ?? dueMs, dueMs);
    return nextMs;
  }

  clear(): void {
    this.#timers.clear();
  }
}

/** Random bytes that repeat with the seed. */
export function seededBytes(seed: number): (length: number) => Uint8Array {
  const next = seededNumbers(seed);
  return (length) => Uint8Array.from({ length }, () => next() * 256);
}

export interface TestActorsOptions {
  readonly kinds: readonly AnyKind[];
  /** Ports that `next` may call. Without it every worker task fails with `InternalError`. */
  readonly ports?: Ports;
  readonly settings?: LiveSettings;
  readonly limits?: Partial<RuntimeLimits>;
  readonly callAudit?: CallAudit;
  readonly ownership?: Ownership;
  readonly nowMs?: number;
  readonly seed?: number;
}

export interface TestActors {
  /** The running system; a new one after `restart`. */
  readonly system: RunningSystem;
  readonly clock: ManualClock;
  readonly settings: LiveSettings;
  readonly journal: MemoryJournal;
  /** Bugs that turns have thrown. */
  readonly bugs: BugReport[];
  readonly fatal: Error[];
  /** Waits until everything under way has come to rest. */
  settle(): Promise<void>;
  /** Moves the clock, fires what falls due on the way, and lets it come to rest. */
  advance(durationMs: number): Promise<void>;
  /** Kills the system as `kill -9` would and starts another over the same journal. */
  restart(): Promise<void>;
}

const noWorkers: Ports = { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } };
/** Turns of the event loop that count as rest. */
const QUIET_TURNS = 12;

export function createTestActors(options: TestActorsOptions): TestActors {
  const clock = new ManualClock(options.nowMs);
  const settings = options.settings ?? new LiveSettings();
  const bugs: BugReport[] = [];
  const fatal: Error[] = [];
  let run = 0;
  const ofThisRun = (task: () => void) => {
    const started = run;
    return () => {
      if (started === run) task();
    };
  };
  const schedule: Schedule = {
    immediate: (task) => {
      setImmediate(ofThisRun(task));
    },
    timer: clock.timer,
  };
  const journal = new MemoryJournal({ immediate: schedule.immediate });
  const randomBytes = seededBytes(options.seed ?? 1);
  const start = () =>
    createActorSystem({
      kinds: options.kinds,
      journal,
      ports: options.ports ?? noWorkers,
      settings,
      clock: clock.read,
      randomBytes,
      schedule,
      limits: options.limits ?? {},
      ...(options.callAudit && { callAudit: options.callAudit }),
      ...(options.ownership && { ownership: options.ownership }),
      onFatal: (error) => fatal.push(error),
      onBug: (report) => bugs.push(report),
    });
  let system = start();
  const settle = async () => {
    for (let turn = 0; turn < QUIET_TURNS; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    get system() {
      return system;
    },
    clock,
    settings,
    journal,
    bugs,
    fatal,
    settle,
    async advance(durationMs) {
      const endMs = clock.nowMs + durationMs;
      await settle();
      while (clock.fireNext(endMs)) await settle();
      clock.nowMs = endMs;
      await settle();
    },
    async restart() {
      run += 1;
      clock.clear();
      journal.crash('lost');
      system = start();
      await settle();
    },
  };
}

/** Asks one actor of a kind. */
export type Asker<P extends AnyProtocol> = <T extends TypeIn<P['replies']>>(
  command: Asked<P, T>,
) => Promise<P['replies'][T]>;

/** `ask` of the system that runs at the moment, for one actor. */
export function askerOf<P extends AnyProtocol>(
  actors: Pick<TestActors, 'system'>,
  kind: KindOf<P>,
  id: string,
): Asker<P> {
  return <T extends TypeIn<P['replies']>>(command: Asked<P, T>) => actors.system.ask<P, T>(kind, id, command);
}
