/** The overview: what needs a person, figures of a range with those that arrive every two seconds, use and logins. */
import { get } from '../shared/api.js';
import { Empty, Loaded, sizeText, Table, Time, useLoad } from '../shared/ui.js';
import { html, useEffect, useState } from '../vendor/preact.js';
import { moveTo } from './address.js';
import { Attention } from './attention.js';
import { AUDIT, auditColumns, recordKey } from './audit/page.js';
import { Chart } from './chart.js';
import { CHARTS, read, TILES } from './charts.js';
import { MissingNodes } from './cluster.js';
import { USE_COLUMNS } from './figures.js';
import { pointsOf, RANGES, Ranges, rangeOf, startsOf, useHistory } from './history.js';

/** Samples between two loads of the history, with room. */
const KEPT = 150;

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
  const range = rangeOf(query);
  const { samples, isLost, missing } = useSamples(node);
  const past = useHistory(range, node, isLost);
  const last = samples.at(-1);
  // A press on the shown range loads it again.
  const choose = (name) =>
    name === range.name ? past.reload() : moveTo({ node: nodeQuery(node), range: rangeQuery(name) });
  return html`<div class="row tools-of-page">
      <span class=${`tag ${isLost || last === undefined ? 'warn' : 'good'}`}>${last === undefined ? 'Connecting' : isLost ? 'Not live' : 'Live'}</span>
      ${nodes.length > 0 && html`<${Choice} nodes=${nodes} node=${node} range=${range} />`}
      <${Ranges} range=${range} choose=${choose} />
    </div>
    <${MissingNodes} names=${missing} of="figures from there are" />${isLost && html`<div class="note warn" role="status"><p>The connection to the gateway broke. Trying again …</p></div>`}
    <${Attention} />
    <${Tiles} sample=${last} />
    <div class="past"><${Loaded} of=${past}>${(
      history,
    ) => html`<${Starts} history=${history} range=${range} /><${Charts} of=${FIRST} info=${info} history=${history} samples=${samples} range=${range} />
      <div class="grid used"><${Used} title="Tools" what="Tool" rows=${history.tools} range=${range} all="/ProxyAdmin/Tools" /><${Used} title="Routes" what="Route" rows=${history.routes} range=${range} /></div>`}<//></div>
    <${Logins} />
    ${
      past.value !== undefined &&
      html`<h2>More figures</h2><${Charts} of=${MORE} info=${info} history=${past.value} samples=${samples} range=${range} />`
    }
    ${last !== undefined && html`<${Metrics} sample=${last} />`}`;
}

/** The charts that people look at first, and the rest. */
const FIRST = CHARTS.slice(0, 3);
const MORE = CHARTS.slice(3);

function Charts({ of, info, history, samples, range }) {
  const { times, charts } = pointsOf(history, samples, range);
  const live = samples.at(-1)?.shown.charts;
  const offered = of.filter(({ feature }) => feature === undefined || info.features.includes(feature));
  return html`<div class=${of === FIRST ? 'charts three' : 'charts'}>${offered.map((chart) => {
    const at = CHARTS.indexOf(chart);
    const now = live?.[at] ?? charts[at].map((line) => line.at(-1));
    return html`<${Chart} key=${chart.title} title=${chart.title} series=${chart.series} times=${times} lines=${charts[at]} now=${now} seconds=${range.seconds} />`;
  })}</div>`;
}

/** A restart is a gap, and says so. */
function Starts({ history, range }) {
  const starts = startsOf(history, range);
  if (starts.length === 0) return '';
  const who = ({ node }) => (node === null ? 'The gateway' : `Node ${node}`);
  return html`<p class="small soft">${starts.map((start) => html`<span key=${start.node}>${who(start)} began <${Time} of=${start.sinceUtc} />: it has no figures from before. </span>`)}</p>`;
}

const nodeQuery = (node) => (node === ALL ? '' : node);
const rangeQuery = (name) => (name === RANGES[0].name ? '' : name);

/** Choice of the node whose figures are shown, and of the range. */
function Choice({ nodes, node, range }) {
  const names = nodes.filter(({ name, state }) => state !== 'out' || name === node).map(({ name }) => name);
  return html`<label class="row">Figures of <select id="node" value=${node} onChange=${(event) => moveTo({ node: nodeQuery(event.currentTarget.value), range: rangeQuery(range.name) })}>
    <option value=${ALL}>all nodes together</option>
    ${names.map((name) => html`<option key=${name} value=${name}>node ${name}</option>`)}
  </select></label>`;
}

function Tiles({ sample }) {
  const tiles = TILES.map((tile, at) => ({
    title: tile.title,
    value: tileText(tile, sample?.shown.tiles[at]),
  }));
  return html`<p class="soft small">${
    sample === undefined
      ? 'Waiting for the first sample …'
      : html`Sampled <${Time} of=${new Date(sample.utcMs).toISOString()} />, over <span data-seconds=${sample.seconds}>${sample.seconds.toFixed(1)} s</span>`
  }</p>
    <div class="figures">${tiles.map(({ title, value }) => html`<div key=${title}><div class="soft small">${title}</div><div class="figure">${value}</div></div>`)}</div>`;
}

function tileText({ digits, unit }, value) {
  if (value === null || value === undefined) return '–';
  if (unit === 'bytes') return sizeText(value);
  return unit === undefined ? value.toFixed(digits) : `${value.toFixed(digits)} ${unit}`;
}

const SHOWN_NAMES = 8;
/** Names without counts of their own. */
const OTHERS = 'others';

/** The most used names of a range. `all`: the page of all of them. */
function Used({ title, what, rows, range, all }) {
  const columns = [
    {
      title: what,
      head: true,
      cell: ({ name }) => html`<${Name} name=${name} isTool=${all !== undefined} />`,
    },
    ...USE_COLUMNS,
  ];
  return html`<section class="card"><header><h2>${title}</h2>${all !== undefined && html`<a class="push" href=${all}>All</a>`}</header>
    ${
      rows.length === 0
        ? html`<${Empty}><p>Nothing was called in the last ${range.words}.</p><//>`
        : html`<${Table} fits caption=${`${title} by calls`} rows=${rows.slice(0, SHOWN_NAMES)} keyOf=${({ name }) => name} columns=${columns} />`
    }
  </section>`;
}

function Name({ name, isTool }) {
  return isTool && name !== OTHERS
    ? html`<a class="mono wraps" href=${`/ProxyAdmin/Tools?name=${encodeURIComponent(name)}`}>${name}</a>`
    : html`<span class="mono wraps">${name}</span>`;
}

const LOGINS = 6;

function Logins() {
  const logins = useLoad(() => get(AUDIT, { ring: 'logins', limit: LOGINS }), []);
  return html`<section class="card"><header><h2>Latest logins</h2><a class="push" href="/ProxyAdmin/LoginLog">All</a></header>
    <${Loaded} of=${logins}>${(rows) =>
      rows.length === 0
        ? html`<${Empty}><p>No login yet.</p><//>`
        : html`<${Table} caption="Latest logins" rows=${rows} columns=${LOGIN_COLUMNS} keyOf=${recordKey} />`}<//>
  </section>`;
}

const [WHEN, WHAT] = auditColumns;
const LOGIN_COLUMNS = [
  WHAT,
  {
    title: 'From',
    cell: ({ fields }) => html`<span class="mono">${fields.address ?? fields.ip ?? '–'}</span>`,
  },
  WHEN,
];

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
