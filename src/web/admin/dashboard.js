/** The live dashboard: one sample every two seconds, small charts of the last five minutes. */
import { sizeText, Table, Time } from '../shared/ui.js';
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { moveTo } from './address.js';
import { CHARTS, read, TILES } from './charts.js';
import { MissingNodes } from './cluster.js';

const KEPT = 150;
const SHOWN_SECONDS = 300;

/** Stands for the names of all nodes. */
const ALL = '*';

/**
 * Samples as they arrive, the newest last. `node`: whose; '' without a cluster. `isLost`: the stream broke and is being
 * opened again. `missing`: names of nodes that did not answer.
 */
function useSamples(node) {
  const [samples, setSamples] = useState([]);
  const [isLost, setLost] = useState(false);
  const [missing, setMissing] = useState([]);
  useEffect(() => {
    const query = node === '' ? '' : `?node=${encodeURIComponent(node)}`;
    const source = new EventSource(`/ProxyAdmin/api/live${query}`);
    source.addEventListener('look', ({ data }) => {
      const sample = JSON.parse(data);
      setLost(false);
      setMissing(sample.missing);
      setSamples((kept) =>
        [...kept, { ...sample, shown: shownOf(sample, comparable(sample, kept.at(-1))) }].slice(-KEPT),
      );
    });
    source.addEventListener('missing', ({ data }) => {
      setLost(false);
      setMissing(JSON.parse(data).missing);
    });
    source.onerror = () => setLost(true);
    return () => source.close();
  }, [node]);
  return { samples, isLost, missing };
}

/** The sample before; null where it is of other nodes, so that nothing has grown since. */
const comparable = (sample, before) =>
  before !== undefined && before.nodes.join() !== sample.nodes.join() ? null : before;

/** Values of each tile and of each line of a chart in a sample. */
const shownOf = (sample, before) => ({
  tiles: TILES.map((tile) => read(tile, sample, before)),
  charts: CHARTS.map(({ series }) => series.map((each) => read(each, sample, before))),
});

export function DashboardPage({ info, nodes, query }) {
  const node = nodes.length === 0 ? '' : (query.get('node') ?? ALL);
  const { samples, isLost, missing } = useSamples(node);
  const last = samples.at(-1);
  return html`${nodes.length > 0 && html`<${Choice} nodes=${nodes} node=${node} />`}<${MissingNodes} names=${missing} of="figures from there are" />${isLost && html`<div class="note warn" role="status"><p>The connection to the gateway broke. Trying again …</p></div>`}
    ${
      last === undefined
        ? html`<p class="busy" role="status">Waiting for the first sample …</p>`
        : html`<${Tiles} sample=${last} />
          <div class="charts">${CHARTS.map(({ title, series, feature }, at) => (feature === undefined || info.features.includes(feature)) && html`<${Chart} key=${title} title=${title} samples=${samples} at=${at} series=${series} />`)}</div>
          <div class="grid">
            <${Busiest} title="Busiest routes" rows=${last.routes} sample=${last} />
            <${Busiest} title="Busiest tools" rows=${last.tools} sample=${last} />
          </div>
          <${Metrics} sample=${last} />`
    }`;
}

/** Whose figures are shown. */
function Choice({ nodes, node }) {
  const names = nodes.filter(({ name, state }) => state !== 'out' || name === node).map(({ name }) => name);
  return html`<div class="filter"><label for="node">Figures of</label><select id="node" value=${node} onChange=${(event) => moveTo({ node: event.currentTarget.value === ALL ? '' : event.currentTarget.value })}>
    <option value=${ALL}>all nodes together</option>
    ${names.map((name) => html`<option key=${name} value=${name}>node ${name}</option>`)}
  </select></div>`;
}

function Tiles({ sample }) {
  const tiles = TILES.map((tile, at) => ({
    title: tile.title,
    value: tileText(tile, sample.shown.tiles[at]),
  }));
  return html`<p class="soft small">Sampled <${Time} of=${new Date(sample.utcMs).toISOString()} />, over <span data-seconds=${sample.seconds}>${sample.seconds.toFixed(1)} s</span></p>
    <div class="figures">${tiles.map(({ title, value }) => html`<div key=${title}><div class="soft small">${title}</div><div class="figure">${value}</div></div>`)}</div>`;
}

