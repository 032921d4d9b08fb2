/** Runs scenarios one after the other; one that fails is named and does not stop the others. */
import { checkGenerator } from './generator-check.ts';
import { ALL, type BenchOptions, type CommandLine, optionsFor } from './options.ts';
import type { ProgressBar } from './progress.ts';
import {
  type BenchReport,
  gatewayVersion,
  LOAD_PER_CORE_MAX,
  loadAverage,
  machine,
  SCHEMA,
  type ScenarioReport,
  targetVersion,
  warningsOf,
} from './report.ts';
import { Bench, type Scenario, type ScenarioResult } from './scenario.ts';
import { judge } from './targets.ts';

/** `all` measures for so long at most; what is left of twenty minutes is for starting and for leaving. */
const ALL_BUDGET_MS = 18 * 60_000;
/** A scenario of `all` may take this many equal shares of what is left: most need less than one. */
const SHARES_MAX = 2;
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
  const loadBefore = loadAverage();
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
    const nowMs = performance.now();
    const share = ((startedMs + ALL_BUDGET_MS - nowMs) / left) * Math.min(SHARES_MAX, left);
    const deadline = line.scenario === ALL ? { deadlineMs: nowMs + share } : {};
    // The first one starts on the machine as it was before the generator was tried.
    const before = index === 0 ? loadBefore : loadAverage();
    reports.push(await runScenario(line, scenario, progress, before, { ...deadline, stop }));
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

async function runScenario(
  line: CommandLine,
  scenario: Scenario,
  progress: ProgressBar,
  before: number,
  { stop, ...deadline }: { readonly deadlineMs?: number; readonly stop: AbortSignal },
): Promise<ScenarioReport> {
  const { name, summary, unit = 'answers' } = scenario;
  const options = optionsFor(line, scenario);
  // Nothing stands beside a target: there is no ratio to judge.
  const targets = (scenario.targets ?? []).filter((each) => options.target === undefined || 'figure' in each);
  const startedUtc = new Date().toISOString();
  const startedMs = performance.now();
  const bench = new Bench(options, { progress, targets, ...deadline });
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
  const patienceMs = deadline.deadlineMs === undefined ? undefined : HANGING_MS;
  const result = (await attempt(() => within(patienceMs, stop, scenario.run(bench)))) ?? NOTHING;
  await attempt(() => bench.close());
  process.off('unhandledRejection', stray);
  const { comparison, notes, figures = [], series = [] } = result;
  const noisy = before > LOAD_PER_CORE_MAX * machine().cores;
  return {
    name,
    summary,
    unit,
    options,
    startedUtc,
    elapsedMs: performance.now() - startedMs,
    loadAverage: { before, after: loadAverage() },
    noisy,
    ...(faults.length === 0 ? {} : { failure: faults.join('; ') }),
    subjects: comparison.subjects,
    ratios: comparison.ratios,
    targets: judge(targets, comparison, figures),
    figures,
    series,
    participants: bench.participants,
    warnings: [
      ...(noisy ? [busyMachine(before)] : []),
      ...fewRounds(options.rounds, comparison.subjects[0]?.rounds.length),
      ...warningsOf(comparison.subjects),
    ],
    notes: [...notes, ...bench.remarks, ...unknownCost(options)],
  };
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

function busyMachine(before: number): string {
  return `the machine was busy before (one-minute load average ${before.toFixed(2)} on ${machine().cores} cores): rates and their ratios are no verdict, compare processor time`;
}

function fewRounds(wanted: number, done: number | undefined): string[] {
  if (done === undefined) return [];
  const cut = done < wanted ? [`${done} of ${wanted} rounds: the time of this scenario was over`] : [];
  return done < 5
    ? [...cut, `a median of ${done} round${done === 1 ? '' : 's'}: five or more make a verdict`]
    : cut;
}
