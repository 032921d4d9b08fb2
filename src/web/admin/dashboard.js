/** The live dashboard: figures of the last two seconds as they come, small charts of the last five minutes. */
import { sizeText } from '../shared/ui.js';
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
      setLost(false);
      setLooks((kept) => [...kept, JSON.parse(data)].slice(-KEPT));
    });
    source.onerror = () => setLost(true);
    return () => source.close();
  }, []);
  return { looks, isLost };
}

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
          <div class="charts">
            <${Chart} title="Requests a second" looks=${looks} series=${[{ label: 'all', read: (look) => perSecond(look.requests, look) }, { label: 'errors', read: (look) => perSecond(look.errors, look), color: '--bad' }]} />
            <${Chart} title="Latency, ms" looks=${looks} series=${[{ label: 'p50', read: (look) => look.p50 }, { label: 'p99', read: (look) => look.p99, color: '--warn' }]} />
            <${Chart} title="Refused by limits a second" looks=${looks} series=${[{ label: '429', read: (look) => perSecond(look.refused, look), color: '--warn' }]} />
            <${Chart} title="Event loop delay p99, ms" looks=${looks} series=${[{ label: 'delay', read: (look) => look.loopDelayP99 }]} />
            <${Chart} title="Memory, MB" looks=${looks} series=${[{ label: 'RSS', read: (look) => look.rssBytes / 1024 / 1024 }]} />
            <${Chart} title="Connections and streams" looks=${looks} series=${[{ label: 'connections', read: (look) => figure(look, 'connections', 'open') }, { label: 'event streams', read: (look) => figure(look, 'streams', 'open'), color: '--good' }]} />
          </div>
          <div class="grid">
            <${Busiest} title="Busiest routes" rows=${last.routes} look=${last} />
            <${Busiest} title="Busiest tools" rows=${last.tools} look=${last} />
            <${Parts} look=${last} />
          </div>`
    }`;
}

function Figures({ look }) {
  const shown = [
    ['Requests a second', perSecond(look.requests, look).toFixed(1)],
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
            { ...axis, size: 24, space: 90 },
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
        : html`<table><thead><tr><th scope="col">Name</th><th scope="col" class="number">a second</th><th scope="col" class="number">errors</th></tr></thead>
          <tbody>${rows.map(({ name, count, errors }) => html`<tr key=${name}><td class="mono">${name}</td><td class="number">${round(perSecond(count, look))}</td><td class="number">${errors}</td></tr>`)}</tbody></table>`
    }
  </section>`;
}

/** Everything that /metrics has, part by part. */
function Parts({ look }) {
  return html`<section class="card"><header><h2>All figures</h2></header>
    ${Object.entries(look.parts).map(([part, figures]) => html`<details key=${part}><summary>${part}</summary><dl class="facts small">${Object.entries(figures).map(([name, value]) => html`<dt key=${name}>${name}</dt><dd>${value}</dd>`)}</dl></details>`)}
  </section>`;
}
