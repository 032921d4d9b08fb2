/** Another built checkout (`--baseline DIR`), whose gateway and runtime are measured in the same rounds as this one's. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { entryOf, runToEnd } from '../../kit/launch.ts';
import type { Ratio } from '../measure/measure.ts';
import type { BenchOptions } from '../options.ts';
import type { RatioTarget } from '../report/targets.ts';

/** A measured build: this checkout, or the baseline. */
export interface Build {
  readonly checkout?: string;
  /** Follows the names of its subjects. */
  readonly suffix: '' | typeof SUFFIX;
}

const SUFFIX = ', baseline';

export function buildsOf({ baseline }: Pick<BenchOptions, 'baseline'>): Build[] {
  return [
    { suffix: '' },
    ...(baseline === undefined ? [] : [{ checkout: baseline, suffix: SUFFIX } as const]),
  ];
}

/** Says why this folder is no baseline, as one sentence; undefined where it is one. */
export function baselineFault(folder: string): string | undefined {
  const file = join(folder, 'package.json');
  const isOurs = existsSync(file) && /"name": *"gatehouse"/.test(readFileSync(file, 'utf8'));
  if (!isOurs) return `--baseline names a checkout of Gatehouse, and ${folder} is none.`;
  return existsSync(entryOf(folder))
    ? undefined
    : `--baseline names a checkout that is built, and ${folder} has no build/src/main.cjs (npm run build makes it).`;
}

export function isOfBaseline(name: string): boolean {
  return name.endsWith(SUFFIX);
}

export function baselinePairs(names: readonly string[]): { readonly of: string; readonly against: string }[] {
  return names.filter(isOfBaseline).map((against) => ({ of: against.slice(0, -SUFFIX.length), against }));
}

/** No subject of this build is slower than its counterpart, as far as the rounds can tell. */
export function baselineTargets(ratios: readonly Ratio[], share: number): RatioTarget[] {
  return ratios
    .filter(({ of, against }) => against === of + SUFFIX)
    .map(({ of, against }) => ({ of, against, by: 'rate', reaches: share, row: 'as fast as the baseline' }));
}

export interface KnownConfiguration {
  readonly configuration: object;
  /** Paths of keys that a build does not take: a newer one has more of them. */
  readonly leftOut: readonly string[];
}

/**
 * Returns the keys of a configuration that a build takes. It says so itself, with the path of every key that it
 * refuses.
 */
export async function knownTo(
  checkout: string,
  configuration: object,
  args: readonly string[] = [],
): Promise<KnownConfiguration> {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-baseline-'));
  try {
    const file = join(folder, 'gatehouse.json');
    writeFileSync(file, JSON.stringify(configuration));
    const { stdout, stderr } = await runToEnd(['--check-config', '--config', file, ...args], {}, checkout);
    const refused = [...`${stdout}\n${stderr}`.matchAll(/^configuration: ([\w.-]+): /gm)].map(
      ([, path = '']) => path,
    );
    return { configuration: refused.reduce(without, configuration), leftOut: refused };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A copy without the key at this path, `Settings.ApiRPSLimit`. */
function without(configuration: object, path: string): object {
  const [key = '', ...rest] = path.split('.');
  return Object.fromEntries(
    Object.entries(configuration).flatMap(([name, value]: [string, unknown]) => {
      if (name !== key) return [[name, value]];
      if (rest.length === 0) return [];
      const isObject = typeof value === 'object' && value !== null;
      return [[name, isObject ? without(value, rest.join('.')) : value]];
    }),
  );
}
