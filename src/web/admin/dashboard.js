/** The live dashboard: figures of the last two seconds as they come, small charts of the last five minutes. */
import { sizeText, Table } from '../shared/ui.js';
import { html, useEffect, useRef, useState } from '../vendor/preact.js';

const KEPT = 150;
const SHOWN_SECONDS = 300;

/** Looks as they arrive, the newest last. `isLost`: the stream broke and is being opened again. */
function useLooks() {
  const [looks, setLooks] = useState([]);
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    const source = new EventSource('/ProxyAdmin/api/live');
    source.addEventListener('look', ({ data }) => {
      const look = JSON.parse(data);
      setLost(false);
      setLooks((kept) => [...kept, { ...look, rates: ratesOf(look, kept.at(-1)) }].slice(-KEPT));
    });
    source.onerror = () => setLost(true);
    return () => source.close();
  }, []);
  return { looks, isLost };
}

/** What only grows since the start, as what it grew by a second. */
const GROWING = {
  connection: ['limiter', 'c_limited'],
  address: ['limiter', 'i_limited'],
  key: ['limiter', 'p_limited'],
  login: ['limiter', 'm_limited'],
  received: ['files', 'uploads_receivedBytes'],
  throttled: ['files', 'bandwidth_chargedBytes'],
  webhooks: ['webhooks', 'delivered'],
};

function ratesOf(look, before) {
  const rate = ([part, name]) =>
    before === undefined
      ? 0
      : Math.max(0, figure(look, part, name) - figure(before, part, name)) / look.seconds;
  return Object.fromEntries(Object.entries(GROWING).map(([name, place]) => [name, rate(place)]));
}

const MEGABYTE = 1024 * 1024;
const of = (part, name, label, color, scale = 1) => ({
  label,
  color,
  read: (look) => figure(look, part, name) / scale,
});
const rateOf = (name, label, color, scale = 1) => ({
  label,
  color,
  read: (look) => look.rates[name] / scale,
});

/** One chart a row: its title and the lines in it. */
const CHARTS = [
  {
    title: 'Requests a second',
    series: [
      { label: 'all', read: (look) => perSecond(look.requests, look) },
      { label: 'errors', read: (look) => perSecond(look.errors, look), color: '--bad' },
    ],
  },
  {
    title: 'Latency, ms',
    series: [
      { label: 'p50', read: (look) => look.p50 },
      { label: 'p99', read: (look) => look.p99, color: '--warn' },
    ],
  },
  {
    title: 'Refused by limits a second',
    series: [
      { label: 'all', read: (look) => perSecond(look.refused, look) },
      rateOf('connection', 'connection', '--good'),
      rateOf('address', 'address', '--warn'),
      rateOf('key', 'key', '--bad'),
      rateOf('login', 'login', '--ink-soft'),
    ],
  },
  {
    title: 'Sessions',
    series: [of('gateway', 'browserSessions', 'browsers'), of('gateway', 'mcpSessions', 'agents', '--good')],
  },
  {
    title: 'Connections and streams',
    series: [of('connections', 'open', 'connections'), of('streams', 'streams', 'event streams', '--good')],
  },
  {
    title: 'Files, MB a second',
    series: [
      rateOf('received', 'received', '--accent', MEGABYTE),
      rateOf('throttled', 'through the limiter', '--good', MEGABYTE),
    ],
  },
  {
    title: 'Uploads',
    series: [
      of('files', 'uploads_active', 'receiving'),
      of('files', 'bandwidth_waiting', 'waiting for bandwidth', '--warn'),
    ],
  },
  {
    title: 'Webhooks',
    series: [
      rateOf('webhooks', 'delivered a second'),
      of('webhooks', 'pending', 'applications that wait', '--warn'),
    ],
  },
  { title: 'Event loop delay p99, ms', series: [{ label: 'delay', read: (look) => look.loopDelayP99 }] },
  {
    title: 'Memory and journal, MB',
    series: [
      { label: 'memory', read: (look) => look.rssBytes / MEGABYTE },
      of('gateway', 'journalFileBytes', 'journal', '--good', MEGABYTE),
    ],
  },
];

