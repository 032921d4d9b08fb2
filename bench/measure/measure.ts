/**
 * Interleaved measuring (A B A B) in many short rounds, so that what the machine does meanwhile hits every subject;
 * medians and ratios.
 */

import type { Progress } from '../progress.ts';
import { costOfAll, type ProcessCost } from './process-cost.ts';
import { pairsOf, ratiosOf } from './ratios.ts';
import { doubtOf, expectedRounds, goesOn, type RoundPlan, type RoundState } from './rounds.ts';
import { type Interval, median } from './statistics.ts';

/** One round of one subject. */
export interface Sample {
  readonly ratePerSecond: number;
  /** Further figures of the round, as they are printed into the JSON. */
  readonly details: Readonly<Record<string, unknown>>;
}

export interface Subject {
  readonly name: string;
  /** Processes whose processor time and memory belong to the subject. */
  readonly pids: readonly number[];
  /** Ratios are taken within a group, of its first subject against the others: like with like. */
  readonly group?: string;
  /** Before its first round: load until its code is compiled. Nothing of it counts. */
  warmUp?(): Promise<unknown>;
  round(): Promise<Sample>;
}

export interface Round extends Sample {
  /**
   * Processor time of the subject's processes in this round, all threads; undefined where it is not known. Of the
   * measured time alone where the details say so (`cpuMs`), of the whole round otherwise.
   */
  readonly cpuMs: number | undefined;
  /** The same for one good answer. */
  readonly cpuUsPerAnswer: number | undefined;
  /** At the end of the round. */
  readonly rssBytes: number | undefined;
}

export interface Measured {
  readonly name: string;
  readonly medianPerSecond: number;
  readonly rounds: readonly Round[];
}

export interface Ratio {
  readonly of: string;
  readonly against: string;
  /** Over the rounds, each of which compares two neighbours in time. */
  readonly rate: Interval;
  /**
   * The other's processor time for one answer over that of `of`: above 1 the other one works more. Work of others on
   * the machine moves it little, where it can halve the rates. Undefined where there is no /proc.
   */
  readonly processorTime: Interval | undefined;
}

export interface Comparison {
  readonly subjects: readonly Measured[];
  /** The first subject of each group against its others, then the pairs that were asked for. */
  readonly ratios: readonly Ratio[];
}

export interface ComparePlan extends RoundPlan {
  /** Ratios beside those of the groups. */
  readonly pairs?: readonly { readonly of: string; readonly against: string }[];
  /** What a subject has cost so far; of its processes unless given. */
  readonly cost?: (subject: Subject) => Promise<ProcessCost | undefined>;
  readonly progress?: Progress;
  /** Milliseconds for further rounds; without end unless given. */
  readonly leftMs?: () => number;
}

/** Warms each subject up, then measures rounds of all of them in turn, as many as `goesOn` says. */
export async function compare(subjects: readonly Subject[], plan: ComparePlan): Promise<Comparison> {
  const { cost = costOfProcesses, progress, pairs = [], leftMs = endless } = plan;
  for (const subject of subjects) {
    if (subject.warmUp === undefined) continue;
    progress?.step(`warm-up: ${subject.name}`);
    await subject.warmUp();
  }
  const compared = pairsOf(subjects, pairs);
  const rounds = new Map<string, Round[]>(subjects.map(({ name }) => [name, []]));
  const comparison = (): Comparison => {
    const measured = subjects.map(({ name }) => measuredOf(name, rounds.get(name) ?? []));
    return { subjects: measured, ratios: ratiosOf(compared, measured) };
  };
  let state: RoundState = { done: 0, doubt: Number.POSITIVE_INFINITY, leftMs: leftMs(), roundMs: 0 };
  while (subjects.length > 0 && goesOn(plan, state)) {
    const startedMs = performance.now();
    const total = expectedRounds(plan, state);
    const of = plan.least === plan.most ? `of ${total}` : `of about ${total}`;
    for (const [index, subject] of rotated(subjects, state.done).entries()) {
      const begun = state.done * subjects.length + index;
      progress?.round(`round ${state.done + 1} ${of}: ${subject.name}`, begun, total * subjects.length);
      rounds.get(subject.name)?.push(await measureRound(subject, cost));
    }
    const roundMs = performance.now() - startedMs;
    state = { done: state.done + 1, doubt: doubtOf(comparison().ratios), leftMs: leftMs(), roundMs };
  }
  return comparison();
}

function endless(): number {
  return Number.POSITIVE_INFINITY;
}

function measuredOf(name: string, rounds: readonly Round[]): Measured {
  return { name, rounds, medianPerSecond: median(rounds.map(({ ratePerSecond }) => ratePerSecond)) };
}

/** From position `start` on, and around: no subject always follows the same neighbour. */
function rotated<Each>(all: readonly Each[], start: number): readonly Each[] {
  const first = start % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}

async function measureRound(subject: Subject, cost: NonNullable<ComparePlan['cost']>): Promise<Round> {
  const before = await cost(subject);
  const sample = await subject.round();
  const after = await cost(subject);
  const { cpuMs: measuredMs, answers: measuredAnswers, answersInAll } = sample.details;
  const isMeasured = typeof measuredMs === 'number' && typeof measuredAnswers === 'number';
  const wholeMs = (after?.cpuMs ?? Number.NaN) - (before?.cpuMs ?? Number.NaN);
  const cpuMs = isMeasured ? measuredMs : wholeMs;
  const answers = isMeasured ? measuredAnswers : Number(answersInAll ?? 0);
  return {
    ...sample,
    cpuMs: Number.isNaN(cpuMs) ? undefined : cpuMs,
    cpuUsPerAnswer: answers > 0 && !Number.isNaN(cpuMs) ? (cpuMs * 1_000) / answers : undefined,
    rssBytes: after?.rssBytes,
  };
}

async function costOfProcesses({ pids }: Subject): Promise<ProcessCost | undefined> {
  return costOfAll(pids);
}

/** Microseconds of all threads of a subject for one answer, the median of its rounds. */
export function processorTimeOf({ rounds }: Measured): number | undefined {
  const times = rounds.map(({ cpuUsPerAnswer }) => cpuUsPerAnswer).filter((time) => time !== undefined);
  return times.length === 0 ? undefined : median(times);
}

/** All subjects have as many. */
export function roundsOf([first]: readonly Measured[]): number {
  return first?.rounds.length ?? 0;
}
