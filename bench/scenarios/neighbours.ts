/** Two callers beside each other: what the second one feels of a first one that abuses what both share. */
import { startServer } from '../measure/children.ts';
import type { Measured, Subject } from '../measure/measure.ts';
import { loadOf } from '../report/report.ts';
import { type Figure, figureOfRounds } from '../report/targets.ts';
import type { Bench, Scenario } from '../scenario.ts';
import { gatewayUnderLoad } from '../subjects/gateway.ts';
import { elapse, timed } from './neighbours/callers.ts';
import { PAIRS, type Pair } from './neighbours/pairs.ts';

/** For the first caller to take what it can get, and for what it left to go. */
const SETTLE_MS = 200;
const RATIO_MAX = 2;
/** Any key of the length that the configuration asks for: this backend looks at none. */
const MODULE_KEY = 'bench-module-key-0001';

export const neighbours: Scenario = {
  name: 'neighbours',
  summary: 'two callers beside each other: p99 of the second one alone and beside one that abuses a bound',
  unit: 'calls',
  noTarget: 'it abuses what the callers of a gateway share',
  defaults: { durationMs: 500, warmupMs: 500, rounds: 5, roundsMax: 5 },
  targets: PAIRS.map((pair) => ({
    figure: ratioOf(pair),
    atMost: RATIO_MAX,
    row: 'a second caller beside one that abuses a bound',
  })),
  async run(bench) {
    const backend = await startServer('wallet');
    bench.onTeardown(() => backend.stop());
    const subjects: Subject[] = [];
    for (const pair of PAIRS) subjects.push(...(await subjectsOf(bench, pair, backend.url)));
    const comparison = await bench.compare(subjects);
    return {
      comparison,
      figures: PAIRS.map((pair) => figureOf(pair, comparison.subjects)),
      notes: [
        'Calls of the second caller are due at a fixed rate; one without a good answer counts as one of 5 s.',
        ...PAIRS.map(({ name, bound, what }) => `${name} (${bound}): ${what}.`),
      ],
    };
  },
};

/** The second caller of a pair alone, and beside the first one. */
export async function subjectsOf(bench: Bench, pair: Pair, backendUrl: string): Promise<Subject[]> {
  const { perSecond, settings = {}, sandbox } = pair;
  const modules = sandbox === true ? {} : { wallet: { url: backendUrl, key: MODULE_KEY } };
  const more = { settings, ...(sandbox === true ? { sandbox } : {}) };
  const { url, pids } = await gatewayUnderLoad(bench, modules, more);
  const { ask, abuse } = await pair.prepare({ bench, url });
  const { durationMs, warmupMs } = bench.options;
  const alone = () => timed(ask, { perSecond, durationMs });
  return [
    {
      name: aloneOf(pair),
      group: aloneOf(pair),
      pids,
      warmUp: () => timed(ask, { perSecond, durationMs: warmupMs }),
      round: alone,
    },
    {
      name: besideOf(pair),
      group: besideOf(pair),
      pids,
      async round() {
        const end = await abuse(durationMs + 2 * SETTLE_MS);
        try {
          await elapse(SETTLE_MS);
          return await alone();
        } finally {
          await end();
          await elapse(SETTLE_MS);
        }
      },
    },
  ];
}

/** Round by round, as neighbours in time. */
export function figureOf(pair: Pair, measured: readonly Measured[]): Figure {
  const p99s = (name: string) =>
    (measured.find((each) => each.name === name)?.rounds ?? []).map(
      (round) => loadOf(round)?.latencyUs.p99 ?? Number.NaN,
    );
  const alone = p99s(aloneOf(pair));
  const ratios = p99s(besideOf(pair)).map((p99, round) => p99 / (alone[round] ?? Number.NaN));
  return figureOfRounds(ratioOf(pair), 'times alone', ratios);
}

function aloneOf({ name }: Pair): string {
  return `${name}: the other one alone`;
}

function besideOf({ name }: Pair): string {
  return `${name}: beside`;
}

function ratioOf({ name }: Pair): string {
  return `p99 beside ${name}`;
}
