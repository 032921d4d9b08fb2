/**
 * Interleaved measuring (A B A B) in many short rounds, so that what the machine does meanwhile hits every subject;
 * medians and ratios.
 */
import { instanceAt, instancesOf } from './instances.ts';
import { costOfAll, type ProcessCost } from './process-cost.ts';
import type { Progress } from './progress.ts';
import { pairsOf, ratiosOf } from './ratios.ts';
import { doubtOf, expectedRounds, goesOn, ROUNDS_MIN, type RoundPlan, type RoundState } from './rounds.ts';
import { median, type Spread } from './statistics.ts';

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
  /** Further processes of the same name that take rounds in turn with it. */
  readonly others?: readonly Subject[];
  /** Before its first round: load until its code is compiled. Nothing of it counts. */
  warmUp?(): Promise<unknown>;
  /** A part of a round; those of all subjects take turns. */
  slice?(): Promise<unknown>;
  /** A whole round; of a subject with slices, what they have measured. */
  round(): Promise<Sample>;
}

export interface Round extends Sample {
  /**
   * Processor time of the subject's processes in this round, all threads; undefined where nobody tells. Of the measured
   * time alone where the details say so (`cpuMs`), with whatever leads to it otherwise.
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
  readonly rate: Spread;
  /**
   * The other's processor time for one answer over that of `of`: above 1 the other one works more. Work of others on
   * the machine moves it little, where it can halve the rates. Undefined where there is no /proc.
   */
  readonly processorTime: Spread | undefined;
}

export interface Comparison {
  readonly subjects: readonly Measured[];
  /** The first subject of each group against its others, then the pairs that were asked for. */
  readonly ratios: readonly Ratio[];
}

/** Of a processor: what a subject has of the time of its warm-up at least. */
const WARM_SHARE = 1 / 3;
const WARM_UPS_MAX = 3;
/** After others had the machine, rounds of so long at least do not count: caches are cold. */
const AGAIN_MS = 500;
/** A subject of no ratio takes part in the first rounds and in each of these. */
const ALONE_EVERY = 4;

export interface Slices {
  readonly count: number;
  /** No further turn of all subjects begins after so long: a slice lasts until each connection has an answer. */
  readonly enoughMs: number;
}

const ONE_SLICE: Slices = { count: 1, enoughMs: Number.POSITIVE_INFINITY };

export interface ComparePlan extends RoundPlan {
  /** Of a round, for subjects that have slices; one unless given. */
  readonly slices?: Slices;
  /** Ratios beside those of the groups. */
  readonly pairs?: readonly { readonly of: string; readonly against: string }[];
  /** What a subject has cost so far; of its processes unless given. */
  readonly cost?: (subject: Subject) => Promise<ProcessCost | undefined>;
  readonly progress?: Progress;
  /** Milliseconds for further rounds; without end unless given. */
  readonly leftMs?: () => number;
  /** Between two rounds: others may have the machine for a while. True when they had. */
  readonly rest?: () => Promise<boolean>;
  /** Rounds after that which do not count last so long at least; half a second unless given. */
  readonly againMs?: number;
}

/** Warms each subject up, then measures rounds of all of them in turn, as many as `goesOn` says. */
export async function compare(subjects: readonly Subject[], plan: ComparePlan): Promise<Comparison> {
  const {
    cost = costOfProcesses,
    progress,
    pairs = [],
    slices = ONE_SLICE,
    leftMs = endless,
    rest,
    againMs = AGAIN_MS,
  } = plan;
  for (const subject of subjects.flatMap(instancesOf)) {
    if (subject.warmUp === undefined) continue;
    progress?.step(`warm-up: ${subject.name}`);
    await warmUp(subject, subject.warmUp.bind(subject), cost);
  }
  const compared = pairsOf(subjects, pairs);
  const rounds = new Map<string, Round[]>(subjects.map(({ name }) => [name, []]));
  const comparison = (): Comparison => {
    const measured = subjects.map(({ name }) => measuredOf(name, rounds.get(name) ?? []));
    return { subjects: measured, ratios: ratiosOf(compared, measured) };
  };
  let state: RoundState = { done: 0, doubt: Number.POSITIVE_INFINITY, leftMs: leftMs(), roundMs: 0 };
  while (subjects.length > 0 && goesOn(plan, state)) {
    const due = subjects
      .filter(({ name }) => isDue(name, compared, state.done))
      .map((subject) => instanceAt(subject, state.done, subjects.length));
    if (state.done > 0 && (await rest?.())) await warmAgain(due, slices, cost, againMs);
    const startedMs = performance.now();
    const total = expectedRounds(plan, state);
    const of = plan.least === plan.most ? `of ${total}` : `of about ${total}`;
    const begins = (index: number, name?: string) => {
      const text = `round ${state.done + 1} ${of}${name === undefined ? '' : `: ${name}`}`;
      progress?.round(text, state.done * subjects.length + index, total * subjects.length);
    };
    for (const [subject, round] of await measureRound(rotated(due, state.done), slices, cost, begins))
      rounds.get(subject.name)?.push(round);
    const roundMs = performance.now() - startedMs;
    state = { done: state.done + 1, doubt: doubtOf(comparison().ratios), leftMs: leftMs(), roundMs };
  }
  return comparison();
}

