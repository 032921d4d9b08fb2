/** What a scenario is, and what it may use: the options, the load generator, and places to say what happens. */
import { type Generator, startGenerator } from './children.ts';
import type { Comparison, Sample, Subject } from './measure.ts';
import type { BenchOptions } from './options.ts';
import type { LoadPlan, LoadReport } from './plan.ts';

/** Longer than any good answer of these scenarios. */
const TIMEOUT_MS = 10_000;

export interface ScenarioResult {
  readonly comparison: Comparison;
  /** What a reader must know beside the table. */
  readonly notes: readonly string[];
}

export interface Scenario {
  readonly name: string;
  readonly summary: string;
  run(bench: Bench): Promise<ScenarioResult>;
}

/** What one load of one subject asks for. */
export interface LoadTarget {
  readonly url: string;
  readonly requests: readonly string[];
  readonly expect: string;
  /** Of a good answer; 200 unless given. */
  readonly status?: number;
}

export class Bench {
  readonly options: BenchOptions;
  readonly announce: (text: string) => void;
  readonly #generator: Generator = startGenerator();
  readonly #cleanUps: (() => Promise<unknown>)[] = [];

  constructor(options: BenchOptions, announce: (text: string) => void) {
    this.options = options;
    this.announce = announce;
  }

  /** Runs when the scenario is over, last first, whether it succeeded or not. */
  afterwards(cleanUp: () => Promise<unknown>): void {
    this.#cleanUps.push(cleanUp);
  }

  async close(): Promise<void> {
    for (const cleanUp of this.#cleanUps.splice(0).reverse()) await cleanUp();
    await this.#generator.stop();
  }

  async load(target: LoadTarget): Promise<LoadReport> {
    const { hostname, port } = new URL(target.url);
    const { options } = this;
    const plan: LoadPlan = {
      host: hostname.replace(/^\[|\]$/g, ''),
      port: Number(port === '' ? 80 : port),
      connections: options.connections,
      warmupMs: options.warmupMs,
      durationMs: options.durationMs,
      ...(options.ratePerSecond === undefined ? {} : { ratePerSecond: options.ratePerSecond }),
      requests: target.requests,
      expect: target.expect,
      ...(target.status === undefined ? {} : { status: target.status }),
      timeoutMs: TIMEOUT_MS,
    };
    return await this.#generator.run(plan, ({ elapsedMs, answers }) => {
      if (elapsedMs > 0) this.announce(`${answers} answers in ${(elapsedMs / 1_000).toFixed(1)} s`);
    });
  }

  /** A subject of the comparison whose rounds are loads. `prepare` makes the requests anew for each round. */
  subject(name: string, pids: readonly number[], prepare: () => LoadTarget | Promise<LoadTarget>): Subject {
    return { name, pids, round: async () => sampleOf(await this.load(await prepare())) };
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
