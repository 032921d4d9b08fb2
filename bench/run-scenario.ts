/** One scenario of a run: what it may use, what becomes of its faults, and what is said of it. */
import { baselineTargets } from './baseline.ts';
import { haltChildren, resume } from './halted.ts';
import { type Comparison, roundsOf } from './measure.ts';
import { ALL, type BenchOptions, type CommandLine, optionsFor } from './options.ts';
import { OTHERS_BUSY_MAX } from './others-busy.ts';
import type { ProgressBar } from './progress.ts';
import { type ScenarioReport, warningsOf } from './report.ts';
import { ROUNDS_MIN } from './rounds.ts';
import { Bench, type Scenario, type ScenarioResult } from './scenario.ts';
import { judge, type Target } from './targets.ts';
import type { Turn } from './turns.ts';

/** Rounds of a scenario on its own begin within this, unless the command line says how many there are. */
const ALONE_BUDGET_MS = 2 * 60_000;
/** Of the machine's time: one that hangs must not take the others with it. */
const HANGING_MS = 6 * 60_000;
const HANGING_LOOK_MS = 1_000;
const NOTHING: ScenarioResult = { comparison: { subjects: [], ratios: [] }, notes: [] };

export interface Stage {
  readonly progress: ProgressBar;
  /** What the progress says of it. */
  readonly title: string;
  /** Has begun. */
  readonly turn: Turn;
  /** Share of the processors that others used before it began. */
  readonly busy: number;
  /** Of it so far; more may come from beside it. */
  readonly faults: string[];
  readonly interrupted: Promise<void>;
}

/** Ends the turn when everything that it started is gone. */
export async function runScenario(
  line: CommandLine,
  scenario: Scenario,
  { progress, title, turn, busy, faults, interrupted }: Stage,
): Promise<ScenarioReport> {
  const { name, summary, unit = 'answers', inOnePiece } = scenario;
  const options = optionsFor(line, scenario);
  const targets = (scenario.targets ?? []).filter((each) => isJudged(each, options));
  const startedUtc = new Date().toISOString();
  let halted: readonly number[] = [];
  const halt = () => {
    halted = haltChildren();
  };
  const wake = () => {
    resume(halted);
    halted = [];
  };
  let givenUp = false;
  const rest = async () => {
    // What it began may still go on after an interrupt, but halts nobody: what is halted does not end.
    if (givenUp) throw new Error('given up');
    const others = await turn.rest(halt);
    if (!others) return false;
    wake();
    progress.begin(title);
    return true;
  };
  const bench = new Bench(options, {
    progress,
    targets,
    leftMs: () => leftMs(line, turn),
    ...(inOnePiece === true ? {} : { rest }),
  });
  const attempt = async <Result>(act: () => Promise<Result>): Promise<Result | undefined> => {
    try {
      return await act();
    } catch (error) {
      faults.push(messageOf(error));
      return undefined;
    }
  };
  const isHanging = () => line.scenario === ALL && turn.hadMs > HANGING_MS;
  const result = (await attempt(() => within(isHanging, interrupted, scenario.run(bench)))) ?? NOTHING;
  givenUp = true;
  // Interrupted while it rested.
  wake();
  await attempt(() => bench.close());
  const elapsedMs = turn.hadMs;
  turn.end();
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

/** Nothing stands beside a target, so that there is no ratio; and rates that were given say nothing of who is faster. */
function isJudged(target: Target, { target: url, ratePerSecond, maxRatePerSecond }: BenchOptions): boolean {
  if ('figure' in target) return true;
  const isGiven = ratePerSecond !== undefined || maxRatePerSecond !== undefined;
  return url === undefined && !(isGiven && target.by === 'rate');
}

/** For further rounds. In `all` what one does not need is everybody's. */
export function leftMs(
  { scenario, given }: Pick<CommandLine, 'scenario' | 'given'>,
  turn: Pick<Turn, 'hadMs' | 'leftMs'>,
): number {
  if (scenario === ALL) return turn.leftMs;
  return given.rounds === undefined ? ALONE_BUDGET_MS - turn.hadMs : Number.POSITIVE_INFINITY;
}

/** With what led to it: fetch alone says no more than that it failed. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${messageOf(error.cause)}`;
}

/** What it started ends with the bench, whoever waits for it no longer. */
async function within<Result>(
  isHanging: () => boolean,
  interrupted: Promise<void>,
  work: Promise<Result>,
): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    const look = () => {
      if (isHanging()) reject(new Error(`not over after ${HANGING_MS / 60_000} minutes`));
    };
    timer = setInterval(look, HANGING_LOOK_MS);
    void interrupted.then(() => reject(new Error('interrupted')));
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearInterval(timer);
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
