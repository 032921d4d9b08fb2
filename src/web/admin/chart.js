/** A chart of the overview: lines over a range, a crosshair that all charts share, and a legend with the values there. */
import { html, useEffect, useRef, useState } from '../vendor/preact.js';

/** Charts with this key move their crosshairs together. */
const SHARED = 'overview';
const HEIGHT = 150;

/** Colors are design tokens of the page, so that charts follow light and dark mode; an element resolves `light-dark()`. */
function token(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const EXACT = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
export const clockText = (seconds) => CLOCK.format(seconds * 1000);

const round = (value) =>
  value === null || value === undefined ? '–' : value >= 100 ? Math.round(value) : Number(value.toFixed(1));

/**
 * `times`: seconds since 1970. `lines`: the values of each line at them, null in gaps. `now`: what the legend says without
 * a crosshair. `seconds`: the length of the range.
 */
export function Chart({ title, series, times, lines, now, seconds }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [at, setAt] = useState(null);
  const data = [times, ...lines];
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      plot.current = new window.uPlot(
        optionsOf({ series, seconds, width: box.current.clientWidth, onMove: setAt }),
        latest.current,
        box.current,
      );
    };
    draw();
    const size = new ResizeObserver(() =>
      plot.current?.setSize({ width: box.current.clientWidth, height: HEIGHT }),
    );
    size.observe(box.current);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', draw);
    return () => {
      size.disconnect();
      scheme.removeEventListener('change', draw);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [seconds]);
  useEffect(() => {
    plot.current?.setData(latest.current);
  }, [times]);
  const step = (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === 'Escape') moveCrosshair(plot.current, times, -1);
    if (by === undefined || times.length === 0) return;
    event.preventDefault();
    const from = at ?? (by < 0 ? times.length : -1);
    moveCrosshair(plot.current, times, Math.min(times.length - 1, Math.max(0, from + by)));
  };
  const isThere = at !== null && at < times.length;
  const values = isThere ? lines.map((line) => line[at]) : now;
  const texts = (of) => series.map(({ label }, line) => `${label} ${round(of[line])}`);
  return html`<figure class="card"><figcaption class="row"><strong>${title}</strong><span class="soft small"><${Legend} series=${series} texts=${texts(values)} /></span>${isThere && html`<time class="soft small push">${EXACT.format(times[at] * 1000)}</time>`}</figcaption>
    <div class="chart" ref=${box} role="img" tabindex="0" aria-label=${`${title}: ${texts(now).join(', ')}`} onKeyDown=${step} onBlur=${() => moveCrosshair(plot.current, times, -1)}></div></figure>`;
}

/** By keyboard as by pointer; -1 takes it away. */
function moveCrosshair(plot, times, at) {
  if (plot === null) return;
  plot.setCursor({ left: at < 0 ? -10 : plot.valToPos(times[at], 'x'), top: at < 0 ? -10 : 1 });
}

function optionsOf({ series, seconds, width, onMove }) {
  const axis = {
    stroke: token('--soft'),
    grid: { stroke: token('--line'), width: 1 },
    ticks: { show: false },
    font: '12px system-ui',
  };
  return {
    width,
    height: HEIGHT,
    cursor: {
      sync: { key: SHARED, setSeries: false },
      drag: { x: false, y: false },
      y: false,
      points: { size: 6 },
    },
    legend: { show: false },
    hooks: { setCursor: [({ cursor }) => onMove(cursor.left >= 0 ? (cursor.idx ?? null) : null)] },
    scales: {
      x: { range: (_plot, _low, high) => [(high ?? 0) - seconds, high ?? 0] },
      y: { range: (_plot, _low, high) => [0, Math.max(1, (high ?? 0) * 1.1)] },
    },
    axes: [
      { ...axis, size: 24, space: 90, values: (_plot, ticks) => ticks.map(clockText) },
      { ...axis, size: 46 },
    ],
    series: [
      {},
      ...series.map(({ label, color = '--c1' }) => ({
        label,
        stroke: token(color),
        width: 1.5,
        points: { show: false },
      })),
    ],
  };
}

/** Each line of a chart with its color and its value. */
function Legend({ series, texts }) {
  return texts.map(
    (text, line) =>
      html`${line > 0 && ', '}<span class="nowrap">${series.length > 1 && html`<i class="key" style=${{ background: `var(${series[line].color ?? '--c1'})` }}></i>`}${text}</span>`,
  );
}
