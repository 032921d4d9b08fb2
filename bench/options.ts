/** The command line of the suite, and what each scenario makes of it. Every fault is reported at once. */
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';

export interface LoadSettings {
  readonly connections: number;
  readonly durationMs: number;
  /** Warm-up of each subject, once before its first round. */
  readonly warmupMs: number;
  /** At least, unless the time is over before. */
  readonly rounds: number;
  /** At most, while a ratio is not sure. */
  readonly roundsMax: number;
  /** Accounts that take part; 0 leaves it to the scenario. */
  readonly users: number;
}

export interface ScenarioTraits {
  readonly name: string;
  /** Values that hold where the command line says nothing. */
  readonly defaults?: Partial<LoadSettings>;
  /** The reason why it takes no `--target`, as the end of "NAME takes no --target: …"; absent where it takes one. */
  readonly noTarget?: string;
  /** The reason why `all` leaves it out, as the end of "NAME is not part of all: …"; absent where it is part. */
  readonly notInAll?: string;
  /** True if another build takes part with `--baseline`. */
  readonly baseline?: true;
}

export interface BenchOptions extends LoadSettings {
  readonly scenario: string;
  /** A running gateway; without it the suite starts its own and compares. */
  readonly target: string | undefined;
  /** Its internal listener: processor time and memory of a target. */
  readonly internal: string | undefined;
  /** True if other servers take part beside the floors. */
  readonly peers: boolean;
  /** Folder of another built checkout, a subject of the same rounds. */
  readonly baseline: string | undefined;
  /** The interval of the ratio to the baseline is to reach this. */
  readonly baselineShare: number;
  /** Open loop at this rate; closed loop without it. */
  readonly ratePerSecond: number | undefined;
  /** No more than this in either loop. */
  readonly maxRatePerSecond: number | undefined;
  /**
   * Folder in which benches of files put them and the gateway's journal; /dev/shm takes the disk out of the picture.
   */
  readonly folder: string | undefined;
  readonly profileFolder: string | undefined;
}

export interface CommandLine {
  /** A scenario's name or `all`. */
  readonly scenario: string;
  readonly common: Omit<BenchOptions, 'scenario' | keyof LoadSettings>;
  readonly given: Partial<LoadSettings>;
  readonly jsonFile: string | undefined;
  readonly htmlFile: string | undefined;
}

export type Parsed =
  | { readonly ok: true; readonly line: CommandLine }
  | { readonly ok: false; readonly faults: readonly string[] };

export const ALL = 'all';
/** Value that a ratio to the baseline is to reach unless the command line says otherwise. */
const BASELINE_SHARE = 0.97;
const SECOND_MS = 1_000;
const STANDARD: LoadSettings = {
  connections: 64,
  // A ratio gets sure by the number of rounds, not by their length (decision 0071); but a round is many answers.
  durationMs: 0.15 * SECOND_MS,
  warmupMs: 1.5 * SECOND_MS,
  rounds: 15,
  roundsMax: 300,
  users: 0,
};
/** A default must not overload a deployment. */
export const TARGET_BOUNDS = {
  load: { connections: 8, durationMs: 5 * SECOND_MS, warmupMs: SECOND_MS, rounds: 3, roundsMax: 3, users: 4 },
  maxRatePerSecond: 100,
} as const;

export const USAGE = `npm run bench -- <scenario | all> [options]

  --peers            other servers too: SDK server, fastify, nginx, nchan, tus, better-sse, … as far as installed
  --baseline DIR     another built checkout as a subject of the same rounds (in all: where a scenario takes one); the
                     report says whether the interval of each ratio to it reaches the share
  --baseline-share N that share (0.97)
  --connections N    open connections (64)
  --duration S       seconds measured in each round (0.15)
  --warmup S         seconds of load for each subject once, before its first round, not counted (1.5)
  --rate R           open loop: R requests a second in all, latency from the moment each was due
  --max-rate R       closed loop, but no more than R requests a second
  --rounds N         exactly so many rounds of every subject, interleaved; without it 15 or more, until the 95 %
                     interval of every ratio is within 2 % of it or the time is over (2 minutes; all: bench/cli/budget.ts)
  --users N          accounts that take part
  --target URL       measure this gateway instead of starting one; nothing is compared. Bounded: 8 connections,
                     4 accounts, 3 rounds of 5 s, at most 100 requests a second, unless the options above say otherwise
  --internal URL     the target's internal listener: its processor time and memory
  --folder FOLDER    where benches of files put them, and the gateway its journal (the system's temporary folder)
  --json FILE        the figures for machines
  --html FILE        the report for people: one page, nothing to fetch
  --profile FOLDER   processor profiles of the gateway
`;

const TEXT = { type: 'string' } as const;
const FLAGS = {
  target: TEXT,
  baseline: TEXT,
  'baseline-share': TEXT,
  internal: TEXT,
  connections: TEXT,
  duration: TEXT,
  warmup: TEXT,
  rate: TEXT,
  'max-rate': TEXT,
  rounds: TEXT,
  users: TEXT,
  json: TEXT,
  html: TEXT,
  profile: TEXT,
  folder: TEXT,
  peers: { type: 'boolean' },
} as const;