const perSecond = (count, look) => count / look.seconds;
const sum = (figures = {}, pattern) =>
  Object.entries(figures).reduce((total, [name, value]) => (pattern.test(name) ? total + value : total), 0);
const figure = (look, part, name) => look.parts?.[part]?.[name] ?? 0;

export function DashboardPage() {
  const { looks, isLost } = useLooks();
  const last = looks.at(-1);
  return html`${isLost && html`<div class="note warn" role="status"><p>The connection to the gateway broke. Trying again …</p></div>`}
    ${
      last === undefined
        ? html`<p class="busy" role="status">Waiting for the first figures …</p>`
        : html`<${Figures} look=${last} />
          <div class="charts">${CHARTS.map(({ title, series }) => html`<${Chart} key=${title} title=${title} looks=${looks} series=${series} />`)}</div>
          <div class="grid">
            <${Busiest} title="Busiest routes" rows=${last.routes} look=${last} />
            <${Busiest} title="Busiest tools" rows=${last.tools} look=${last} />
            <${Parts} look=${last} />
          </div>`
    }`;
}

function Figures({ look }) {
  const shown = [
    ['Requests / s', perSecond(look.requests, look).toFixed(1)],
    ['Latency p99', look.p99 === null ? '–' : `${look.p99.toFixed(1)} ms`],
    ['Refused by limits', sum(look.parts.limiter, /refused|rejected/i)],
    ['Connections', figure(look, 'connections', 'open')],
    ['In flight', figure(look, 'requests', 'requestsInFlight')],
    ['Memory', sizeText(look.rssBytes)],
  ];
  return html`<div class="figures">${shown.map(([title, value]) => html`<div key=${title}><div class="soft small">${title}</div><div class="figure">${value}</div></div>`)}</div>`;
}

/** The page's colours come from its tokens, so that a chart follows light and dark. */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function Chart({ title, looks, series }) {
  const box = useRef(null);
  const plot = useRef(null);
  useEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      const axis = {
        stroke: colour('--ink-soft'),
        grid: { stroke: colour('--line'), width: 1 },
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
              stroke: colour(color),
              width: 2,
            })),
          ],
        },
        dataOf(looks, series),
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
    plot.current?.setData(dataOf(looks, series));
  }, [looks]);
  const now = series.map(({ label, read }) => `${label} ${round(read(looks.at(-1)))}`).join(', ');
  return html`<figure class="card"><figcaption class="row"><strong>${title}</strong><span class="soft small">${now}</span></figcaption><div class="chart" ref=${box} role="img" aria-label=${`${title}: ${now}`}></div></figure>`;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const clockText = (seconds) => CLOCK.format(seconds * 1000);
const round = (value) =>
  value === null || value === undefined ? '–' : value >= 100 ? Math.round(value) : value.toFixed(1);

function dataOf(looks, series) {
  return [looks.map(({ utcMs }) => utcMs / 1000), ...series.map(({ read }) => looks.map(read))];
}

function Busiest({ title, rows, look }) {
  return html`<section class="card"><header><h2>${title}</h2></header>
    ${
      rows.length === 0
        ? html`<p class="soft">Nothing in the last two seconds.</p>`
        : html`<${Table} fits caption=${title} rows=${rows} keyOf=${({ name }) => name} columns=${[
            { title: 'Name', cell: ({ name }) => html`<span class="mono wraps">${name}</span>` },
            { title: 'a second', number: true, cell: ({ count }) => round(perSecond(count, look)) },
            { title: 'errors', number: true, cell: ({ errors }) => errors },
          ]} />`
    }
  </section>`;
}

/** Everything that /metrics has, part by part. */
function Parts({ look }) {
  return html`<section class="card"><header><h2>All figures</h2></header>
    ${Object.entries(look.parts).map(([part, figures]) => html`<details key=${part}><summary>${part}</summary><dl class="facts small">${Object.entries(figures).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl></details>`)}
  </section>`;
}
