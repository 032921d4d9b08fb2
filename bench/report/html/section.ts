/** One scenario of the page: what ran, its tables, and the charts that the figures allow. */
import type { Measured, Ratio } from '../../measure/measure.ts';
import type { Series } from '../../scenario.ts';
import { latencyOf, loadOf, type ScenarioReport } from '../report.ts';
import type { Judged } from '../targets.ts';
import {
  figureCells,
  howOf,
  number,
  participantCells,
  ratioCells,
  subjectCells,
  targetCells,
} from '../wording.ts';
import { type ChartLine, lineChart, type RatioBar, type RatioRow, ratioChart } from './chart.ts';
import { escapeHtml } from './escape.ts';
import { chip, list, tableOf } from './parts.ts';
import { counted, linear, logarithmic, percentiles } from './scale.ts';

export function sectionOf(scenario: ScenarioReport): string {
  const { name, summary, failure, targets, ratios, figures, participants, warnings, notes, series } =
    scenario;
  const charts = [latencyChart(scenario), throughputChart(scenario), ratiosChart(ratios, targets)];
  return [
    `<section id="${escapeHtml(name)}" aria-labelledby="${escapeHtml(name)}-title">`,
    `<h2 id="${escapeHtml(name)}-title">${escapeHtml(name)}</h2>`,
    `<p>${escapeHtml(summary)}</p><p class="soft">${escapeHtml(howOf(scenario))}</p>`,
    failure === undefined ? '' : `<p class="failure"><strong>Failed.</strong> ${escapeHtml(failure)}</p>`,
    list('warnings', warnings),
    tableOf(`${name}: figures`, subjectCells(scenario), { figures: true }),
    targetsTable(name, targets),
    `<div class="charts">${charts.join('')}${series.map(seriesChart).join('')}</div>`,
    tableOf(`${name}: ratios`, ratioCells(ratios), { figures: true }),
    tableOf(`${name}: further figures`, figureCells(figures), { figures: true }),
    ...series.map((each) => seriesTable(name, each)),
    spectrumTable(scenario),
    participants.length === 0 ? '' : '<h3>Measured beside</h3>',
    tableOf(`${name}: floors and peers`, participantCells(participants)),
    list('notes', notes),
    '</section>',
  ].join('\n');
}

/** Also of the whole page, where each row names its scenario. */
export function targetsTable(label: string, targets: readonly Judged[], names?: readonly string[]): string {
  const { headings, rows } = targetCells(targets);
  const cells = rows.map((row, index) => {
    const judged = targets[index];
    const [first = '', ...others] = row.slice(0, -1);
    const name = names?.[index];
    const link =
      name === undefined ? escapeHtml(first) : `<a href="#${escapeHtml(name)}">${escapeHtml(first)}</a>`;
    return [link, ...others, judged === undefined ? '' : chip(judged)];
  });
  return tableOf(`${label}: targets`, { headings, rows: cells }, { markup: [0, headings.length - 1] });
}

function latencyChart({ subjects }: ScenarioReport): string {
  const scale = percentiles();
  const lines = withSpectrum(subjects).map(
    ({ label, points }): ChartLine => ({
      label,
      points: points.map(([percentile, us]) => [Math.min(percentile, scale.last), us / 1_000]),
    }),
  );
  if (lines.length === 0) return '';
  const values = lines.flatMap(({ points }) => points.map(([, value]) => value));
  return lineChart({
    title: 'Latency by percentile',
    x: { label: 'percentile (the last point is the maximum)', scale },
    y: { label: 'ms, logarithmic', scale: logarithmic(values) },
    lines,
  });
}

/** Medians of the rounds; subjects without answers or without latencies have none. */
function withSpectrum(subjects: readonly Measured[]): ChartLine[] {
  return subjects.flatMap(({ name, rounds }) => {
    const points = latencyOf(rounds)?.spectrum ?? [];
    return points.length === 0 ? [] : [{ label: name, points }];
  });
}

