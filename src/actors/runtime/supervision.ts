/**
 * Handles failures after a bug. Owns the record of failures, outside the instances: back-off, quarantine, and what an
 * administrator sees of it. An instance that threw is dropped and replayed; its failures are remembered here.
 */

import { GatewayError } from '../../domain/errors.ts';
import { keepNewest } from '../../domain/limits/newest.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { DamagedRow } from './journal/port.ts';
import type { Typed } from './protocol.ts';
import type { RuntimeContext } from './runtime-context.ts';

/** First wait after a failure; doubles with each further one, up to BACKOFF_MAX_MS. */
const BACKOFF_MS = 100;
const BACKOFF_MAX_MS = 30 * SECOND_MS;
/** More failures than this within the window: quarantine. */
const FAILURES_MAX = 5;
const FAILURE_WINDOW_MS = 60 * SECOND_MS;
/** Failing actors remembered; beyond it the one that failed first is forgotten. */
const RECORDS_MAX = 10_000;
/** A durable message that failed so often goes to the dead letters. */
export const ATTEMPTS_MAX = 3;

interface Failures {
  readonly kind: string;
  readonly id: string;
  timesMs: number[];
  streak: number;
  blockedUntilMs: number;
  quarantined: boolean;
  lastError: string;
}

export interface QuarantineEntry {
  readonly kind: string;
  readonly id: string;
  readonly quarantined: boolean;
  readonly failures: number;
  readonly blockedUntilMs: number;
  readonly lastError: string;
}

/** A failure of the code, for the log. The error's text never reaches a caller. */
export interface BugReport {
  readonly kind: string;
  readonly id: string;
  readonly command: string;
  readonly error: unknown;
}

export class Supervision {
  readonly #context: RuntimeContext;
  readonly #onBug: (report: BugReport) => void;
  readonly #records = new Map<string, Failures>();
  bugs = 0;
  quarantines = 0;

  constructor(context: RuntimeContext, onBug: (report: BugReport) => void) {
    this.#context = context;
    this.#onBug = onBug;
  }

  report(kind: string, id: string, command: Typed, error: unknown): void {
    this.bugs += 1;
    const type = (command as { type?: unknown }).type;
    this.#onBug({ kind, id, command: typeof type === 'string' ? type : '', error });
  }

  failed(kind: string, id: string, command: Typed, error: unknown): void {
    this.report(kind, id, command, error);
    const nowMs = this.#context.clock();
    const record = this.#record(kind, id);
    record.timesMs = record.timesMs.filter((timeMs) => nowMs - timeMs < FAILURE_WINDOW_MS);
    record.timesMs.push(nowMs);
    record.streak += 1;
    record.lastError = error instanceof Error ? error.message : String(error);
    const backoffMs = Math.min(BACKOFF_MS * 2 ** (record.streak - 1), BACKOFF_MAX_MS);
    record.blockedUntilMs = nowMs + Math.min(backoffMs * (1 + this.#jitter()), BACKOFF_MAX_MS);
    // Another try would read the same row.
    const isLost = error instanceof DamagedRow;
    if ((isLost || record.timesMs.length > FAILURES_MAX) && !record.quarantined) {
      record.quarantined = true;
      this.quarantines += 1;
    }
  }

  #record(kind: string, id: string): Failures {
    const name = `${kind}\0${id}`;
    const known = this.#records.get(name);
    if (known !== undefined) return known;
    const fresh: Failures = {
      kind,
      id,
      timesMs: [],
      streak: 0,
      blockedUntilMs: 0,
      quarantined: false,
      lastError: '',
    };
    keepNewest(this.#records, RECORDS_MAX, name, fresh);
    return fresh;
  }

  /** 0 to 1: keeps actors that failed together from coming back together. */
  #jitter(): number {
    return (this.#context.randomBytes(1)[0] ?? 0) / 256;
  }

  /** A turn went well: the next failure starts at the shortest wait again. */
  succeeded(kind: string, id: string): void {
    if (this.#records.size === 0) return;
    const record = this.#records.get(`${kind}\0${id}`);
    if (record === undefined || record.quarantined) return;
    record.streak = 0;
    record.blockedUntilMs = 0;
    const nowMs = this.#context.clock();
    if (record.timesMs.every((timeMs) => nowMs - timeMs >= FAILURE_WINDOW_MS)) {
      this.#records.delete(`${kind}\0${id}`);
    }
  }

  /** Milliseconds until this actor may be tried again: 0 now, Infinity while it is in quarantine. */
  waitMs(kind: string, id: string): number {
    if (this.#records.size === 0) return 0;
    const record = this.#records.get(`${kind}\0${id}`);
    if (record === undefined) return 0;
    if (record.quarantined) return Number.POSITIVE_INFINITY;
    return Math.max(0, record.blockedUntilMs - this.#context.clock());
  }

  /** Throws `Quarantined` while this actor may not be tried. */
  check(kind: string, id: string): void {
    const waitMs = this.waitMs(kind, id);
    if (waitMs === 0) return;
    if (waitMs === Number.POSITIVE_INFINITY) throw new GatewayError('Quarantined');
    throw new GatewayError('Quarantined', undefined, Math.ceil(waitMs / SECOND_MS));
  }

  release(kind: string, id: string): boolean {
    return this.#records.delete(`${kind}\0${id}`);
  }

  list(): QuarantineEntry[] {
    return [...this.#records.values()].map(
      ({ kind, id, quarantined, timesMs, blockedUntilMs, lastError }) => ({
        kind,
        id,
        quarantined,
        failures: timesMs.length,
        blockedUntilMs,
        lastError,
      }),
    );
  }
}
