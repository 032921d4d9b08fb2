/**
 * Calls, errors and times of each tool, module and route over the ranges of the history. A mark of all counters is kept at each
 * step of a range; what was used since is the difference to the oldest mark. All marks of a name are one typed array.
 */
import { callName, type ObservedSeries, requestName } from '../../observability/metrics.ts';
import { LATENCY_CLASSES } from './series.ts';

/** Names with counts of their own. Later ones are counted together. */
export const USED_NAMES_MAX = 512;
export const OTHER_NAMES = 'others';
/** `module`: through the proxy. */
export const USED_KINDS = ['tool', 'module', 'route'] as const;
export type UsedKind = (typeof USED_KINDS)[number];

/** Calls, errors, and calls by class of latency. */
const WIDTH = 2 + LATENCY_CLASSES;

/** Kinds of the events that are counted by name. */
const CALL_KINDS: Readonly<Record<string, UsedKind>> = { 'mcp.tool': 'tool', 'rest.call': 'module' };

/** Steps of each range. A difference is of one step more at most. */
const MARKS = [
  { range: '5m', stepMs: 30_000, steps: 10 },
  { range: '1h', stepMs: 300_000, steps: 12 },
  { range: '24h', stepMs: 3_600_000, steps: 24 },
] as const;
type Marked = (typeof MARKS)[number]['range'];

/** Plain data: it travels between nodes. */
export interface Used {
  readonly kind: UsedKind;
  readonly name: string;
  readonly calls: number;
  readonly errors: number;
  readonly latencies: readonly number[];
}

interface Entry {
  readonly kind: UsedKind;
  readonly name: string;
  /** Counters now. They wrap at 2^32, and differences stay right. */
  readonly now: Uint32Array;
  readonly marks: Uint32Array;
}

/** Position of a range's marks in an entry, and the step of each; -1 without one. */
interface Ring {
  readonly range: Marked;
  readonly stepMs: number;
  readonly columns: number;
  readonly offset: number;
  readonly taken: Float64Array;
}

export class UsageMarks {
  readonly #series: ObservedSeries;
  readonly #entries = new Map<string, Entry>();
  readonly #rings: readonly Ring[];
  readonly #marksWidth: number;

  constructor(series: ObservedSeries) {
    this.#series = series;
    let offset = 0;
    this.#rings = MARKS.map(({ range, stepMs, steps }) => {
      const columns = steps + 1;
      const ring = { range, stepMs, columns, offset, taken: new Float64Array(columns).fill(-1) };
      offset += columns * WIDTH;
      return ring;
    });
    this.#marksWidth = offset;
  }

  get sizeBytes(): number {
    return this.#entries.size * (this.#marksWidth + WIDTH) * Uint32Array.BYTES_PER_ELEMENT;
  }

  /** Marks the steps that have begun since the last call. */
  look(nowMs: number): void {
    const begun = this.#rings.filter(({ stepMs, columns, taken }) => {
      const step = Math.floor(nowMs / stepMs);
      return taken[step % columns] !== step;
    });
    if (begun.length === 0) return;
    this.#count();
    for (const { stepMs, columns, offset, taken } of begun) {
      const step = Math.floor(nowMs / stepMs);
      const column = step % columns;
      taken[column] = step;
      for (const { now, marks } of this.#entries.values()) marks.set(now, offset + column * WIDTH);
    }
  }

  /** Names that were used over the range, or since the start where that is later. */
  read(range: Marked, nowMs: number, sinceMs: number): Used[] {
    this.#count();
    const ring = this.#rings.find((each) => each.range === range);
    const from = ring === undefined ? undefined : oldestMark(ring, nowMs, sinceMs);
    return [...this.#entries.values()].flatMap(({ kind, name, now, marks }) => {
      const grown = Array.from(
        now,
        (value, at) => (value - (from === undefined ? 0 : (marks[from + at] ?? 0))) >>> 0,
      );
      const [calls = 0, errors = 0, ...latencies] = grown;
      return calls === 0 ? [] : [{ kind, name, calls, errors, latencies }];
    });
  }

  #count(): void {
    const { requests, requestTimes, calls, callTimes } = this.#series;
    for (const { now } of this.#entries.values()) now.fill(0);
    for (const { method, route, status, requests: counter } of requests)
      this.#add('route', requestName(method, route), counter.value, isFailure(status) ? counter.value : 0);
    const timed = new Set<string>();
    for (const { event, name, outcome, calls: counter } of calls) {
      const kind = CALL_KINDS[event];
      if (kind === undefined || name === '') continue;
      this.#add(kind, name, counter.value, outcome === 'ok' ? 0 : counter.value);
      const times = callTimes.get(callName(event, name));
      if (times === undefined || timed.has(`${kind} ${name}`)) continue;
      timed.add(`${kind} ${name}`);
      addClasses(this.#entry(kind, name), times.classes);
    }
    for (const [name, { classes }] of requestTimes) addClasses(this.#entry('route', name), classes);
  }

  #add(kind: UsedKind, name: string, calls: number, errors: number): void {
    const { now } = this.#entry(kind, name);
    now[0] = (now[0] as number) + calls;
    now[1] = (now[1] as number) + errors;
  }

  #entry(kind: UsedKind, name: string): Entry {
    const key = `${kind} ${name}`;
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const isOther = name === OTHER_NAMES;
    if (!isOther && this.#entries.size >= USED_NAMES_MAX) return this.#entry(kind, OTHER_NAMES);
    const entry = { kind, name, now: new Uint32Array(WIDTH), marks: new Uint32Array(this.#marksWidth) };
    this.#entries.set(key, entry);
    return entry;
  }
}

/** Answers that the gateway or a module failed to give. */
export function isFailure(status: number): boolean {
  return status >= 500 || status === 0;
}

function addClasses({ now }: Entry, classes: Readonly<Float64Array>): void {
  for (const [at, count] of classes.entries()) now[2 + at] = (now[2 + at] as number) + count;
}

/** Undefined: the process began within the range, so that all is of it. */
function oldestMark(ring: Ring, nowMs: number, sinceMs: number): number | undefined {
  const { stepMs, columns, offset, taken } = ring;
  const first = Math.floor(nowMs / stepMs) - columns + 1;
  if (sinceMs >= first * stepMs) return undefined;
  for (let step = first; step < first + columns; step += 1)
    if (taken[step % columns] === step) return offset + (step % columns) * WIDTH;
  return undefined;
}
