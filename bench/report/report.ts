/** The whole of a run as data: what the JSON holds, and what table, HTML and Markdown walk. */
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem } from 'node:os';
import { pathToFileURL } from 'node:url';
import { request } from '../../kit/agent.ts';
import { runSync } from '../../kit/run-sync.ts';
import type { GeneratorCheck } from '../load/generator-check.ts';
import type { Latency, LoadReport } from '../load/plan.ts';
import type { Measured, Ratio, Round } from '../measure/measure.ts';
import { median } from '../measure/statistics.ts';
import type { BenchOptions } from '../options.ts';
import type { Series } from '../scenario.ts';
import type { Participant } from '../subjects/participants.ts';
import type { Figure, Judged } from './targets.ts';

/** Grows when a reader of the JSON must change. */
export const SCHEMA = 3;
/** A generator busier than this was the limit itself, or nearly. */
export const GENERATOR_BUSY_MAX = 0.95;

export interface BenchReport {
  readonly schema: typeof SCHEMA;
  readonly command: string;
  readonly startedUtc: string;
  readonly elapsedMs: number;
  readonly machine: Machine;
  readonly gateway: GatewayVersion;
  /** The build of `--baseline`. */
  readonly baseline?: GatewayVersion;
  readonly generator: GeneratorCheck;
  readonly scenarios: readonly ScenarioReport[];
  /** Scenarios of `all` that do not run against a target, with the reason. */
  readonly skipped: readonly { readonly name: string; readonly reason: string }[];
}

export interface GatewayVersion {
  /** `unknown` where a target does not tell. */
  readonly version: string;
  /** Commit of this checkout; `changed` where files differ from it. */
  readonly commit?: string;
  readonly changed?: true;
  /** Where it runs, of a target. */
  readonly url?: string;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly platform: string;
  readonly node: string;
}

export interface ScenarioReport {
  readonly name: string;
  readonly summary: string;
  readonly unit: string;
  readonly options: BenchOptions;
  readonly startedUtc: string;
  readonly elapsedMs: number;
  /** Share of all processors that others used before it began: `othersBusy`. */
  readonly othersBusy: number;
  /** The machine was busy before the scenario began. */
  readonly noisy: boolean;
  /** The reason why there are no figures. */
  readonly failure?: string;
  readonly subjects: readonly Measured[];
  readonly ratios: readonly Ratio[];
  readonly targets: readonly Judged[];
  readonly figures: readonly Figure[];
  readonly series: readonly Series[];
  readonly participants: readonly Participant[];
  /** Reasons to doubt the figures. */
  readonly warnings: readonly string[];
  readonly notes: readonly string[];
}

export function machine(): Machine {
  const all = cpus();
  return {
    cpu: all[0]?.model ?? 'unknown',
    cores: all.length,
    memoryBytes: totalmem(),
    kernel: release(),
    platform: `${process.platform}-${process.arch}`,
    node: process.version,
  };
}

export async function targetVersion(url: string): Promise<GatewayVersion> {
  const { json } = await request(`${url}/auth/v1/get_info`).catch((error: unknown) => {
    throw new Error(`${url} does not answer`, { cause: error });
  });
  return { version: String(json['result']?.['version'] ?? 'unknown'), url };
}

/**
 * Reads the version of this checkout or another one, whose gateway the suite starts. Without git only the version is
 * known.
 */
export function gatewayVersion(checkout?: string): GatewayVersion {
  const root = checkout === undefined ? new URL('../../../', import.meta.url) : pathToFileURL(`${checkout}/`);
  const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { version: string };
  const git = (...args: string[]) => runSync('git', args, { cwd: root });
  const commit = git('rev-parse', '--short=12', 'HEAD');
  if (commit.error !== undefined || commit.status !== 0) return { version };
  const changed = git('status', '--porcelain', '--untracked-files=no').stdout.trim() !== '';
  return { version, commit: commit.stdout.trim(), ...(changed ? { changed } : {}) };
}

/** Rounds that are no loads (native loops, the actor runtime) have no latencies. */
export function loadOf(round: Round | undefined): LoadReport | undefined {
  return round !== undefined && 'latencyUs' in round.details
    ? (round.details as unknown as LoadReport)
    : undefined;
}

/** The round with the median rate, or the lower one of two. */
export function middleRound(rounds: readonly Round[]): Round | undefined {
  const sorted = [...rounds].sort((a, b) => a.ratePerSecond - b.ratePerSecond);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

/** Each percentile is the median of the rounds', the maximum that of all; undefined without answers or latencies. */
export function latencyOf(rounds: readonly Round[]): Latency | undefined {
  const all = rounds
    .map(loadOf)
    .flatMap((load) => (load === undefined || load.answers === 0 ? [] : [load.latencyUs]));
  const [first] = all;
  if (first === undefined) return undefined;
  const of = (pick: (latency: Latency) => number) => median(all.map(pick));
  return {
    p50: of(({ p50 }) => p50),
    p90: of(({ p90 }) => p90),
    p99: of(({ p99 }) => p99),
    p999: of(({ p999 }) => p999),
    max: Math.max(...all.map(({ max }) => max)),
    mean: of(({ mean }) => mean),
    spectrum: first.spectrum.map(([percentile], index) => [
      percentile,
      of(({ spectrum }) => spectrum[index]?.[1] ?? Number.NaN),
    ]),
  };
}

/** Sums up the errors of all rounds, by kind. */
export function errorsOf(rounds: readonly Round[]): [kind: string, count: number][] {
  const total: Record<string, number> = {};
  for (const round of rounds) {
    for (const [kind, count] of Object.entries(loadOf(round)?.errors ?? {}))
      total[kind] = (total[kind] ?? 0) + count;
  }
  return Object.entries(total);
}

/** Share of the time that the client's thread was busy, of loads and of transfers; undefined where there is no client. */
export function generatorBusy(round: Round | undefined): number | undefined {
  const busy = round?.details['generatorBusy'];
  return typeof busy === 'number' ? busy : undefined;
}

/** True if the generator was the limit in one of the rounds. */
export function generatorLimited(rounds: readonly Round[]): boolean {
  return rounds.some((round) => (generatorBusy(round) ?? 0) > GENERATOR_BUSY_MAX);
}

/** Returns the reasons to doubt the figures of these subjects. */
export function warningsOf(subjects: readonly Measured[]): string[] {
  return subjects.flatMap(({ name, rounds }) => {
    const lines = errorsOf(rounds).map(([kind, count]) => `${name}: ${count} x ${kind}`);
    const sample = rounds.map((round) => loadOf(round)?.sample).find((text) => text !== undefined);
    if (sample !== undefined) lines.push(`${name}: first bad answer: ${sample}`);
    if (errorsOf(rounds).some(([kind]) => kind === 'status 429')) lines.push(LIMITS_HINT);
    const silent = rounds.filter(({ ratePerSecond }) => !(ratePerSecond > 0)).length;
    if (silent > 0)
      lines.push(
        `${name}: ${silent} of ${rounds.length} rounds measured nothing: its median and ratios are doubtful`,
      );
    if (generatorLimited(rounds))
      lines.push(
        `${name}: the generator was the limit (over ${GENERATOR_BUSY_MAX * 100} % busy): the rate is a lower bound`,
      );
    return lines;
  });
}

const LIMITS_HINT =
  'status 429: the gateway’s limits answered. To measure beyond them raise ApiRPSLimit, SessionApiRPSLimit, UserApiRPSLimit, McpApiRPSLimit, PubKeyApiRPSLimit and IpRPSLimit there (docs/reference/CONFIGURATION.md)';
