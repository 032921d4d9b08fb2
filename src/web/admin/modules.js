/** The modules: which answer, how fast, what they send, and endpoints whose breaker is open. */
import { get } from '../shared/api.js';
import { Empty, Icon, Loaded, Table, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { MissingNodes } from './cluster.js';
import { count, msText, USE_COLUMNS } from './figures.js';

/** Share of errors from which a module is said to fail. */
const FAILING_SHARE = 0.05;

function stateOf({ breakersOpen, calls, errors }) {
  if (breakersOpen.length > 0) return { word: 'Breaker open', kind: 'bad' };
  if (calls === 0) return { word: 'Not called', kind: '' };
  return errors / calls >= FAILING_SHARE
    ? { word: 'Failing', kind: 'warn' }
    : { word: 'Healthy', kind: 'good' };
}

const COLUMNS = [
  {
    title: 'Module',
    head: true,
    cell: ({ name, url }) =>
      html`<strong>${name}</strong><br /><span class="small soft mono wraps">${url}</span>`,
  },
  {
    title: 'State',
    brief: true,
    cell: (module) => {
      const { word, kind } = stateOf(module);
      return html`<span class=${`tag ${kind}`}>${word}</span>`;
    },
  },
  { title: 'Tools', number: true, cell: ({ tools }) => count(tools) },
  ...USE_COLUMNS.slice(0, 2),
  { title: 'p50', number: true, cell: ({ p50 }) => msText(p50) },
  ...USE_COLUMNS.slice(2),
  {
    title: 'Connections',
    number: true,
    cell: ({ connections, pending }) =>
      html`${count(connections)}${pending > 0 && html` <span class="small soft">${count(pending)} busy</span>`}`,
  },
  {
    title: 'Last event',
    brief: true,
    cell: ({ lastEventUtc }) =>
      lastEventUtc === null
        ? html`<span class="soft">none lately</span>`
        : html`<${Time} of=${lastEventUtc} />`,
  },
  {
    title: 'Events',
    brief: true,
    cell: ({ hasKey, polled }) =>
      [polled && 'polled', hasKey && 'pushed'].filter(Boolean).join(', ') ||
      html`<span class="soft">none</span>`,
  },
  {
    title: 'Key since',
    cell: ({ keySinceUtc, keyIsOld }) =>
      keySinceUtc === null
        ? html`<span class="soft">no key</span>`
        : html`<${Time} of=${keySinceUtc} />${keyIsOld && html` <span class="tag warn">old</span>`}`,
  },
];

export function ModulesPage() {
  const modules = useLoad(() => get('/ProxyAdmin/api/modules'), []);
  return html`<section class="card"><header><h2>Use in the last day</h2><div class="push"><button type="button" onClick=${modules.reload}>Refresh</button></div></header>
      <${Loaded} of=${modules}>${({
        modules: rows,
        missing,
      }) => html`<${MissingNodes} names=${missing} of="figures from there are" />
        ${
          rows.length === 0
            ? html`<${Empty} icon="boxes"><p>No modules are configured. <code>Modules</code> of the configuration names them.</p><//>`
            : html`<${Table} caption="Modules" rows=${rows} columns=${COLUMNS} keyOf=${({ name }) => name} /><${Breakers} modules=${rows} />`
        }`}<//>
      <p class="small soft below">Calls are those of tools and through the proxy. Modules at one address share their connections. “Last event” looks at the newest 1,000 events.</p>
    </section>`;
}

/** Calls of an endpoint are refused, others of the module are not. */
function Breakers({ modules }) {
  return modules
    .filter(({ breakersOpen }) => breakersOpen.length > 0)
    .map(
      ({ name, breakersOpen }) =>
        html`<div key=${name} class="note bad below" role="status"><${Icon} name="circle-alert" /><div><p>Calls of these endpoints of ${name} are refused until a probe is answered:</p><ul class="small">${breakersOpen.map((endpoint) => html`<li key=${endpoint}><code class="wraps">${endpoint}</code></li>`)}</ul></div></div>`,
    );
}
