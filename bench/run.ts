/** Runs scenarios one after the other; one that fails is named and does not stop the others. */
import { checkGenerator } from './generator-check.ts';
import { type Comparison, roundsOf } from './measure.ts';
import { ALL, type BenchOptions, type CommandLine, optionsFor } from './options.ts';
import { OTHERS_BUSY_MAX, othersBusy } from './others-busy.ts';
import type { ProgressBar } from './progress.ts';
import {
  type BenchReport,
  gatewayVersion,
  machine,
  SCHEMA,
  type ScenarioReport,
  targetVersion,
  warningsOf,
} from './report.ts';
import { ROUNDS_MIN } from './rounds.ts';
import { Bench, type Scenario, type ScenarioResult } from './scenario.ts';
import { judge, type Target } from './targets.ts';

/** `all` measures for so long at most; what is left of twenty minutes is for what follows the last rounds. */
const ALL_BUDGET_MS = 18.5 * 60_000;
/** Rounds of a scenario on its own begin within this, unless the command line says how many there are. */
const ALONE_BUDGET_MS = 2 * 60_000;
/** One that hangs must not take the others with it. */
const HANGING_MS = 6 * 60_000;
const NOTHING: ScenarioResult = { comparison: { subjects: [], ratios: [] }, notes: [] };

export async function runScenarios(
  line: CommandLine,
  command: string,
  scenarios: readonly Scenario[],
  progress: ProgressBar,
  stop: AbortSignal = new AbortController().signal,
): Promise<BenchReport> {
  const startedMs = performance.now();
  const startedUtc = new Date().toISOString();
  const busyAtFirst = await othersBusy();
  const chosen = scenarios.filter(({ name }) => line.scenario === ALL || line.scenario === name);
  const skipped = chosen.flatMap(({ name, noTarget }) =>
    line.common.target === undefined || noTarget === undefined ? [] : [{ name, reason: noTarget }],
  );
  const runnable = chosen.filter(({ name }) => !skipped.some((each) => each.name === name));
  const { target } = line.common;
  // Before any load: a target that nobody can reach is no target.
  const gateway = target === undefined ? gatewayVersion() : await targetVersion(target);
  progress.begin('the load generator');
  progress.step('against an empty handler');
  const generator = await checkGenerator();
  const reports: ScenarioReport[] = [];
  for (const [index, scenario] of runnable.entries()) {
    if (stop.aborted) break;
    const left = runnable.length - index;
    progress.begin(
      left === 1 && index === 0 ? scenario.name : `${scenario.name} (${index + 1} of ${runnable.length})`,
    );
    const endMs = line.scenario === ALL ? startedMs + ALL_BUDGET_MS : undefined;
    const deadlineMs = deadlineOf(line, runnable.slice(index), endMs, performance.now());
    // The first one starts on the machine as it was before the generator was tried.
    const busy = index === 0 ? busyAtFirst : await othersBusy();
    reports.push(await runScenario(line, scenario, progress, busy, { deadlineMs, stop }));
  }
  progress.end();
  return {
    schema: SCHEMA,
    command,
    startedUtc,
    elapsedMs: performance.now() - startedMs,
    machine: machine(),
    gateway,
    generator,
    scenarios: reports,
    skipped,
  };
}

/**
 * `performance.now()` at which no further round begins. In `all`, whose end is given, each has its share of what is left
 * then: what one does not need flows to all that follow.
 */
export function deadlineOf(
  line: Pick<CommandLine, 'given'>,
  [scenario, ...later]: readonly Pick<Scenario, 'share'>[],
  endMs: number | undefined,
  nowMs: number,
): number | undefined {
  if (endMs === undefined) return line.given.rounds === undefined ? nowMs + ALONE_BUDGET_MS : undefined;
  const { share = 1 } = scenario ?? {};
  const shares = later.reduce((sum, { share: other = 1 }) => sum + other, share);
  return nowMs + ((endMs - nowMs) * share) / shares;
}

