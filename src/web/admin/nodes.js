/** The nodes of a cluster: their state, and which of them did not answer. */
import { Loaded, Table, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { loadNodes } from './cluster.js';
import { count } from './figures.js';

const STATES = { joined: 'good', late: 'warn', out: 'bad' };
const PARTITIONS = 256;

const shown = (number) => count(number).replace('-', '−');

const columnsOf = (own) => [
  {
    title: 'Node',
    head: true,
    cell: ({ name }) =>
      html`<span class="node">${name}</span>${name === own && html` <span class="tag">this node</span>`}`,
  },
  {
    title: 'State',
    brief: true,
    cell: ({ state }) => html`<span class=${`tag ${STATES[state]}`}>${state}</span>`,
  },
  { title: 'Version', brief: true, cell: ({ version }) => version },
  {
    title: 'Configuration',
    cell: ({ configuration, sameConfiguration, state }) =>
      html`<span class="mono">${configuration.slice(0, 6)}</span>${state !== 'out' && !sameConfiguration && html` <span class="tag warn">differs</span>`}`,
  },
  { title: 'Address', cell: ({ address }) => html`<span class="mono">${address}</span>` },
  { title: 'Partitions', number: true, cell: ({ partitionsOwned }) => partitionsOwned },
  { title: 'Rows behind', number: true, cell: ({ state, lag }) => (state === 'out' ? '–' : shown(lag)) },
  {
    title: 'Lease left',
    number: true,
    cell: ({ state, leaseLeftMs }) => (state === 'out' ? '–' : `${shown(leaseLeftMs)} ms`),
  },
  {
    title: 'Clock',
    number: true,
    cell: ({ state, clockOffsetMs }) =>
      state === 'out' ? '–' : `${clockOffsetMs > 0 ? '+' : ''}${shown(clockOffsetMs)} ms`,
  },
];

export function NodesPage() {
  const cluster = useLoad(loadNodes, []);
  return html`<p class="soft">Every node holds the whole state, and owns a share of the ${PARTITIONS} partitions of accounts.</p>
    <section class="card"><header><h2>Nodes</h2><div class="push"><button type="button" onClick=${cluster.reload}>Refresh</button></div></header>
    <${Loaded} of=${cluster}>${({ node, nodes }) => html`
      <${Faults} own=${node} nodes=${nodes} />
      <${Table} caption="Nodes" rows=${nodes} columns=${columnsOf(node)} keyOf=${({ name }) => name} />
      <p class="small soft below">Rows, lease and clock are those of the last renewal. The clock is that of the database, seen from the node.</p>`}<//>
    </section>`;
}

/** Faults that an operator should examine, in sentences. */
function Faults({ own, nodes }) {
  const late = nodes.filter(({ state }) => state === 'late');
  const others = nodes.filter(({ state, sameConfiguration }) => state !== 'out' && !sameConfiguration);
  const refused = nodes.reduce((sum, each) => sum + each.turnsRefused + each.turnsThrown, 0);
  const sentences = [
    late.length > 0 && `${subject(late, 'has not renewed its lease', 'have not renewed their leases')}.`,
    others.length > 0 && `${subject(others, 'has', 'have')} another configuration than node ${own}.`,
    refused > 0 && 'Nodes have refused rows that no correct node writes. The log names them.',
  ].filter(Boolean);
  return sentences.map(
    (sentence) => html`<div key=${sentence} class="note warn" role="status"><p>${sentence}</p></div>`,
  );
}

function subject(nodes, one, several) {
  const names = nodes.map(({ name }) => name).join(', ');
  return nodes.length === 1 ? `Node ${names} ${one}` : `Nodes ${names} ${several}`;
}