function tileText({ digits, unit }, value) {
  if (value === null || value === undefined) return '–';
  if (unit === 'bytes') return sizeText(value);
  return unit === undefined ? value.toFixed(digits) : `${value.toFixed(digits)} ${unit}`;
}

/** Colors are design tokens of the page, so that charts follow light and dark mode; an element resolves `light-dark()`. */
function token(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function Chart({ title, samples, at, series }) {
  const box = useRef(null);
  const plot = useRef(null);
  const latest = useRef(samples);
  latest.current = samples;
  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      const axis = {
        stroke: token('--soft'),
        grid: { stroke: token('--line'), width: 1 },
        ticks: { show: false },
        font: '12px system-ui',
      };
      plot.current = new window.uPlot(
        {
          width: box.current.clientWidth,
          height: 150,
          cursor: { show: false },
          legend: { show: false },
          scales: {
            x: { range: (_plot, _low, high) => [(high ?? 0) - SHOWN_SECONDS, high ?? 0] },
            y: { range: (_plot, _low, high) => [0, Math.max(1, (high ?? 0) * 1.1)] },
          },
          axes: [
            { ...axis, size: 24, space: 90, values: (_plot, ticks) => ticks.map(clockText) },
            { ...axis, size: 46 },
          ],
          series: [
            {},
            ...series.map(({ label, color = '--accent' }) => ({
              label,
              stroke: token(color),
              width: 2,
            })),
          ],
        },
        dataOf(latest.current, at, series),
        box.current,
      );
    };
    draw();
    const size = new ResizeObserver(() =>
      plot.current?.setSize({ width: box.current.clientWidth, height: 150 }),
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
  }, []);
  useEffect(() => {
    plot.current?.setData(dataOf(samples, at, series));
  }, [samples]);
  const last = samples.at(-1).shown.charts[at];
  const texts = series.map(({ label }, line) => `${label} ${round(last[line])}`);
  const now = texts.join(', ');
  return html`<figure class="card"><figcaption class="row"><strong>${title}</strong><span class="soft small"><${Legend} series=${series} texts=${texts} /></span></figcaption><div class="chart" ref=${box} role="img" aria-label=${`${title}: ${now}`}></div></figure>`;
}

/** Each line of a chart with its color and its last value. */
function Legend({ series, texts }) {
  return texts.map(
    (text, line) =>
      html`${line > 0 && ', '}<span class="nowrap">${series.length > 1 && html`<i class="key" style=${{ background: `var(${series[line].color ?? '--accent'})` }}></i>`}${text}</span>`,
  );
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const clockText = (seconds) => CLOCK.format(seconds * 1000);
const round = (value) =>
  value === null || value === undefined ? '–' : value >= 100 ? Math.round(value) : Number(value.toFixed(1));

function dataOf(samples, at, series) {
  return [
    samples.map(({ utcMs }) => utcMs / 1000),
    ...series.map((_, line) => samples.map(({ shown }) => shown.charts[at][line])),
  ];
}

function Busiest({ title, rows, sample }) {
  return html`<section class="card"><header><h2>${title}</h2></header>
    ${
      rows.length === 0
        ? html`<p class="soft">Nothing in the last two seconds.</p>`
        : html`<${Table} fits caption=${title} rows=${rows} keyOf=${({ name }) => name} columns=${[
            { title: 'Name', cell: ({ name }) => html`<span class="mono wraps">${name}</span>` },
            { title: 'Per second', number: true, cell: ({ count }) => round(count / sample.seconds) },
            { title: 'Errors', number: true, cell: ({ errors }) => errors },
          ]} />`
    }
  </section>`;
}

/** `[labels, value]` of each number of a reading. */
const valuesOf = (reading, labels = []) =>
  typeof reading === 'number'
    ? [[labels.join(', '), reading]]
    : Object.entries(reading).flatMap(([label, inner]) => valuesOf(inner, [...labels, label]));

/** All readings of /metrics. */
function Metrics({ sample }) {
  return html`<section class="card"><header><h2>All metrics</h2></header>
    <div class="metrics">${Object.entries(sample.metrics).map(([name, reading]) => html`<details key=${name}><summary class="mono">${name}</summary><dl class="facts small">${valuesOf(reading).map(([labels, value]) => html`<dt key=${labels}>${labels === '' ? 'value' : labels}</dt><dd>${value}</dd>`)}</dl></details>`)}</div>
  </section>`;
}
