/** Interleaved measuring (A B A B), so that a busy minute of the machine hits every subject; medians and ratios. */
import { costOf, type ProcessCost } from './children.ts';

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
  round(): Promise<Sample>;
}

export interface Round extends Sample {
  /** Processor time of the subject's processes in this round, all threads; undefined where nobody tells. */
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

/** Over the rounds, each of which compares two neighbours in time. */
export interface Spread {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

export interface Ratio {
  readonly of: string;
  readonly against: string;
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

export interface ComparePlan {
  readonly rounds: number;
  /** No further round begins after it (`performance.now()`), once there are `ROUNDS_MIN`. */
  readonly deadlineMs?: number;
  /** Ratios beside those of the groups. */
  readonly pairs?: readonly { readonly of: string; readonly against: string }[];
  /** What a subject has cost so far; of its processes unless given. */
  readonly cost?: (subject: Subject) => Promise<ProcessCost | undefined>;
  /** Before each round of each subject: how many are over, how many there are. */
  readonly step?: (text: string, done: number, total: number) => void;
}

/** Fewer have no spread. */
const ROUNDS_MIN = 2;

export async function compare(subjects: readonly Subject[], plan: ComparePlan): Promise<Comparison> {
  const { deadlineMs = Number.POSITIVE_INFINITY, cost = costOfProcesses } = plan;
  const rounds: Round[][] = subjects.map(() => []);
  const total = plan.rounds * subjects.length;
  for (let round = 1; round <= plan.rounds; round += 1) {
    const startedMs = performance.now();
    for (const [index, subject] of subjects.entries()) {
      const text = `round ${round} of ${plan.rounds}: ${subject.name}`;
      plan.step?.(text, (round - 1) * subjects.length + index, total);
      rounds[index]?.push(await measureRound(subject, cost));
    }
    const nextEndsMs = 2 * performance.now() - startedMs;
    if (round >= ROUNDS_MIN && nextEndsMs > deadlineMs) break;
  }
  const measured = subjects.map(({ name }, index) => ({
    name,
    rounds: rounds[index] ?? [],
    medianPerSecond: median((rounds[index] ?? []).map(({ ratePerSecond }) => ratePerSecond)),
  }));
  return { subjects: measured, ratios: ratiosOf(subjects, measured, plan.pairs ?? []) };
}

async function measureRound(
  subject: Subject,
  cost: (subject: Subject) => Promise<ProcessCost | undefined>,
): Promise<Round> {
  const before = await cost(subject);
  const sample = await subject.round();
  const after = await cost(subject);
  const cpuMs = before === undefined || after === undefined ? undefined : after.cpuMs - before.cpuMs;
  const answers = Number(sample.details['answersInAll'] ?? 0);
  return {
    ...sample,
    cpuMs,
    cpuUsPerAnswer: cpuMs !== undefined && answers > 0 ? (cpuMs * 1_000) / answers : undefined,
    rssBytes: after?.rssBytes,
  };
}

async function costOfProcesses({ pids }: Subject): Promise<ProcessCost | undefined> {
  const costs = pids.map((pid) => costOf(pid)).filter((cost) => cost !== undefined);
  if (pids.length === 0 || costs.length < pids.length) return undefined;
  return {
    cpuMs: sum(costs.map(({ cpuMs }) => cpuMs)),
    rssBytes: sum(costs.map(({ rssBytes }) => rssBytes)),
  };
}

function ratiosOf(
  subjects: readonly Subject[],
  measured: readonly Measured[],
  pairs: NonNullable<ComparePlan['pairs']>,
): Ratio[] {
  const groups = new Map<string | undefined, Measured[]>();
  for (const [index, each] of measured.entries()) {
    const { group } = subjects[index] ?? {};
    groups.set(group, [...(groups.get(group) ?? []), each]);
  }
  const ratios = [...groups.values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : others.map((other) => ratioOf(first, other)),
  );
  for (const { of, against } of pairs) {
    const one = measured.find(({ name }) => name === of);
    const other = measured.find(({ name }) => name === against);
    const known = ratios.some((ratio) => ratio.of === of && ratio.against === against);
    if (!known && one !== undefined && other !== undefined) ratios.push(ratioOf(one, other));
  }
  return ratios;
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
    rate: spreadOf(ofRounds((mine, theirs) => mine.ratePerSecond / theirs.ratePerSecond)),
    processorTime: times.length === 0 ? undefined : spreadOf(times),
  };
}

export function spreadOf(values: readonly number[]): Spread {
  return { median: median(values), lowest: Math.min(...values), highest: Math.max(...values) };
}

/** Microseconds of all threads of a subject for one answer, the median of its rounds. */
export function processorTimeOf({ rounds }: Measured): number | undefined {
  const times = rounds.map(({ cpuUsPerAnswer }) => cpuUsPerAnswer).filter((time) => time !== undefined);
  return times.length === 0 ? undefined : median(times);
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
