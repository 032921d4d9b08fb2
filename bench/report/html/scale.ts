/** Axes of the charts: where a value lies between 0 and 1, and which values are written beside the axis. */
export interface Tick {
  readonly value: number;
  readonly label: string;
}

export interface Scale {
  /** 0 at the start of the axis, 1 at its end. */
  at(value: number): number;
  readonly ticks: readonly Tick[];
}

const TICKS = 5;

/** From 0 to a round number above the largest. */
export function linear(values: readonly number[]): Scale {
  const largest = Math.max(...values.filter(Number.isFinite), 0) || 1;
  const step = roundStep(largest / TICKS);
  const end = Math.ceil(largest / step - 1e-9) * step;
  const count = Math.round(end / step);
  const ticks = Array.from({ length: count + 1 }, (_, index) => tick(index * step));
  return { at: (value) => value / end, ticks };
}

/** From the first to the last of so many, which are counted. */
export function counted(last: number): Scale {
  const step = Math.max(1, Math.ceil((last - 1) / (TICKS + 2)));
  const marks = Array.from({ length: Math.floor((last - 1) / step) + 1 }, (_, index) => 1 + index * step);
  return { at: (value) => (last > 1 ? (value - 1) / (last - 1) : 0.5), ticks: marks.map(tick) };
}

/** Over whole decades, or over parts of one that hold all values. */
export function logarithmic(values: readonly number[]): Scale {
  const good = values.filter((value) => Number.isFinite(value) && value > 0);
  const least = Math.min(...good, good.length === 0 ? 1 : Number.POSITIVE_INFINITY);
  const most = Math.max(...good, least);
  const marks = [];
  for (let power = Math.floor(Math.log10(least)); power <= Math.ceil(Math.log10(most)); power += 1)
    marks.push(...[1, 2, 5].map((digit) => digit * 10 ** power));
  const low = marks.filter((mark) => mark <= least * 1.0001).at(-1) ?? least;
  const high = marks.find((mark) => mark >= most * 0.9999 && mark > low) ?? low * 10;
  const within = marks.filter((mark) => mark >= low && mark <= high);
  const decades = within.filter((mark) => Number.isInteger(Math.round(Math.log10(mark) * 1e6) / 1e6));
  const shown = within.length > TICKS + 2 && decades.length >= 2 ? decades : within;
  const width = Math.log10(high / low);
  return {
    at: (value) => Math.log10(Math.max(value, low / 10) / low) / width,
    ticks: shown.map(tick),
  };
}

/** Scale of percentiles as HdrHistogram draws it: each nine takes as much room as the one before. */
export function percentiles(): Scale & { readonly last: number } {
  const shown = [0, 50, 90, 99, 99.9, 99.99];
  const last = 99.995;
  const nines = (percentile: number) => -Math.log10(1 - Math.min(percentile, last) / 100);
  return {
    at: (value) => nines(value) / nines(last),
    ticks: shown.map((value) => ({ value, label: `${value}` })),
    last,
  };
}

function tick(value: number): Tick {
  return { value, label: short(value) };
}

/** `12k`, `1.5M`, `0.25`. */
export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${trim(value / 1e9)}G`;
  if (size >= 1e6) return `${trim(value / 1e6)}M`;
  if (size >= 1e4) return `${trim(value / 1e3)}k`;
  return trim(value);
}

function trim(value: number): string {
  return String(Number(value.toPrecision(3)));
}

function roundStep(about: number): number {
  const power = 10 ** Math.floor(Math.log10(about));
  return ([1, 2, 2.5, 5, 10].find((digit) => digit * power >= about * 0.9999) ?? 10) * power;
}
