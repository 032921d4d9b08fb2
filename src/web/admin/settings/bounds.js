/** The bounds that callers share, with what is held of them now and what was refused. */
import { get } from '../../shared/api.js';
import { Loaded, Table, useLoad } from '../../shared/ui.js';
import { html } from '../../vendor/preact.js';

/** Read-only: some bounds have a setting that changes them. */
export function Bounds({ areSeveral }) {
  const bounds = useLoad(() => get('/ProxyAdmin/api/bounds'), []);
  return html`<section class="card bounds" aria-labelledby="bounds">
    <header><h2 id="bounds">Shared bounds</h2><div class="push"><button type="button" onClick=${bounds.reload}>Refresh</button></div></header>
    <p class="soft">No session, user or network can hold all of a bound. A caller over its share gets status 429, and the others are served.${areSeveral && ' What is held and refused is that of the node that answers.'}</p>
    <${Loaded} of=${bounds}>${(list) =>
      html`<${Table} caption="Maxima and shares" rows=${list} columns=${BOUND_COLUMNS} keyOf=${({ name }) => name} />`}<//>
  </section>`;
}

const MEBIBYTE = 1024 * 1024;

function amount(value, unit) {
  if (value === null) return '–';
  return unit === 'bytes'
    ? `${(value / MEBIBYTE).toLocaleString('en', { maximumFractionDigits: 1 })} MiB`
    : value.toLocaleString('en');
}

const BOUND_COLUMNS = [
  {
    title: 'Bound',
    head: true,
    cell: ({ name, summary }) => html`<strong>${name}</strong><p class="hint">${summary}</p>`,
  },
  ...[
    ['Held', ({ held }) => held],
    ['Maximum', ({ maximum }) => maximum],
    ['Per session', ({ session }) => session],
    ['Per user', ({ user }) => user],
    ['Per network', ({ network }) => network],
  ].map(([title, read]) => ({ title, number: true, cell: (row) => amount(read(row), row.unit) })),
  { title: 'Refused', number: true, cell: refusedOf },
];

function refusedOf({ refused }) {
  const all = Object.values(refused).reduce((sum, count) => sum + count, 0);
  const by = Object.entries(refused)
    .filter(([, count]) => count > 0)
    .map(([whose, count]) => `${whose} ${count.toLocaleString('en')}`);
  return html`${all.toLocaleString('en')}${by.length > 0 && html`<p class="hint">${by.join(', ')}</p>`}`;
}
