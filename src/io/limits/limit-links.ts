/** Sends over the links what this node counted for limits of all nodes (decision 0105), and takes what others send. */
import type { LimitExchange, LimitReport } from '../../actors/limits/limit-exchange.ts';
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import type { Clock } from '../../domain/time.ts';
import type { Verbs } from '../cluster/rpc.ts';
import { numberOf, textOf } from '../verb-arguments.ts';

/** Milliseconds that a count waits, at most, before it is reported. */
const REPORT_MS = 100;

export const LIMIT_VERBS = ['shareLimits'] as const;

interface LimitLinksOptions {
  readonly exchange: LimitExchange;
  readonly schedule: Schedule;
  readonly clock: Clock;
  /** Number of this node; 0 while it has none. */
  readonly node: () => number;
  /** A text that no other process of this node has. */
  readonly process: string;
  /** Calls a verb of every other node; resolves when each has answered or will not. */
  readonly callAll: (verb: string, ...args: readonly unknown[]) => Promise<PromiseSettledResult<unknown>[]>;
}

export class LimitLinks {
  readonly #options: LimitLinksOptions;
  #cancelReport: (() => void) | undefined;
  #isStopped = false;

  constructor(options: LimitLinksOptions) {
    this.#options = options;
    options.exchange.onDue = () => this.#reportLater();
  }

  /** Verbs that other nodes may call. Throws TypeError for arguments that no node of this version sends. */
  get verbs(): Verbs {
    const { exchange, clock } = this.#options;
    return {
      shareLimits: (node, process, ...report) =>
        exchange.take(numberOf(node), `${node} ${textOf(process)}`, reportOf(report), clock()),
    };
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancelReport?.();
  }

  /** A timer runs only while there is something to send. */
  #reportLater(): void {
    if (this.#isStopped) return;
    this.#cancelReport ??= this.#options.schedule.timer(REPORT_MS, () => {
      this.#cancelReport = undefined;
      this.#report();
    });
  }

  #report(): void {
    const { exchange, node, process, callAll } = this.#options;
    if (node() === 0) return;
    const { isWhole, counts, bandwidth } = exchange.report();
    void callAll('shareLimits', node(), process, isWhole, counts, bandwidth).then((results) => {
      if (results.some(({ status }) => status === 'rejected')) exchange.repeat();
    });
  }
}

/** The lists are checked as far as a wrong one could do harm: names and numbers in them are taken as such. */
function reportOf([isWhole, counts, bandwidth]: readonly unknown[]): LimitReport {
  const isReport =
    typeof isWhole === 'boolean' && isListOf(counts, Array.isArray) && isListOf(bandwidth, isPart);
  if (!isReport) throw new TypeError('expected a report of limits');
  const groups = counts.every((group) => isListOf(group, isPart));
  if (!groups) throw new TypeError('expected counts of limits');
  return { isWhole, counts: counts as unknown as LimitReport['counts'], bandwidth };
}

function isListOf<T>(value: unknown, isItem: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(isItem);
}

function isPart(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number';
}
