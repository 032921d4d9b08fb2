/** Interface of a scenario, and its tools: the options, the load generator, and places to say what happens. */
import type { ChildProcess } from 'node:child_process';
import { SECOND_MS } from '../src/domain/time.ts';
import type { LoadPlan } from './load/plan.ts';
import { allocatedBytes } from './measure/allocations.ts';
import { type Generator, type OpenLoad, startGenerator } from './measure/children.ts';
import { type Comparison, compare, type Subject } from './measure/measure.ts';
import { remoteCost } from './measure/metrics.ts';
import type { BenchOptions, ScenarioTraits } from './options.ts';
import type { Progress } from './progress.ts';
import type { Figure, Target } from './report/targets.ts';
import { type Build, baselinePairs, buildsOf, isOfBaseline } from './subjects/baseline.ts';
import { optionalPeer, type Participant, type ParticipantId } from './subjects/participants.ts';

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
  readonly label: string;
  /** Logarithmic; linear from 0 without it. */
  readonly log?: true;
}

export interface ScenarioResult {
  readonly comparison: Comparison;
  readonly notes: readonly string[];
  /** Single numbers, for targets and for readers. */
  readonly figures?: readonly Figure[];
  readonly series?: readonly Series[];
}

export interface Scenario extends ScenarioTraits {
  readonly summary: string;
  /** Unit of the rates, where they do not count answers: `MiB`, `messages`. */
  readonly unit?: string;
  readonly targets?: readonly Target[];
  run(bench: Bench): Promise<ScenarioResult>;
}

export interface LoadTarget {
  readonly url: string;
  readonly requests: readonly string[];
  readonly expect: string;
  /** Status of a good answer; 200 unless given. */
  readonly status?: number;
  /** Instead of the options'. */
  readonly connections?: number;
}

/** A loop without a server: what it did in a time. */
export interface LoopPart {
  readonly count: number;
  readonly elapsedMs: number;
  /** The loop's own, where it measures it; else the round has that of the processes. */
  readonly cpuMs?: number;
}

export interface Loop {
  readonly name: string;
  readonly pids: readonly number[];
  readonly group?: string;
  run(durationMs: number): Promise<LoopPart>;
}

export interface BenchContext {
  readonly progress: Progress;
  readonly targets?: readonly Target[];
  /** Milliseconds for further rounds, as in the plan of a comparison. */
  readonly leftMs?: () => number;
}

export class Bench {
  readonly options: BenchOptions;
  readonly participants: Participant[] = [];
  /** Remarks besides the result of the scenario, of its clean-up too. */
  readonly remarks: string[] = [];
  readonly #context: BenchContext;
  readonly #generator: Generator = startGenerator();
  readonly #cleanUps: (() => Promise<unknown>)[] = [];
  /** Programs with a meter of allocations. */
  readonly #metered = new Map<number, ChildProcess>();
  #closed = false;

  constructor(options: BenchOptions, context: BenchContext) {
    this.options = options;
    this.#context = context;
  }

  announce(text: string): void {
    this.#context.progress.step(text);
  }

  /** Runs when the scenario is over, last first, whether it succeeded or not. */
  onTeardown(cleanUp: () => Promise<unknown>): void {
    if (!this.#closed) this.#cleanUps.push(cleanUp);
    // Parts that a scenario still starts after it was given up are removed at once.
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

  /** Subjects of this process say what they allocate for one answer. It was started with `METER`. */
  countAllocations(child: ChildProcess): void {
    this.#metered.set(child.pid ?? 0, child);
  }

  /** True if this floor or peer takes part; the report says why not. None runs with `--target`. */
  optionalPeer(id: ParticipantId): boolean {
    if (this.options.target !== undefined) return false;
    const participant = optionalPeer(id, this.options.peers);
    if (!this.participants.some(({ name }) => name === participant.name)) this.participants.push(participant);
    return participant.leftOut === undefined;
  }

  /**
   * Rounds of all subjects, interleaved, with the ratios that the scenario's targets ask for. Where the command line does
   * not say how many rounds, until the ratios are sure or the time is over, which is `withinMs` at most.
   */
  async compare(subjects: readonly Subject[], withinMs = Number.POSITIVE_INFINITY): Promise<Comparison> {
    const { leftMs = () => Number.POSITIVE_INFINITY, progress, targets = [] } = this.#context;
    const { target, internal, rounds: least, roundsMax: most } = this.options;
    const asked = targets.flatMap((target) =>
      'against' in target && target.of !== undefined ? [{ of: target.of, against: target.against }] : [],
    );
    const endMs = performance.now() + withinMs;
    // Beside its counterpart alone.
    const placed = subjects.map((each) => (isOfBaseline(each.name) ? { ...each, group: each.name } : each));
    return await compare(placed, {
      least,
      most,
      leftMs: () => Math.min(leftMs(), endMs - performance.now()),
      pairs: [...asked, ...baselinePairs(subjects.map(({ name }) => name))],
      progress,
      ...(target === undefined
        ? {}
        : { cost: async () => (internal === undefined ? undefined : await remoteCost(internal)) }),
    });
  }

  /** A subject of the comparison that answers requests. `prepare` may make other requests for each round. */
  subject(name: string, pids: readonly number[], prepare: () => LoadTarget | Promise<LoadTarget>): Subject {
    const { warmupMs, durationMs } = this.options;
    const metered = this.#metered.get(pids[0] ?? 0);
    let load: OpenLoad | undefined;
    return {
      name,
      pids,
      ...(metered === undefined ? {} : { allocatedBytes: () => allocatedBytes(metered) }),
      warmUp: async () =>
        await this.#generator.run({ ...this.#plan(await prepare(), []), durationMs: warmupMs }),
      round: async () => {
        const target = await prepare();
        load ??= await this.#generator.open(this.#plan(target, pids));
        const report = await load.round(durationMs, target.requests);
        return { ratePerSecond: report.ratePerSecond, details: { ...report } };
      },
    };
  }

  /** Builds that take part: this checkout first. */
  get builds(): readonly Build[] {
    return buildsOf(this.options);
  }

  /** A subject of the comparison that works by itself. */
  loop({ name, pids, group, run }: Loop): Subject {
    const { durationMs, warmupMs } = this.options;
    return {
      name,
      pids,
      ...(group === undefined ? {} : { group }),
      warmUp: () => run(warmupMs),
      async round() {
        const { count, ...details } = await run(durationMs);
        return {
          ratePerSecond: (count / details.elapsedMs) * SECOND_MS,
          details: { answers: count, answersInAll: count, ...details },
        };
      },
    };
  }

  #plan(target: LoadTarget, pids: readonly number[]): LoadPlan {
    const { hostname, port } = new URL(target.url);
    const { connections, durationMs, ratePerSecond, maxRatePerSecond } = this.options;
    return {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port === '' ? 80 : port),
      connections: target.connections ?? connections,
      pids,
      leadInMs: 0,
      durationMs,
      ...(ratePerSecond === undefined ? {} : { ratePerSecond }),
      ...(maxRatePerSecond === undefined ? {} : { maxRatePerSecond }),
      requests: target.requests,
      expect: target.expect,
      ...(target.status === undefined ? {} : { status: target.status }),
      timeoutMs: TIMEOUT_MS,
    };
  }
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
