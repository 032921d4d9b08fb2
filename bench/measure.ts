/** Interleaved measuring (A B A B), so that a busy minute of the machine hits every subject; medians and ratios. */
import { costOf } from './children.ts';

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
  round(): Promise<Sample>;
}

export interface Round extends Sample {
  /** Processor time of the subject's processes in this round, per answer; undefined where there is no /proc. */
  readonly cpuUsPerAnswer: number | undefined;
  readonly rssBytes: number | undefined;
}

export interface Measured {
  readonly name: string;
  readonly medianPerSecond: number;
  readonly rounds: readonly Round[];
}

/** The first subject against another one. */
export interface Ratio {
  readonly against: string;
  /** Of the ratios of the rounds: each compares two neighbours in time. */
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
  /**
   * The other's processor time for one answer over the first one's, medians. Work of others on the machine moves it
   * little, where it can halve the rates. Undefined where there is no /proc.
   */
  readonly byProcessorTime: number | undefined;
}

export interface Comparison {
  readonly subjects: readonly Measured[];
  readonly ratios: readonly Ratio[];
}

export type Announce = (text: string) => void;

export async function compare(
  subjects: readonly Subject[],
  roundCount: number,
  announce: Announce,
): Promise<Comparison> {
  const rounds: Round[][] = subjects.map(() => []);
  for (let round = 1; round <= roundCount; round += 1) {
    for (const [index, subject] of subjects.entries()) {
      announce(`round ${round} of ${roundCount}: ${subject.name}`);
      rounds[index]?.push(await measureRound(subject));
    }
  }
  const measured = subjects.map(({ name }, index) => ({
    name,
    rounds: rounds[index] ?? [],
    medianPerSecond: median((rounds[index] ?? []).map(({ ratePerSecond }) => ratePerSecond)),
  }));
  const [first, ...others] = measured;
  return {
    subjects: measured,
    ratios: first === undefined ? [] : others.map((other) => ratioOf(first, other)),
  };
}

async function measureRound(subject: Subject): Promise<Round> {
  const before = subject.pids.map((pid) => costOf(pid));
  const sample = await subject.round();
  const after = subject.pids.map((pid) => costOf(pid));
  const known = after.length > 0 && after.every((cost, index) => cost !== undefined && before[index]);
  const cpuMs = sum(after.map((cost, index) => (cost?.cpuMs ?? 0) - (before[index]?.cpuMs ?? 0)));
  const answers = Number(sample.details['answersInAll'] ?? 0);
  return {
    ...sample,
    cpuUsPerAnswer: known && answers > 0 ? (cpuMs * 1_000) / answers : undefined,
    rssBytes: known ? sum(after.map((cost) => cost?.rssBytes ?? 0)) : undefined,
  };
}

function ratioOf(first: Measured, other: Measured): Ratio {
  const ratios = first.rounds.map(
    (round, index) => round.ratePerSecond / (other.rounds[index]?.ratePerSecond ?? Number.NaN),
  );
  return {
    against: other.name,
    median: median(ratios),
    lowest: Math.min(...ratios),
    highest: Math.max(...ratios),
    byProcessorTime: quotient(other, first),
  };
}

function quotient(above: Measured, below: Measured): number | undefined {
  const upper = processorTimeOf(above);
  const lower = processorTimeOf(below);
  return upper === undefined || lower === undefined ? undefined : upper / lower;
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