/** Again where others had the processor: code is compiled by what it does, not by the time that goes by. */
async function warmUp(
  subject: Subject,
  load: () => Promise<unknown>,
  cost: NonNullable<ComparePlan['cost']>,
): Promise<void> {
  for (let time = 1; time <= WARM_UPS_MAX; time += 1) {
    const startedMs = performance.now();
    const before = await cost(subject);
    await load();
    const after = await cost(subject);
    const usedMs = (after?.cpuMs ?? Number.NaN) - (before?.cpuMs ?? Number.NaN);
    if (!(usedMs < (performance.now() - startedMs) * WARM_SHARE)) return;
  }
}

async function warmAgain(
  subjects: readonly Subject[],
  slices: Slices,
  cost: NonNullable<ComparePlan['cost']>,
  againMs: number,
): Promise<void> {
  const untilMs = performance.now() + againMs;
  do await measureRound(subjects, slices, cost, () => undefined);
  while (performance.now() < untilMs);
}

function endless(): number {
  return Number.POSITIVE_INFINITY;
}

/** What stands alone leaves its time to those whose ratios get surer by it. */
function isDue(name: string, compared: readonly { of: string; against: string }[], round: number): boolean {
  if (round < ROUNDS_MIN || round % ALONE_EVERY === 0) return true;
  return compared.length === 0 || compared.some(({ of, against }) => of === name || against === name);
}

function measuredOf(name: string, rounds: readonly Round[]): Measured {
  return { name, rounds, medianPerSecond: median(rounds.map(({ ratePerSecond }) => ratePerSecond)) };
}

/** From place `start` on, round the end: being first after a pause, or after the same neighbour, is nobody's lot. */
function rotated<Each>(all: readonly Each[], start: number): readonly Each[] {
  const first = all.length === 0 ? 0 : start % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}

/** The slices of all subjects in turn, each time another one first; what they measured; then whatever has none. */
async function measureRound(
  subjects: readonly Subject[],
  slices: Slices,
  cost: NonNullable<ComparePlan['cost']>,
  begins: (index: number, name?: string) => void,
): Promise<ReadonlyMap<Subject, Round>> {
  const usedMs = new Map<Subject, number>();
  const costing = async <Result>(subject: Subject, act: () => Promise<Result>) => {
    const before = await cost(subject);
    const result = await act();
    const after = await cost(subject);
    const cpuMs = (after?.cpuMs ?? Number.NaN) - (before?.cpuMs ?? Number.NaN);
    usedMs.set(subject, (usedMs.get(subject) ?? 0) + cpuMs);
    return { result, rssBytes: after?.rssBytes };
  };
  const sliced = subjects.flatMap((subject) =>
    subject.slice === undefined ? [] : [{ subject, slice: subject.slice.bind(subject) }],
  );
  if (sliced.length > 0) begins(0);
  const untilMs = performance.now() + slices.enoughMs;
  for (let turn = 0; turn < slices.count && performance.now() < untilMs; turn += 1) {
    for (const { subject, slice } of rotated(sliced, turn)) await costing(subject, slice);
  }
  const rounds = new Map<Subject, Round>();
  // What slices have measured first: the whole round of another subject may be one of the same server.
  const whole = subjects.filter(({ slice }) => slice === undefined);
  for (const [index, subject] of [...sliced.map(({ subject }) => subject), ...whole].entries()) {
    // One round of it takes as long as all slices of another.
    if (subject.slice === undefined) begins(index, subject.name);
    const { result, rssBytes } = await costing(subject, () => subject.round());
    rounds.set(subject, roundOf(result, usedMs.get(subject) ?? Number.NaN, rssBytes));
  }
  return rounds;
}

function roundOf(sample: Sample, wholeMs: number, rssBytes: number | undefined): Round {
  const { cpuMs: measuredMs, answers: measuredAnswers, answersInAll } = sample.details;
  const isMeasured = typeof measuredMs === 'number' && typeof measuredAnswers === 'number';
  const cpuMs = isMeasured ? measuredMs : wholeMs;
  const answers = isMeasured ? measuredAnswers : Number(answersInAll ?? 0);
  return {
    ...sample,
    cpuMs: Number.isNaN(cpuMs) ? undefined : cpuMs,
    cpuUsPerAnswer: answers > 0 && !Number.isNaN(cpuMs) ? (cpuMs * 1_000) / answers : undefined,
    rssBytes,
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

/** Of those with the most: what stands alone has fewer. */
export function roundsOf(subjects: readonly Measured[]): number {
  return Math.max(0, ...subjects.map(({ rounds }) => rounds.length));
}