function spectrumTable({ name, subjects }: ScenarioReport): string {
  const lines = withSpectrum(subjects);
  if (lines.length === 0) return '';
  const headings = [
    'latency, ms',
    ...(lines[0]?.points.map(([percentile]) => (percentile === 100 ? 'max' : `p${percentile}`)) ?? []),
  ];
  const rows = lines.map(({ label, points }) => [label, ...points.map(([, us]) => number(us / 1_000))]);
  return `<details><summary>Latencies, medians of the rounds</summary>${tableOf(`${name}: latencies`, { headings, rows }, { figures: true })}</details>`;
}

/** Seconds of all rounds one after the other; rounds that have no seconds show their rate. */
function throughputChart({ subjects, unit }: ScenarioReport): string {
  const seconds = subjects.map(({ rounds }) => rounds.flatMap((round) => loadOf(round)?.perSecond ?? []));
  const bySecond = seconds.some((values) => values.length > subjects.length);
  const lines = subjects.map(({ name, rounds }, index): ChartLine => {
    const values = bySecond ? (seconds[index] ?? []) : rounds.map(({ ratePerSecond }) => ratePerSecond);
    return { label: name, points: values.map((value, at) => [at + 1, value]) };
  });
  const points = lines.flatMap((line) => line.points);
  if (points.length === 0) return '';
  const rates = points.map(([, value]) => value);
  // Subjects that are far apart would leave the slower ones on the floor.
  const far = Math.max(...rates) > 50 * Math.min(...rates.filter((value) => value > 0));
  return lineChart({
    title: 'Throughput over time',
    x: {
      label: bySecond ? 'measured second, all rounds in a row' : 'round',
      scale: counted(Math.max(...points.map(([at]) => at))),
    },
    y: {
      label: `${unit} a second${far ? ', logarithmic' : ''}`,
      scale: far ? logarithmic(rates) : linear(rates),
    },
    lines,
  });
}

function ratiosChart(ratios: readonly Ratio[], targets: readonly Judged[]): string {
  const rows = ratios.map(({ of, against, rate, processorTime }): RatioRow => {
    const wanted = (by: string) => {
      const same = targets.find(({ what, by: how }) => what === `${of} / ${against}` && how === by);
      const goal = same?.wanted.atLeast ?? same?.wanted.reaches;
      return goal === undefined ? {} : { wanted: goal };
    };
    const byTime =
      processorTime === undefined
        ? []
        : [{ by: 'time' as const, ...processorTime, ...wanted('processor time') }];
    const bars: RatioBar[] = [{ by: 'rate', ...rate, ...wanted('rate') }, ...byTime];
    return { of, against, bars: bars.filter(({ median }) => Number.isFinite(median) && median > 0) };
  });
  const drawn = rows.filter(({ bars }) => bars.length > 0);
  return drawn.length === 0 ? '' : ratioChart('Ratios', drawn);
}

function seriesChart({ title, x, y, lines }: Series): string {
  const values = (axis: 0 | 1) => lines.flatMap(({ points }) => points.map((point) => point[axis]));
  return lineChart({
    title,
    x: {
      label: `${x.label}${x.log === true ? ', logarithmic' : ''}`,
      scale: x.log === true ? logarithmic(values(0)) : linear(values(0)),
    },
    y: {
      label: `${y.label}${y.log === true ? ', logarithmic' : ''}`,
      scale: y.log === true ? logarithmic(values(1)) : linear(values(1)),
    },
    lines,
  });
}

function seriesTable(name: string, { title, x, y, lines }: Series): string {
  const at = [...new Set(lines.flatMap(({ points }) => points.map((point) => point[0])))].sort(
    (a, b) => a - b,
  );
  const rows = lines.map(({ label, points }) => [
    label,
    ...at.map((each) => {
      const point = points.find(([value]) => value === each);
      return point === undefined ? '' : number(point[1]);
    }),
  ]);
  const headings = [`${y.label} by ${x.label}`, ...at.map((value) => value.toLocaleString('en'))];
  return `<details><summary>${escapeHtml(title)}: the figures</summary>${tableOf(`${name}: ${title}`, { headings, rows }, { figures: true })}</details>`;
}