export function parseOptions(args: readonly string[], scenarios: readonly ScenarioTraits[]): Parsed {
  let parsed: { values: { [name: string]: string | boolean | undefined }; positionals: string[] };
  try {
    parsed = parseArgs({ args: [...args], allowPositionals: true, options: FLAGS });
  } catch (error) {
    return { ok: false, faults: [error instanceof Error ? error.message : String(error)] };
  }
  const faults: string[] = [];
  const line = readLine(parsed.values, parsed.positionals, scenarios, faults);
  return faults.length === 0 ? { ok: true, line } : { ok: false, faults };
}

function readLine(
  values: Readonly<Record<string, string | boolean | undefined>>,
  positionals: readonly string[],
  scenarios: readonly ScenarioTraits[],
  faults: string[],
): CommandLine {
  const [scenario = ''] = positionals;
  const traits = scenarios.find(({ name }) => name === scenario);
  if (positionals.length !== 1 || (traits === undefined && scenario !== ALL))
    faults.push(`name one scenario: ${scenarios.map(({ name }) => name).join(', ')}, or ${ALL}`);
  const text = (name: string) => (typeof values[name] === 'string' ? values[name] : undefined);
  const number = (name: string, min: number, max: number, whole = false): number | undefined => {
    const given = text(name);
    if (given === undefined) return undefined;
    const value = given.trim() === '' ? Number.NaN : Number(given);
    if (!(value >= min && value <= max)) faults.push(`--${name} is a number from ${min} to ${max}`);
    else if (whole && !Number.isInteger(value)) faults.push(`--${name} is a whole number`);
    return value;
  };
  const address = (name: string): string | undefined => {
    const given = text(name);
    if (given !== undefined && !isHttpUrl(given))
      faults.push(
        `--${name} is an address like http://127.0.0.1:8080 (plain HTTP: the generator speaks no TLS; measure behind it)`,
      );
    return given?.replace(/\/+$/, '');
  };
  const target = address('target');
  if (target !== undefined && traits?.noTarget !== undefined)
    faults.push(`${scenario} takes no --target: ${traits.noTarget}`);
  if (target !== undefined && values['peers'] === true)
    faults.push('--peers compares servers on this machine: not with --target');
  const baseline = text('baseline');
  if (baseline !== undefined && target !== undefined)
    faults.push('--baseline is compared with this checkout: not with --target');
  if (baseline !== undefined && traits !== undefined && traits.baseline !== true)
    faults.push(`${scenario} takes no --baseline: ${scenarios.flatMap(withBaseline).join(', ')} do`);
  const internal = address('internal');
  if (internal !== undefined && target === undefined)
    faults.push('--internal belongs to a --target: of its own gateway the suite knows the processes');
  const milliseconds = (seconds: number | undefined) =>
    seconds === undefined ? undefined : seconds * SECOND_MS;
  const ratePerSecond = number('rate', 1, 1_000_000);
  const maxRate = number('max-rate', 1, 1_000_000);
  if (ratePerSecond !== undefined && maxRate !== undefined)
    faults.push('--rate is the open loop, --max-rate bounds the closed one: give one of them');
  const rounds = number('rounds', 1, 1_000, true);
  const bound =
    target === undefined || ratePerSecond !== undefined ? undefined : TARGET_BOUNDS.maxRatePerSecond;
  return {
    scenario,
    common: {
      target,
      internal,
      peers: values['peers'] === true,
      baseline: baseline === undefined ? undefined : resolve(baseline),
      baselineShare: number('baseline-share', 0.01, 10) ?? BASELINE_SHARE,
      ratePerSecond,
      maxRatePerSecond: maxRate ?? bound,
      folder: text('folder'),
      profileFolder: text('profile'),
    },
    given: defined({
      connections: number('connections', 1, 10_000, true),
      durationMs: milliseconds(number('duration', 0.05, 600)),
      warmupMs: milliseconds(number('warmup', 0, 60)),
      rounds,
      roundsMax: rounds,
      users: number('users', 1, 100_000, true),
    }),
    jsonFile: text('json'),
    htmlFile: text('html'),
  };
}

function withBaseline({ name, baseline }: ScenarioTraits): string[] {
  return baseline === true ? [name] : [];
}

/** The command line goes before the bounds of a target, and those before what the scenario is made for. */
export function optionsFor({ common, given }: CommandLine, traits: ScenarioTraits): BenchOptions {
  const bounds = common.target === undefined ? {} : TARGET_BOUNDS.load;
  const load = { ...STANDARD, ...traits.defaults, ...bounds, ...given };
  const baseline = traits.baseline === true ? common.baseline : undefined;
  return { scenario: traits.name, ...common, baseline, ...load };
}

function defined(
  values: { [Key in keyof LoadSettings]: LoadSettings[Key] | undefined },
): Partial<LoadSettings> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && new URL(text).protocol === 'http:';
}
