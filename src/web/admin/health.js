/** The state of the gateway, and reloading the catalog. */
import { get, post } from '../shared/api.js';
import { Ask, Loaded, sizeText, Table, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';

const LIST_COLUMNS = [
  { title: 'Profile', head: true, cell: ({ profile }) => profile ?? 'All tools' },
  { title: 'Caller', cell: ({ caller }) => caller },
  { title: 'Tools', number: true, cell: ({ tools }) => tools },
  { title: 'Size', number: true, cell: ({ sizeBytes }) => sizeText(sizeBytes) },
  { title: 'Tokens', number: true, cell: ({ estimatedTokens }) => estimatedTokens.toLocaleString('en') },
];

export function HealthPage({ role }) {
  const overview = useLoad(() => get('/ProxyAdmin/api/overview'), []);
  const lists = useLoad(() => get('/ProxyAdmin/api/catalog'), []);
  return html`<section class="card"><header><h2>State</h2><div class="push"><button type="button" onClick=${overview.reload}>Refresh</button></div></header>
      <${Loaded} of=${overview}>${(facts) => html`<dl class="facts">
        <dt>Storage</dt><dd><span class=${`tag ${facts.databaseConnected ? 'good' : 'bad'}`}>${facts.databaseConnected ? 'writable' : 'not writable'}</span></dd>
        <dt>Version</dt><dd>${facts.version}</dd>
        <dt>Time of the gateway</dt><dd><${Time} of=${facts.utcNow} /></dd>
        <dt>Memory</dt><dd>${sizeText(facts.memory.rssBytes)}</dd>
        <dt>Sessions</dt><dd>${facts.sessions.browser} in browsers, ${facts.sessions.mcp} of agents</dd>
        <dt>Software keys</dt><dd>${facts.softwareKeys}</dd>
        <dt>Applications</dt><dd>${facts.apps}</dd>
        <dt>Failing actors</dt><dd><a href="/ProxyAdmin/Actors">${facts.failingActors.length}</a></dd>
        <dt>Dead letters</dt><dd><a href="/ProxyAdmin/Actors">${facts.deadLetters}</a></dd>
        <dt>Audit records lost</dt><dd>${facts.auditDropped}</dd>
      </dl>`}<//>
    </section>
    <section class="card"><header><h2>Lists of tools</h2></header>
      <p>What a client reads before its first call. Tokens are an estimate, four bytes each.</p>
      <${Loaded} of=${lists}>${(rows) =>
        html`<${Table} caption="Sizes of tools/list" rows=${rows} columns=${LIST_COLUMNS} keyOf=${({ profile, caller }) => `${profile} ${caller}`} />`}<//>
    </section>
    ${
      role === 'admin' &&
      html`<section class="card"><header><h2>Catalog</h2></header>
      <p>Reads tools and resources from the configuration file again. If one is invalid, the current catalog stays.</p>
      <${Ask} kind="" label="Reload the catalog" title="Reload the catalog?" confirm="Reload" done="The catalog is reloaded." question="Running calls finish with the current catalog." run=${() => post('/ProxyAdmin/api/reload', {})} />
    </section>`
    }`;
}
