/** Histories of several nodes as one: samples of the same step of time together, names summed, percentiles of all. */
import { toIso } from '../../../domain/time.ts';
import { HISTORY_RANGES, type HistoryPart, type HistoryRange } from './history.ts';
import { HISTORY_SERIES, KEPT_SERIES, percentileMs, type SeriesRow } from './series.ts';
import { USED_KINDS, type Used, type UsedKind } from './usage.ts';

/** Digits of a sample that are sent. */
const DIGITS = 4;

export interface UsedName {
  readonly name: string;
  readonly calls: number;
  readonly errors: number;
  /** Milliseconds. */
  readonly p50: number | null;
  readonly p99: number | null;
}

interface MergedHistory {
  readonly stepSeconds: number;
  /** End of the newest step. */
  readonly endUtc: string;
  /** Series by name, the newest sample last; null in gaps. */
  readonly series: Readonly<Record<string, (number | null)[]>>;
  readonly used: Readonly<Record<UsedKind, UsedName[]>>;
}

/** `parts`: of one node at least. */
export function mergeHistory(range: HistoryRange, parts: readonly HistoryPart[]): MergedHistory {
  const { samples: length } = HISTORY_RANGES[range];
  const stepMs = parts[0]?.stepMs ?? 1;
  const newest = Math.max(...parts.map((part) => part.newest));
  const rows = KEPT_SERIES.map((row, at) => {
    const aligned = parts.map((part) => shifted(part.samples[at] ?? [], newest - part.newest, length));
    return Array.from({ length }, (_, step) => joined(row, aligned, step));
  });
  const named = HISTORY_SERIES.map(({ name }, at) => [name, (rows[at] ?? []).map(sent)] as const);
  const classes = rows.slice(HISTORY_SERIES.length);
  const percentiles = (share: number) =>
    Array.from({ length }, (_, step) =>
      sentMs(
        percentileMs(
          classes.map((row) => row[step] || 0),
          share,
        ),
      ),
    );
  return {
    stepSeconds: stepMs / 1000,
    endUtc: toIso((newest + 1) * stepMs),
    series: { ...Object.fromEntries(named), p50: percentiles(0.5), p99: percentiles(0.99) },
    used: mergeUsed(parts.flatMap(({ used }) => used)),
  };
}

/** The samples of a node whose newest step is `behind` steps older than that of another one. */
function shifted(samples: readonly number[], behind: number, length: number): readonly number[] {
  return [...samples, ...Array.from({ length: behind }, () => Number.NaN)].slice(-length);
}

/** NaN where no node has a sample of the step. */
function joined({ nodes }: SeriesRow, all: readonly (readonly number[])[], step: number): number {
  const values = all.map((samples) => samples[step] ?? Number.NaN).filter((value) => !Number.isNaN(value));
  const [first] = values;
  if (first === undefined) return Number.NaN;
  if (nodes === 'one') return first;
  return nodes === 'sum' ? values.reduce((sum, value) => sum + value, 0) : Math.max(...values);
}

function sent(value: number): number | null {
  return Number.isNaN(value) ? null : Number(value.toPrecision(DIGITS));
}

function sentMs(value: number | null): number | null {
  return value === null ? null : sent(value);
}

/** Merges the uses by kind, the most used first. */
export function mergeUsed(all: readonly Used[]): MergedHistory['used'] {
  const sums = new Map<string, { -readonly [Key in keyof Used]: Used[Key] }>();
  for (const { kind, name, calls, errors, latencies } of all) {
    const key = `${kind} ${name}`;
    const before = sums.get(key) ?? { kind, name, calls: 0, errors: 0, latencies: latencies.map(() => 0) };
    sums.set(key, {
      ...before,
      calls: before.calls + calls,
      errors: before.errors + errors,
      latencies: before.latencies.map((count, at) => count + (latencies[at] ?? 0)),
    });
  }
  const ofKind = (wanted: UsedKind) =>
    [...sums.values()]
      .filter(({ kind }) => kind === wanted)
      .sort((a, b) => b.calls - a.calls)
      .map(({ name, calls, errors, latencies }) => ({
        ...{ name, calls, errors },
        p50: sentMs(percentileMs(latencies, 0.5)),
        p99: sentMs(percentileMs(latencies, 0.99)),
      }));
  return Object.fromEntries(USED_KINDS.map((kind) => [kind, ofKind(kind)])) as MergedHistory['used'];
}
