/** Charts as SVG without a script: lines over two axes, and ratios with their interval and what they must reach. */
import { escapeHtml } from './escape.ts';
import { logarithmic, type Scale, short } from './scale.ts';

export interface ChartLine {
  readonly label: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface LineChart {
  readonly title: string;
  readonly x: { readonly label: string; readonly scale: Scale };
  readonly y: { readonly label: string; readonly scale: Scale };
  readonly lines: readonly ChartLine[];
}

/** Colours of `style.ts`; dashes tell the lines apart without them. */
const COLOURS = 8;
const DASHES = ['', '7 3', '2 3', '9 3 2 3', '12 4', '4 2', '1 2', '8 2 2 2 2 2'];
const WIDTH = 460;
const HEIGHT = 250;
const MARGIN = { left: 52, right: 20, top: 10, bottom: 40 };
const PLOT = { width: WIDTH - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };

export function lineChart({ title, x, y, lines }: LineChart): string {
  const px = (value: number) => round(MARGIN.left + clamp(x.scale.at(value)) * PLOT.width);
  const py = (value: number) => round(MARGIN.top + (1 - clamp(y.scale.at(value))) * PLOT.height);
  const drawn = lines.map(({ label, points }, index) => {
    const path = points.map(([at, value]) => `${px(at)},${py(value)}`).join(' ');
    const dots = points.map(
      ([at, value]) =>
        `<circle class="c${index % COLOURS} dot" cx="${px(at)}" cy="${py(value)}" r="2.6"><title>${escapeHtml(`${label}: ${short(at)}, ${short(value)}`)}</title></circle>`,
    );
    const dash = dashOf(index);
    return `<polyline class="c${index % COLOURS} line" points="${path}"${dash === '' ? '' : ` stroke-dasharray="${dash}"`}/>${dots.join('')}`;
  });
  const bottom = MARGIN.top + PLOT.height;
  const grid = [
    ...y.scale.ticks.map(
      ({ value, label }) =>
        `<line class="grid" x1="${MARGIN.left}" x2="${WIDTH - MARGIN.right}" y1="${py(value)}" y2="${py(value)}"/><text class="tick" x="${MARGIN.left - 6}" y="${py(value) + 4}" text-anchor="end">${label}</text>`,
    ),
    ...x.scale.ticks.map(
      ({ value, label }) =>
        `<line class="grid" x1="${px(value)}" x2="${px(value)}" y1="${MARGIN.top}" y2="${bottom}"/><text class="tick" x="${px(value)}" y="${bottom + 16}" text-anchor="middle">${label}</text>`,
    ),
  ];
  const axis = `<text class="axis" x="${MARGIN.left + PLOT.width / 2}" y="${HEIGHT - 4}" text-anchor="middle">${escapeHtml(x.label)}</text>`;
  const legend = lines.map(({ label }, index) => key(label, index));
  const svg = frame(title, HEIGHT, `${grid.join('')}${axis}${drawn.join('')}`);
  return `<figure><figcaption>${escapeHtml(title)} <span class="unit">${escapeHtml(y.label)}</span></figcaption>${svg}<ul class="legend">${legend.join('')}</ul></figure>`;
}

/** Another one where colours begin anew. */
function dashOf(index: number): string {
  return DASHES[(index + 3 * Math.floor(index / COLOURS)) % DASHES.length] ?? '';
}

function key(label: string, index: number): string {
  const dash = dashOf(index);
  const line = `<line class="c${index % COLOURS} line" x1="0" x2="26" y1="6" y2="6"${dash === '' ? '' : ` stroke-dasharray="${dash}"`}/>`;
  return `<li><svg width="26" height="12" viewBox="0 0 26 12" aria-hidden="true">${line}</svg>${escapeHtml(label)}</li>`;
}

export interface RatioRow {
  readonly of: string;
  readonly against: string;
  readonly bars: readonly RatioBar[];
}

export interface RatioBar {
  /** Style of the bar. */
  readonly by: 'rate' | 'time';
  readonly median: number;
  readonly from: number;
  readonly to: number;
  readonly wanted?: number;
}

/** Longer labels take two lines. */
const LABEL_LENGTH = 58;
const LINE = 16;
const BAR = 18;
const RATIO_TOP = 8;
const RATIO_BOTTOM = 36;
const SIDE = 16;

/** A label and a line a way of measuring, on a logarithmic axis: the interval, the median, and the target as a mark. */
export function ratioChart(title: string, rows: readonly RatioRow[]): string {
  const all = rows.flatMap(({ bars }) => bars);
  const scale = logarithmic([
    1,
    ...all.flatMap(({ from, to, median, wanted }) => [from, to, median, wanted ?? 1]),
  ]);
  const px = (value: number) => round(SIDE + clamp(scale.at(value)) * (WIDTH - 2 * SIDE));
  let top = RATIO_TOP;
  const drawn = rows.map((row) => {
    const lines = labelOf(row);
    const text = lines.map(
      (line, index) =>
        `<text class="row" x="10" y="${top + (index + 1) * LINE - 3}">${escapeHtml(line)}</text>`,
    );
    const from = top + lines.length * LINE;
    top = from + row.bars.length * BAR + 4;
    return `${text.join('')}${row.bars.map((bar, index) => ratioBar(row, bar, from + (index + 0.5) * BAR, px)).join('')}`;
  });
  const grid = scale.ticks.map(
    ({ value, label }) =>
      `<line class="${value === 1 ? 'one' : 'grid'}" x1="${px(value)}" x2="${px(value)}" y1="${RATIO_TOP}" y2="${top}"/><text class="tick" x="${px(value)}" y="${top + 16}" text-anchor="middle">${label}</text>`,
  );
  const height = top + RATIO_BOTTOM;
  const axis = `<text class="axis" x="${WIDTH / 2}" y="${height - 4}" text-anchor="middle">ratio, logarithmic</text>`;
  const svg = frame(title, height, `${grid.join('')}${drawn.join('')}${axis}`);
  const legend = [
    ratioKey('rate', 'median and its 95 % interval, by rate'),
    ratioKey('time', 'by processor time'),
    '<li><svg width="12" height="14" viewBox="0 0 12 14" aria-hidden="true"><line class="goal" x1="6" x2="6" y1="0" y2="14"/></svg>target</li>',
  ];
  return `<figure><figcaption>${escapeHtml(title)}</figcaption>${svg}<ul class="legend">${legend.join('')}</ul></figure>`;
}

function labelOf({ of, against }: RatioRow): string[] {
  const whole = `${of} / ${against}`;
  return whole.length <= LABEL_LENGTH ? [whole] : [`${of} /`, against];
}

function ratioBar(
  { of, against }: RatioRow,
  { by, median, from, to, wanted }: RatioBar,
  y: number,
  px: (value: number) => number,
): string {
  const words = `${of} / ${against}, by ${by === 'rate' ? 'rate' : 'processor time'}: ${median.toFixed(3)}`;
  const goal =
    wanted === undefined
      ? ''
      : `<line class="goal" x1="${px(wanted)}" x2="${px(wanted)}" y1="${y - 8}" y2="${y + 8}"><title>target ${wanted}</title></line>`;
  return `<line class="${by}" x1="${px(from)}" x2="${px(to)}" y1="${y}" y2="${y}"/>${goal}<circle class="${by}" cx="${px(median)}" cy="${y}" r="5"><title>${escapeHtml(words)}</title></circle>`;
}

function ratioKey(by: RatioBar['by'], label: string): string {
  return `<li><svg width="26" height="12" viewBox="0 0 26 12" aria-hidden="true"><line class="${by}" x1="0" x2="26" y1="6" y2="6"/><circle class="${by}" cx="13" cy="6" r="4"/></svg>${label}</li>`;
}

function frame(title: string, height: number, content: string): string {
  return `<svg role="img" aria-label="${escapeHtml(title)}; the figures are in the table" viewBox="0 0 ${WIDTH} ${height}">${content}</svg>`;
}

function clamp(share: number): number {
  return Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
