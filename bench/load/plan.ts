/** Commands and reports of the load generator: plain data that crosses a process boundary. */

export interface LoadPlan {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  /** Processes of this machine whose processor time is taken over the measured time alone. */
  readonly pids?: readonly number[];
  /** Lead-in of a load that runs once: not counted. */
  readonly leadInMs: number;
  readonly durationMs: number;
  /** Requests a second in all. Without it each connection sends as soon as it has its answer (closed loop). */
  readonly ratePerSecond?: number;
  /** Closed loop, but no more requests a second in all than this. */
  readonly maxRatePerSecond?: number;
  /** Whole HTTP/1.1 requests. Connection `c` of `C` sends those at `c`, `c + C`, `c + 2C`, … and starts over. */
  readonly requests: readonly string[];
  /** Status of a good answer; 200 unless given. */
  readonly status?: number;
  /** A good answer holds this text in its body. */
  readonly expect: string;
  /** An answer that takes longer counts as `timeout`. */
  readonly timeoutMs: number;
  /** A server may close a connection that had nothing to do for so long (a second unless given); earlier is an error. */
  readonly restMs?: number;
}

export interface Latency {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
  readonly mean: number;
  /** Percentile (0 to 100) and value, for a curve. */
  readonly spectrum: readonly (readonly [percentile: number, us: number])[];
}

export interface LoadReport {
  /** Good answers while measuring. */
  readonly answers: number;
  /** Good answers of the lead-in too. */
  readonly answersInAll: number;
  /** From the first request to the last answer. */
  readonly durationMs: number;
  readonly ratePerSecond: number;
  /** Microseconds. In the open loop from the moment the request was due, so that a stall is not hidden. */
  readonly latencyUs: Latency;
  /** Processor time of the plan's processes while measuring; undefined without them, or without /proc. */
  readonly cpuMs: number | undefined;
  /** By kind: `connect`, `closed`, `timeout`, `status 503`, `unexpected body`, `unsent` (open loop). */
  readonly errors: Readonly<Record<string, number>>;
  /** A body that was not expected, cut: what to look at first when something is wrong. */
  readonly sample: string | undefined;
  /** Good answers in each second. */
  readonly perSecond: readonly number[];
  /** Share of the time that the generator's thread was busy; above 0.95 it is itself the limit. */
  readonly generatorBusy: number;
}

/** Commands to the generator process, one at a time. */
export type LoadOrder =
  | { readonly kind: 'run'; readonly plan: LoadPlan }
  /** Answered with the number of the load. */
  | { readonly kind: 'open'; readonly plan: LoadPlan }
  /** `requests` replace those so far. Answered with the report. */
  | {
      readonly kind: 'round';
      readonly load: number;
      readonly durationMs: number;
      readonly requests?: readonly string[];
    };
