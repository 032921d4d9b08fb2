/** What a scenario is, and what it may use: the options, the load generator, and places to say what happens. */
import { type Generator, startGenerator } from './children.ts';
import { type Comparison, compare, type Sample, type Subject } from './measure.ts';
import { remoteCost } from './metrics.ts';
import type { BenchOptions, ScenarioTraits } from './options.ts';
import { invite, type Participant, type ParticipantId } from './participants.ts';
import type { LoadPlan, LoadReport } from './plan.ts';
import type { Figure, Target } from './targets.ts';

/** Longer than any good answer of these scenarios. */
const TIMEOUT_MS = 10_000;

/** A curve: how something grows with something. */
export interface Series {
  readonly title: string;
  readonly x: Axis;
  readonly y: Axis;
  readonly lines: readonly {
    readonly label: string;
    readonly points: readonly (readonly [x: number, y: number])[];
  }[];
}

export interface Axis {
  /** With its unit. */
  readonly label: string;
  /** Logarithmic; linear from 0 without it. */
  readonly log?: true;
}

export interface ScenarioResult {
  readonly comparison: Comparison;
  /** What a reader must know beside the table. */
  readonly notes: readonly string[];
  /** Single numbers, for targets and for readers. */
  readonly figures?: readonly Figure[];
  readonly series?: readonly Series[];
}

export interface Scenario extends ScenarioTraits {
  readonly summary: string;
  /** What the rates count, where it is not answers: `MiB`, `messages`. */
  readonly unit?: string;
  readonly targets?: readonly Target[];
  run(bench: Bench): Promise<ScenarioResult>;
}

/** What one load of one subject asks for. */
export interface LoadTarget {
  readonly url: string;
  readonly requests: readonly string[];
  readonly expect: string;
  /** Of a good answer; 200 unless given. */
  readonly status?: number;
  /** Instead of the options'. */
  readonly connections?: number;
}

/** Where the bench says what it does. */
export interface Progress {
  /** Something begins that is no round: accounts sign up, a peer starts. */
  step(text: string): void;
  /** A round begins; `done` of `total` are over. */
  round(text: string, done: number, total: number): void;
}

export interface BenchContext {
  readonly progress: Progress;
  readonly targets?: readonly Target[];
  /** `performance.now()` at which no further round begins. */
  readonly deadlineMs?: number;
}

export class Bench {
  readonly options: BenchOptions;
  readonly participants: Participant[] = [];
  /** What comes to light beside the scenario's result, of its clean-up too. */
  readonly remarks: string[] = [];
  readonly #context: BenchContext;
  readonly #generator: Generator = startGenerator();
  readonly #cleanUps: (() => Promise<unknown>)[] = [];
  #closed = false;

  constructor(options: BenchOptions, context: BenchContext) {
    this.options = options;
    this.#context = context;
  }

  announce(text: string): void {
    this.#context.progress.step(text);
  }

  /** Runs when the scenario is over, last first, whether it succeeded or not. */
  afterwards(cleanUp: () => Promise<unknown>): void {
    if (!this.#closed) this.#cleanUps.push(cleanUp);
    // What a scenario that was given up still starts goes at once.
    else cleanUp().catch((error: unknown) => this.announce(`clean-up: ${String(error)}`));
  }

  async close(): Promise<void> {
    this.#closed = true;
    const faults: unknown[] = [];
    for (const cleanUp of this.#cleanUps.splice(0).reverse())
      await cleanUp().catch((error: unknown) => faults.push(error));
    await this.#generator.stop();
    if (faults.length > 0) throw faults[0];
  }

  /** Whether this floor or peer takes part; the report says why not. Nobody does beside a target. */
  invite(id: ParticipantId): boolean {
    if (this.options.target !== undefined) return false;
    const participant = invite(id, this.options.peers);
    if (!this.participants.some(({ name }) => name === participant.name)) this.participants.push(participant);
    return participant.leftOut === undefined;
  }

  /** The options' rounds of all subjects, interleaved, with the ratios that the scenario's targets ask for. */
  async compare(subjects: readonly Subject[]): Promise<Comparison> {
    const { deadlineMs, progress, targets = [] } = this.#context;
    const { target, internal, rounds } = this.options;
    const pairs = targets.flatMap((target) =>
      'against' in target && target.of !== undefined ? [{ of: target.of, against: target.against }] : [],
    );
    return await compare(subjects, {
      rounds,
      pairs,
      step: (text, done, total) => progress.round(text, done, total),
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
      ...(target === undefined
        ? {}
        : { cost: async () => (internal === undefined ? undefined : await remoteCost(internal)) }),
    });
  }

  /** The report tells the processor time of `pids` while measuring. */
  async load(target: LoadTarget, pids: readonly number[] = []): Promise<LoadReport> {
    const { hostname, port } = new URL(target.url);
    const { connections, warmupMs, durationMs, ratePerSecond, maxRatePerSecond } = this.options;
    const plan: LoadPlan = {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port === '' ? 80 : port),
      connections: target.connections ?? connections,
      pids,
      warmupMs,
      durationMs,
      ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
      ...(maxRatePerSecond === undefined ? {} : { maxRatePerSecond }),
      requests: target.requests,
      expect: target.expect,
      ...(target.status === undefined ? {} : { status: target.status }),
      timeoutMs: TIMEOUT_MS,
    };
    return await this.#generator.run(plan);
  }

  /** A subject of the comparison whose rounds are loads. `prepare` makes the requests anew for each round. */
  subject(name: string, pids: readonly number[], prepare: () => LoadTarget | Promise<LoadTarget>): Subject {
    return { name, pids, round: async () => sampleOf(await this.load(await prepare(), pids)) };
  }
}

export function sampleOf(report: LoadReport): Sample {
  return { ratePerSecond: report.ratePerSecond, details: { ...report } };
}

/** One HTTP/1.1 request in the form that the generator sends. */
export function rawRequest(
  method: string,
  url: string,
  headers: Readonly<Record<string, string>> = {},
  body?: string,
): string {
  const { host, pathname, search } = new URL(url);
  const lines = [`${method} ${pathname}${search} HTTP/1.1`, `Host: ${host}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined)
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`);
  else if (method === 'POST') lines.push('Content-Length: 0');
  // The generator writes one-byte characters; JSON of these scenarios is ASCII.
  return `${lines.join('\r\n')}\r\n\r\n${body ?? ''}`;
}
