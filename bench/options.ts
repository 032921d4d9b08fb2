/** The command line of the suite. Every fault is reported at once. */
import { parseArgs } from 'node:util';

export interface BenchOptions {
  readonly scenario: string;
  /** A running gateway; without it the suite starts its own and compares. */
  readonly target: string | undefined;
  readonly connections: number;
  readonly durationMs: number;
  readonly warmupMs: number;
  /** Open loop at this rate; closed loop without it. */
  readonly ratePerSecond: number | undefined;
  readonly rounds: number;
  /** Accounts that take part; 0 leaves it to the scenario. */
  readonly users: number;
  readonly jsonFile: string | undefined;
  /** Where benches of files put them; /dev/shm takes the disk out of the picture. */
  readonly folder: string | undefined;
  /** Folder for the processor profiles of the gateway. */
  readonly profileFolder: string | undefined;
}

export type Parsed =
  | { readonly ok: true; readonly options: BenchOptions }
  | { readonly ok: false; readonly faults: readonly string[] };

const SECOND_MS = 1_000;

export const USAGE = `npm run bench -- <scenario> [options]

  --target URL       measure this gateway instead of starting one; nothing is compared
  --connections N    open connections (64)
  --duration S       seconds measured in each round (5)
  --warmup S         seconds before them (2)
  --rate R           open loop: R requests a second in all, latency from the moment each was due
  --rounds N         rounds of every subject, interleaved (3)
  --users N          accounts that take part
  --folder FOLDER    where benches of files put them (the system's temporary folder)
  --json FILE        the figures for machines
  --profile FOLDER   processor profiles of the gateway
`;

export function parseOptions(args: readonly string[], scenarios: readonly string[]): Parsed {
  const text = { type: 'string' } as const;
  let parsed: { values: Record<string, string | undefined>; positionals: string[] };
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        target: text,
        connections: text,
        duration: text,
        warmup: text,
        rate: text,
        rounds: text,
        users: text,
        json: text,
        profile: text,
        folder: text,
      },
    });
  } catch (error) {
    return { ok: false, faults: [error instanceof Error ? error.message : String(error)] };
  }
  const { values, positionals } = parsed;
  const faults: string[] = [];
  const [scenario = ''] = positionals;
  if (positionals.length !== 1 || !scenarios.includes(scenario))
    faults.push(`name one scenario: ${scenarios.join(', ')}`);
  const number = (name: string, fallback: number, min: number, max: number): number => {
    const value = values[name] === undefined ? fallback : Number(values[name]);
    if (!(value >= min && value <= max)) faults.push(`--${name} is a number from ${min} to ${max}`);
    return value;
  };
  const whole = (name: string, fallback: number, min: number, max: number): number => {
    const value = number(name, fallback, min, max);
    if (!Number.isNaN(value) && !Number.isInteger(value)) faults.push(`--${name} is a whole number`);
    return value;
  };
  const target = values['target'];
  if (target !== undefined && !isHttpUrl(target))
    faults.push('--target is an address like http://127.0.0.1:8080');
  const options: BenchOptions = {
    scenario,
    target: target?.replace(/\/+$/, ''),
    connections: whole('connections', 64, 1, 10_000),
    durationMs: number('duration', 5, 0.1, 600) * SECOND_MS,
    warmupMs: number('warmup', 2, 0, 60) * SECOND_MS,
    ratePerSecond: values['rate'] === undefined ? undefined : number('rate', 1, 1, 1_000_000),
    rounds: whole('rounds', 3, 1, 100),
    users: whole('users', 0, 0, 100_000),
    jsonFile: values['json'],
    profileFolder: values['profile'],
    folder: values['folder'],
  };
  return faults.length === 0 ? { ok: true, options } : { ok: false, faults };
}

/** The generator speaks plain HTTP: TLS would measure the machine's ciphers. */
function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && new URL(text).protocol === 'http:';
}
