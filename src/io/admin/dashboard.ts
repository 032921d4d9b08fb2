/**
 * Samples of the live dashboard, sent as server-sent events: the requests since the previous sample. Requests are counted
 * only while a dashboard is open; one timer serves all dashboards.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { FinishedRequest } from '../http/finished.ts';
import { type OutgoingBody, type OutgoingSource, StreamReply } from '../http/stream.ts';
import { residentMemory } from '../observability/machine.ts';
import type { MetricReadings } from '../observability/metric-table.ts';
import type { CallObservation } from '../observability/metrics.ts';

/** Interval between samples. */
const SAMPLE_INTERVAL_MS = 2_000;
/** Dashboards that may be open at once. */
const WATCHERS_MAX = 50;
/** Routes and tools in a sample: the busiest. */
const NAMES_MAX = 12;
/** Upper bounds of latency buckets in milliseconds, 12 % apart: 0.05 ms to about 60 s. */
const BUCKETS = Array.from({ length: 124 }, (_, index) => 0.05 * 1.12 ** index);
const RESOLUTION_MS = 10;
/** Samples of one stream. The page then opens a new one, which checks the role again. */
const SAMPLES_MAX = 300;

interface CallCounts {
  count: number;
  errors: number;
}

/** One sample. */
export interface DashboardSample {
  readonly utcMs: number;
  readonly seconds: number;
  readonly requests: number;
  readonly errors: number;
  /** Milliseconds; null when nothing finished. */
  readonly p50: number | null;
  readonly p99: number | null;
  readonly loopDelayP99: number;
  readonly rssBytes: number;
  readonly routes: readonly { name: string; count: number; errors: number }[];
  readonly tools: readonly { name: string; count: number; errors: number }[];
  /** The readings of /metrics. */
  readonly metrics: Partial<MetricReadings>;
}

export class Dashboard {
  readonly #watchers = new Set<Watcher>();
  readonly #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  readonly #read: () => Partial<MetricReadings>;
  readonly #rss = residentMemory(() => performance.now());
  #timer: NodeJS.Timeout | undefined;
  #buckets = new Uint32Array(BUCKETS.length);
  #routes = new Map<string, CallCounts>();
  #tools = new Map<string, CallCounts>();
  #startedMs = 0;

  /** `read` is called for each sample. */
  constructor(read: () => Partial<MetricReadings>) {
    this.#read = read;
  }

  observe({ method, route, status, durationMs: milliseconds }: FinishedRequest): void {
    if (this.#watchers.size === 0) return;
    const at = BUCKETS.findIndex((bound) => milliseconds <= bound);
    const index = at < 0 ? BUCKETS.length - 1 : at;
    this.#buckets[index] = (this.#buckets[index] ?? 0) + 1;
    count(this.#routes, route === '' ? 'no route' : `${method} ${route}`, status >= 500 || status === 0);
  }

  readonly observeCall = ({ name, outcome }: CallObservation): void => {
    if (this.#watchers.size > 0 && name !== '') count(this.#tools, name, outcome !== 'ok');
  };

  /** A stream of samples; undefined when too many dashboards are open. It ends when `alive` returns false. */
  watch(alive: () => boolean): StreamReply | undefined {
    if (this.#watchers.size >= WATCHERS_MAX) return undefined;
    const watcher = new Watcher(alive, () => this.#leave(watcher));
    return new StreamReply(
      200,
      watcher.source(() => this.#join(watcher)),
      {
        contentType: 'text/event-stream',
        headers: [['X-Accel-Buffering', 'no']],
        longLived: true,
      },
    );
  }

  /** Ends all streams. */
  close(): void {
    for (const watcher of [...this.#watchers]) watcher.end();
  }

  #join(watcher: Watcher): void {
    this.#watchers.add(watcher);
    if (this.#timer !== undefined) return;
    this.#reset();
    this.#delay.enable();
    this.#timer = setInterval(() => this.#broadcast(), SAMPLE_INTERVAL_MS);
    this.#timer.unref();
  }

  #leave(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    if (this.#watchers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#delay.disable();
  }

  #broadcast(): void {
    const frame = `event: look\ndata: ${JSON.stringify(this.sample(Date.now()))}\n\n`;
    this.#reset();
    for (const watcher of [...this.#watchers]) watcher.send(frame);
  }

  sample(nowMs: number): DashboardSample {
    const requests = this.#buckets.reduce((sum, each) => sum + each, 0);
    const all = [...this.#routes.values()];
    return {
      utcMs: nowMs,
      seconds: Math.max(0.001, (nowMs - this.#startedMs) / 1000),
      requests,
      errors: all.reduce((sum, { errors }) => sum + errors, 0),
      p50: this.#percentile(requests, 0.5),
      p99: this.#percentile(requests, 0.99),
      loopDelayP99: Math.max(0, this.#delay.percentile(99) / 1e6 - RESOLUTION_MS),
      rssBytes: this.#rss(),
      routes: busiest(this.#routes),
      tools: busiest(this.#tools),
      metrics: this.#read(),
    };
  }

  #percentile(total: number, share: number): number | null {
    if (total === 0) return null;
    let left = Math.ceil(total * share);
    const index = this.#buckets.findIndex((each) => {
      left -= each;
      return left <= 0;
    });
    return BUCKETS[index] ?? null;
  }

  #reset(): void {
    this.#buckets = new Uint32Array(BUCKETS.length);
    this.#routes = new Map();
    this.#tools = new Map();
    this.#startedMs = Date.now();
    this.#delay.reset();
  }
}

/** One open dashboard. A sample is skipped while the previous one is being sent. */
class Watcher {
  readonly #isAlive: () => boolean;
  readonly #onLeave: () => void;
  #out: OutgoingBody | undefined;
  #full = false;
  #samples = 0;

  constructor(alive: () => boolean, gone: () => void) {
    this.#isAlive = alive;
    this.#onLeave = gone;
  }

  source(joined: () => void): OutgoingSource {
    return {
      start: (out) => {
        this.#out = out;
        this.#full = !out.send('retry: 3000\n: live figures\n\n');
        joined();
      },
      drained: () => {
        this.#full = false;
      },
      lost: () => {
        this.#out = undefined;
        this.#onLeave();
      },
    };
  }

  send(frame: string): void {
    this.#samples += 1;
    if (this.#samples > SAMPLES_MAX || !this.#isAlive()) this.end();
    else if (!this.#full && this.#out !== undefined) this.#full = !this.#out.send(frame);
  }

  end(): void {
    this.#out?.end();
    this.#out = undefined;
    this.#onLeave();
  }
}

function count(all: Map<string, CallCounts>, name: string, isError: boolean): void {
  const counts = all.get(name);
  if (counts === undefined) all.set(name, { count: 1, errors: isError ? 1 : 0 });
  else {
    counts.count += 1;
    if (isError) counts.errors += 1;
  }
}

function busiest(all: ReadonlyMap<string, CallCounts>): { name: string; count: number; errors: number }[] {
  return [...all]
    .map(([name, counts]) => ({ name, ...counts }))
    .sort((a, b) => b.count - a.count)
    .slice(0, NAMES_MAX);
}
