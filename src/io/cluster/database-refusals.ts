/** Counts what PostgreSQL refuses a node, and says so once a minute for each SQLSTATE. */
import { type Log, onceAMinute } from '../observability/log.ts';
import type { DatabaseFailure } from './failures.ts';

/** Classes of SQLSTATEs with a series of their own (PostgreSQL, appendix A). */
export const REFUSAL_CLASSES = ['08', '25', '28', '40', '42', '53', '57', 'other'] as const;
type RefusalClass = (typeof REFUSAL_CLASSES)[number];

interface RefusalOptions {
  readonly log: Log;
  readonly monotonicMs: () => number;
}

export class DatabaseRefusals {
  readonly #log: Log;
  readonly #isDue: (sqlState: string) => boolean;
  readonly counts = Object.fromEntries(REFUSAL_CLASSES.map((name) => [name, 0])) as Record<
    RefusalClass,
    number
  >;

  constructor({ log, monotonicMs }: RefusalOptions) {
    this.#log = log;
    this.#isDue = onceAMinute(monotonicMs);
  }

  /** Failures without a SQLSTATE are no refusals. */
  readonly add = ({ sqlState, message }: DatabaseFailure): void => {
    if (sqlState === undefined) return;
    this.counts[REFUSAL_CLASSES.find((name) => sqlState.startsWith(name)) ?? 'other'] += 1;
    if (this.#isDue(sqlState)) this.#log.write('databaseRefused', { sqlState, detail: message });
  };
}
