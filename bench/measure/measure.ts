/**
 * Interleaved measuring (A B A B) in many short rounds, so that what the machine does meanwhile hits every subject;
 * medians and ratios.
 */

import type { Progress } from '../progress.ts';
import { costOfAll, type ProcessCost } from './process-cost.ts';
import { type Interval, intervalOfSample, median, uncertaintyOf } from './statistics.ts';

const COUNTED_ROUNDS = 3;

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
  /** Bytes that its main thread has allocated since this was asked before; absent where nothing counts them. */
  allocatedBytes?(): Promise<number>;
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
  /** Bytes that the main thread allocates on its heap for one answer. */
  readonly bytesPerAnswer?: number | undefined;
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
  /** Reads the cost of a subject so far; that of its processes unless given. */
  readonly cost?: (subject: Subject) => Promise<ProcessCost | undefined>;
  readonly progress?: Progress;
  /** Milliseconds for further rounds; without end unless given. */
  readonly leftMs?: () => number;
}

/** Warms each subject up, then measures rounds of all of them in turn, as many as `needsAnotherRound` says. */
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
  let state: RoundState = { done: 0, uncertainty: Number.POSITIVE_INFINITY, leftMs: leftMs(), roundMs: 0 };
  while (subjects.length > 0 && needsAnotherRound(plan, state)) {
    const startedMs = performance.now();
    const total = expectedRounds(plan, state);
    const of = plan.least === plan.most ? `of ${total}` : `of about ${total}`;
    for (const [index, subject] of rotated(subjects, state.done).entries()) {
      const begun = state.done * subjects.length + index;
      progress?.round(`round ${state.done + 1} ${of}: ${subject.name}`, begun, total * subjects.length);
      rounds.get(subject.name)?.push(await measureRound(subject, cost));
    }
    const roundMs = performance.now() - startedMs;
    state = {
      done: state.done + 1,
      uncertainty: widestUncertainty(comparison().ratios),
      leftMs: leftMs(),
      roundMs,
    };
  }
  const { subjects: measured, ratios } = comparison();
  const counted: Measured[] = [];
  for (const [at, each] of measured.entries()) {
    const subject = subjects[at];
    const bytesPerAnswer = subject === undefined ? undefined : await bytesOf(subject);
    counted.push(bytesPerAnswer === undefined ? each : { ...each, bytesPerAnswer });
  }
  return { subjects: counted, ratios };
}

/** In rounds of its own, so that the count is no part of what is measured. */
async function bytesOf(subject: Subject): Promise<number | undefined> {
  if (subject.allocatedBytes === undefined) return undefined;
  await subject.allocatedBytes();
  let answers = 0;
  for (let round = 0; round < COUNTED_ROUNDS; round += 1)
    answers += Number((await subject.round()).details['answersInAll'] ?? 0);
  const bytes = await subject.allocatedBytes();
  return answers > 0 ? bytes / answers : undefined;
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

type Pairs = NonNullable<ComparePlan['pairs']>;

/** The first subject of each group with its others, then the pairs that were asked for, each once. */
export function pairsOf(subjects: readonly Pick<Subject, 'name' | 'group'>[], asked: Pairs): Pairs {
  const groups = new Map<string | undefined, string[]>();
  for (const { name, group } of subjects) groups.set(group, [...(groups.get(group) ?? []), name]);
  const pairs = [...groups.values()].flatMap(([of, ...others]) =>
    of === undefined ? [] : others.map((against) => ({ of, against })),
  );
  for (const pair of asked) {
    const taken = [pair.of, pair.against].every((one) => subjects.some(({ name }) => name === one));
    const known = pairs.some(({ of, against }) => of === pair.of && against === pair.against);
    if (taken && !known) pairs.push(pair);
  }
  return pairs;
}

export function ratiosOf(pairs: Pairs, measured: readonly Measured[]): Ratio[] {
  const named = new Map(measured.map((each) => [each.name, each]));
  return pairs.flatMap(({ of, against }) => {
    const [one, other] = [named.get(of), named.get(against)];
    return one === undefined || other === undefined ? [] : [ratioOf(one, other)];
  });
}

function ratioOf(one: Measured, other: Measured): Ratio {
  const ofRounds = (pick: (mine: Round, theirs: Round) => number | undefined) =>
    one.rounds.flatMap((mine, index) => {
      const theirs = other.rounds[index];
      const ratio = theirs === undefined ? undefined : pick(mine, theirs);
      return ratio === undefined ? [] : [ratio];
    });
  const times = ofRounds((mine, theirs) =>
    mine.cpuUsPerAnswer === undefined || theirs.cpuUsPerAnswer === undefined || mine.cpuUsPerAnswer <= 0
      ? undefined
      : theirs.cpuUsPerAnswer / mine.cpuUsPerAnswer,
  );
  return {
    of: one.name,
    against: other.name,
    rate: intervalOfSample(ofRounds((mine, theirs) => mine.ratePerSecond / theirs.ratePerSecond)),
    processorTime: times.length === 0 ? undefined : intervalOfSample(times),
  };
}

export interface RoundPlan {
  /** Fewer only where the deadline comes. */
  readonly least: number;
  /** Beyond `least` only while a ratio is less sure than `PRECISION`. */
  readonly most: number;
}

export interface RoundState {
  readonly done: number;
  /** Uncertainty by `widestUncertainty`. */
  readonly uncertainty: number;
  /** No further round begins that would take longer, once there are `ROUNDS_MIN`. */
  readonly leftMs: number;
  /** Duration of the last round. */
  readonly roundMs: number;
}

/** Fewer say next to nothing of a median. */
export const ROUNDS_MIN = 5;
/** Half of the 95 % interval over the median. Narrower than two runs are alike: what drifts over minutes is in no interval. */
export const PRECISION = 0.02;

/** The least sure of all medians; 0 where there is no ratio, whose rounds nothing but `least` asks for. */
export function widestUncertainty(ratios: readonly Ratio[]): number {
  const spreads = ratios.flatMap(({ rate, processorTime }) =>
    processorTime === undefined ? [rate] : [rate, processorTime],
  );
  return Math.max(0, ...spreads.map(uncertaintyOf));
}

/** True if one more round is due. */
export function needsAnotherRound(
  { least, most }: RoundPlan,
  { done, uncertainty, leftMs, roundMs }: RoundState,
): boolean {
  if (done >= most) return false;
  if (done >= Math.min(least, ROUNDS_MIN) && roundMs > leftMs) return false;
  return done < least || uncertainty > PRECISION;
}

/**
 * Estimates how many rounds there will be in all, for a bar: an interval narrows with the square root of the rounds.
 */
export function expectedRounds(
  { least, most }: RoundPlan,
  { done, uncertainty, leftMs, roundMs }: RoundState,
): number {
  if (done < ROUNDS_MIN) return least;
  const wanted = Number.isFinite(uncertainty) ? Math.ceil(done * (uncertainty / PRECISION) ** 2) : most;
  const room = roundMs > 0 ? done + Math.max(0, Math.floor(leftMs / roundMs)) : most;
  return Math.max(done, Math.min(most, room, Math.max(least, wanted)));
}
