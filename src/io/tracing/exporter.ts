/**
 * Sends ended spans to the collector in batches. One batch is in flight; spans beyond the queue are dropped and counted, so
 * that a collector that is slow or down costs a bounded amount of memory and no request any time.
 */
import { otlpBody, rejectedSpans, type TelemetryResource } from './otlp.ts';
import type { SpanSink, TraceSpan } from './span.ts';

export const QUEUE_SPANS_MAX = 4_096;
export const BATCH_SPANS_MAX = 512;
/** A span waits at most so long for its batch. */
export const FLUSH_MS = 2_000;
/** Before a batch is sent again; doubled at each further attempt. */
const RETRY_MS = 1_000;
export const ATTEMPTS_MAX = 4;

/** `retry`: no answer, or one that asks for a later attempt (OTLP: 429, 502, 503, 504). */
export type ExportResult =
  | { readonly kind: 'accepted'; readonly body: string }
  | { readonly kind: 'refused' }
  | { readonly kind: 'retry' };

interface ExporterOptions {
  readonly send: (body: string) => Promise<ExportResult>;
  readonly resource: TelemetryResource;
  /** Runs `run` once after `delayMs`; the result cancels it. */
  readonly timer: (delayMs: number, run: () => void) => () => void;
  /** Called with each batch that is given up. */
  readonly onLost: (spans: number) => void;
}

/** Every span ends in one of these. */
export interface SpanCounters {
  readonly exported: number;
  /** The collector refused the batch or the span. */
  readonly refused: number;
  /** The collector did not answer. */
  readonly unreachable: number;
  /** The queue was full. */
  readonly overflowed: number;
  /** Beyond the spans of one request. */
  readonly oversized: number;
}

export class SpanExporter implements SpanSink {
  readonly #options: ExporterOptions;
  #queue: TraceSpan[] = [];
  /** Taken from the queue and not settled yet. */
  #batch: TraceSpan[] = [];
  #cancelTimer: (() => void) | undefined;
  #sending: Promise<void> | undefined;
  #attempts = 0;
  #closing = false;
  readonly #counts = { exported: 0, refused: 0, unreachable: 0, overflowed: 0, oversized: 0 };

  constructor(options: ExporterOptions) {
    this.#options = options;
  }

  get counters(): SpanCounters {
    return { ...this.#counts };
  }

  /** Spans that wait or are under way. */
  get waiting(): number {
    return this.#queue.length + this.#batch.length;
  }

  add(span: TraceSpan): void {
    if (this.#queue.length >= QUEUE_SPANS_MAX || this.#closing) {
      this.#counts.overflowed += 1;
      return;
    }
    this.#queue.push(span);
    if (this.#batch.length > 0) return;
    if (this.#queue.length >= BATCH_SPANS_MAX) this.#flush();
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
    if (this.#batch.length === 0) this.#batch = this.#queue.splice(0, BATCH_SPANS_MAX);
    if (this.#batch.length === 0) return;
    this.#attempts += 1;
    const { send, resource } = this.#options;
    this.#sending = send(otlpBody(this.#batch, resource)).then((result) => {
      this.#sending = undefined;
      this.#settle(result);
    });
  }

  #settle(result: ExportResult): void {
    const spans = this.#batch.length;
    if (result.kind === 'retry' && this.#attempts < ATTEMPTS_MAX) {
      if (!this.#closing) this.#schedule(RETRY_MS * 2 ** (this.#attempts - 1));
      return;
    }
    const rejected = result.kind === 'accepted' ? Math.min(spans, rejectedSpans(result.body)) : spans;
    this.#counts.exported += spans - rejected;
    if (result.kind === 'retry') this.#counts.unreachable += spans;
    else this.#counts.refused += rejected;
    if (rejected > 0) this.#options.onLost(rejected);
    this.#batch = [];
    this.#attempts = 0;
    if (this.#closing || this.#queue.length === 0) return;
    if (this.#queue.length >= BATCH_SPANS_MAX) this.#flush();
    else this.#schedule(FLUSH_MS);
  }
}