async function runScenario(
  line: CommandLine,
  scenario: Scenario,
  progress: ProgressBar,
  busy: number,
  { deadlineMs, stop }: { readonly deadlineMs: number | undefined; readonly stop: AbortSignal },
): Promise<ScenarioReport> {
  const { name, summary, unit = 'answers' } = scenario;
  const options = optionsFor(line, scenario);
  const targets = (scenario.targets ?? []).filter((each) => isJudged(each, options));
  const startedUtc = new Date().toISOString();
  const startedMs = performance.now();
  const bench = new Bench(options, {
    progress,
    targets,
    ...(deadlineMs === undefined ? {} : { deadlineMs }),
  });
  const faults: string[] = [];
  const attempt = async <Result>(act: () => Promise<Result>): Promise<Result | undefined> => {
    try {
      return await act();
    } catch (error) {
      faults.push(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  };
  // A promise that nobody waits for any more, of a scenario that failed or was given up, is its fault too.
  const stray = (error: unknown) => void faults.push(error instanceof Error ? error.message : String(error));
  process.on('unhandledRejection', stray);
  const patienceMs = line.scenario === ALL ? HANGING_MS : undefined;
  const result = (await attempt(() => within(patienceMs, stop, scenario.run(bench)))) ?? NOTHING;
  await attempt(() => bench.close());
  process.off('unhandledRejection', stray);
  const { comparison, notes, figures = [], series = [] } = result;
  const noisy = busy > OTHERS_BUSY_MAX;
  return {
    name,
    summary,
    unit,
    options,
    startedUtc,
    elapsedMs: performance.now() - startedMs,
    othersBusy: busy,
    noisy,
    ...(faults.length === 0 ? {} : { failure: faults.join('; ') }),
    subjects: comparison.subjects,
    ratios: comparison.ratios,
    targets: judge(targets, comparison, figures),
    figures,
    series,
    participants: bench.participants,
    warnings: [
      ...(noisy ? [busyMachine(busy)] : []),
      ...fewRounds(options.rounds, comparison),
      ...warningsOf(comparison.subjects),
    ],
    notes: [...notes, ...bench.remarks, ...unknownCost(options)],
  };
}

/** Nothing stands beside a target, so that there is no ratio; and rates that were given say nothing of who is faster. */
function isJudged(target: Target, { target: url, ratePerSecond, maxRatePerSecond }: BenchOptions): boolean {
  if ('figure' in target) return true;
  const isGiven = ratePerSecond !== undefined || maxRatePerSecond !== undefined;
  return url === undefined && !(isGiven && target.by === 'rate');
}

/** What it started ends with the bench, whoever waits for it no longer. */
async function within<Result>(
  patienceMs: number | undefined,
  stop: AbortSignal,
  work: Promise<Result>,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  let give: () => void = () => undefined;
  const late = new Promise<never>((_resolve, reject) => {
    give = () => reject(new Error('interrupted'));
    const slow = () => reject(new Error(`not over after ${(patienceMs ?? 0) / 60_000} minutes`));
    if (patienceMs !== undefined) timer = setTimeout(slow, patienceMs);
    if (stop.aborted) give();
    else stop.addEventListener('abort', give);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
    stop.removeEventListener('abort', give);
  }
}

function unknownCost({ target, internal }: BenchOptions): string[] {
  if (target === undefined) return [];
  return internal === undefined
    ? [
        'Processor time and memory of the target are not known; --internal URL, its internal listener, shows them.',
      ]
    : [`Processor time and memory are what the target says of its process at ${internal}.`];
}

function busyMachine(busy: number): string {
  return `the machine was busy with other work (${Math.round(busy * 100)} % of its processors before this began): rates and their ratios are no verdict, compare processor time`;
}

/** Where something is compared: figures of one round, of everything at once, are no median. */
function fewRounds(wanted: number, { subjects, ratios }: Comparison): string[] {
  if (ratios.length === 0) return [];
  const done = roundsOf(subjects);
  const cut = done < wanted ? [`${done} of ${wanted} rounds: the time of this scenario was over`] : [];
  return done < ROUNDS_MIN
    ? [...cut, `a median of ${done} round${done === 1 ? '' : 's'}: five or more make a verdict`]
    : cut;
}
