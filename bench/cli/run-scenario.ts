/** One scenario of a run: what it may use, its faults, and its text in the report. */

import { OTHERS_BUSY_MAX } from '../measure/busy-machine.ts';
import { type Comparison, ROUNDS_MIN, roundsOf } from '../measure/measure.ts';
import { ALL, type BenchOptions, type CommandLine, optionsFor } from '../options.ts';
import type { Progress } from '../progress.ts';
import { type ScenarioReport, warningsOf } from '../report/report.ts';
import { judge, type Target } from '../report/targets.ts';
import { Bench, type Scenario, type ScenarioResult } from '../scenario.ts';
import { baselineTargets } from '../subjects/baseline.ts';
import { leftMs } from './budget.ts';

/** In `all`: a scenario that hangs must not take the time of the others. */
const HANGING_MS = 3 * 60_000;
const NOTHING: ScenarioResult = { comparison: { subjects: [], ratios: [] }, notes: [] };

export interface RunContext {
  readonly progress: Progress;
  /** Share of the processors that others used before it began. */
  readonly busy: number;
  /** End of its rounds in `all`, by `performance.now()`. */
  readonly endMs: number;
  readonly stop: AbortSignal;
}

/** Resolves when everything that the scenario started is gone. */
export async function runScenario(
  line: CommandLine,
  scenario: Scenario,
  { progress, busy, endMs, stop }: RunContext,
): Promise<ScenarioReport> {
  const { name, summary, unit = 'answers' } = scenario;
  const options = optionsFor(line, scenario);
  const targets = (scenario.targets ?? []).filter((each) => isJudged(each, options));
  const startedUtc = new Date().toISOString();
  const beganMs = performance.now();
  const bench = new Bench(options, { progress, targets, leftMs: () => leftMs(line, { beganMs, endMs }) });
  const faults: string[] = [];
  const fault = (error: unknown) => void faults.push(messageOf(error));
  const attempt = async <Result>(act: () => Promise<Result>): Promise<Result | undefined> => {
    try {
      return await act();
    } catch (error) {
      fault(error);
      return undefined;
    }
  };
  // A promise that is awaited no more, of a scenario that failed or was given up, is its fault too.
  process.on('unhandledRejection', fault);
  const hangingMs = line.scenario === ALL ? HANGING_MS : undefined;
  const result = (await attempt(() => within(hangingMs, stop, scenario.run(bench)))) ?? NOTHING;
  await attempt(() => bench.close());
  process.off('unhandledRejection', fault);
  const elapsedMs = performance.now() - beganMs;
  const { comparison, notes, figures = [], series = [] } = result;
  const besideBaseline = baselineTargets(comparison.ratios, options.baselineShare);
  const noisy = busy > OTHERS_BUSY_MAX;
  return {
    name,
    summary,
    unit,
    options,
    startedUtc,
    elapsedMs,
    othersBusy: busy,
    noisy,
    ...(faults.length === 0 ? {} : { failure: faults.join('; ') }),
    subjects: comparison.subjects,
    ratios: comparison.ratios,
    targets: judge(
      [...targets, ...besideBaseline.filter((each) => isJudged(each, options))],
      comparison,
      figures,
    ),
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

/** A target has no counterpart and therefore no ratio; given rates do not show which one is faster. */
function isJudged(target: Target, { target: url, ratePerSecond, maxRatePerSecond }: BenchOptions): boolean {
  if ('figure' in target) return true;
  const isGiven = ratePerSecond !== undefined || maxRatePerSecond !== undefined;
  return url === undefined && !(isGiven && target.by === 'rate');
}

/** With what led to it: fetch alone says no more than that it failed. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${messageOf(error.cause)}`;
}

/** The work that is given up ends with the bench. */
async function within<Result>(
  hangingMs: number | undefined,
  stop: AbortSignal,
  work: Promise<Result>,
): Promise<Result> {
  const late = hangingMs === undefined ? [] : [AbortSignal.timeout(hangingMs)];
  const givenUp = AbortSignal.any([stop, ...late]);
  const end = new Promise<never>((_resolve, reject) => {
    const giveUp = () =>
      reject(new Error(stop.aborted ? 'interrupted' : `not over after ${HANGING_MS / 60_000} minutes`));
    if (givenUp.aborted) giveUp();
    else givenUp.addEventListener('abort', giveUp, { once: true });
  });
  return await Promise.race([work, end]);
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
