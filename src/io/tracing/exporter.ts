/**
 * Sends spans and log lines to the collector in batches. One batch is in flight; items beyond the queue are dropped and
 * counted, so that a collector that is slow or down costs a bounded amount of memory and no request any time.
 */

export const QUEUE_ITEMS_MAX = 4_096;
export const BATCH_ITEMS_MAX = 512;
/** An item waits at most so long for its batch. */
export const FLUSH_MS = 2_000;
/** Before a batch is sent again; doubled at each further attempt. */
const RETRY_MS = 1_000;
export const ATTEMPTS_MAX = 4;

/** `retry`: no answer, or one that asks for a later attempt (OTLP: 429, 502, 503, 504). */
export type ExportResult =
  | { readonly kind: 'accepted'; readonly body: string }
  | { readonly kind: 'refused' }
  | { readonly kind: 'retry' };

interface ExporterOptions<Item> {
  readonly send: (body: string) => Promise<ExportResult>;
  readonly encode: (items: readonly Item[]) => string;
  /** Items of an accepted batch that the collector did not store, by its answer. */
  readonly rejected: (answer: string) => number;
  /** Runs `run` once after `delayMs`; the result cancels it. */
  readonly timer: (delayMs: number, run: () => void) => () => void;
  /** Called with each batch that is given up. */
  readonly onLost: (items: number) => void;
}

/** Every item ends in one of these. */
export interface ExportCounters {
  readonly exported: number;
  /** The collector refused the batch or the item. */
  readonly refused: number;
  /** The collector did not answer. */
  readonly unreachable: number;
  /** The queue was full. */
  readonly overflowed: number;
  /** Spans beyond the bound of one request. */
  readonly oversized: number;
}

export class BatchExporter<Item> {
  readonly #options: ExporterOptions<Item>;
  #queue: Item[] = [];
  /** Taken from the queue and not settled yet. */
  #batch: Item[] = [];
  #cancelTimer: (() => void) | undefined;
  #sending: Promise<void> | undefined;
  #attempts = 0;
  #closing = false;
  readonly #counts = { exported: 0, refused: 0, unreachable: 0, overflowed: 0, oversized: 0 };

  constructor(options: ExporterOptions<Item>) {
    this.#options = options;
  }

  get counters(): ExportCounters {
    return { ...this.#counts };
  }

  /** Items that wait or are under way. */
  get waiting(): number {
    return this.#queue.length + this.#batch.length;
  }

  add(item: Item): void {
    if (this.#queue.length >= QUEUE_ITEMS_MAX || this.#closing) {
      this.#counts.overflowed += 1;
      return;
    }
    this.#queue.push(item);
    if (this.#batch.length > 0) return;
    if (this.#queue.length >= BATCH_ITEMS_MAX) this.#flush();
    else this.#schedule(FLUSH_MS);
  }

  dropped(): void {
    this.#counts.oversized += 1;
  }

  /** Sends what waits, one attempt a batch, until one fails. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#cancelTimer?.();
    await this.#sending;
    while (this.waiting > 0) {
      this.#attempts = ATTEMPTS_MAX;
      const lost = this.#counts.unreachable;
      this.#flush();
      await this.#sending;
      if (this.#counts.unreachable === lost) continue;
      this.#counts.unreachable += this.#queue.length;
      this.#queue = [];
    }
  }

  #schedule(delayMs: number): void {
    this.#cancelTimer ??= this.#options.timer(delayMs, () => this.#flush());
  }

  #flush(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (this.#sending !== undefined) return;
    if (this.#batch.length === 0) this.#batch = this.#queue.splice(0, BATCH_ITEMS_MAX);
    if (this.#batch.length === 0) return;
    this.#attempts += 1;
    const { send, encode } = this.#options;
    this.#sending = send(encode(this.#batch)).then((result) => {
      this.#sending = undefined;
      this.#settle(result);
    });
  }

  #settle(result: ExportResult): void {
    const items = this.#batch.length;
    if (result.kind === 'retry' && this.#attempts < ATTEMPTS_MAX) {
      if (!this.#closing) this.#schedule(RETRY_MS * 2 ** (this.#attempts - 1));
      return;
    }
    const rejected =
      result.kind === 'accepted' ? Math.min(items, this.#options.rejected(result.body)) : items;
    this.#counts.exported += items - rejected;
    if (result.kind === 'retry') this.#counts.unreachable += items;
    else this.#counts.refused += rejected;
    if (rejected > 0) this.#options.onLost(rejected);
    this.#batch = [];
    this.#attempts = 0;
    if (this.#closing || this.#queue.length === 0) return;
    if (this.#queue.length >= BATCH_ITEMS_MAX) this.#flush();
    else this.#schedule(FLUSH_MS);
  }
}
