/**
 * Cost of each list for a client, below the tools, by address and caller; other MCP servers; and reloading the catalog.
 */
import { get, post } from '../shared/api.js';
import { Ask, Loaded, Table, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';
import { McpServers } from './mcp-servers.js';

/** By class of callers; others are named by their class. */
const CALLERS = {
  anonymous: 'No login',
  'McpBasic:proven': 'McpBasic, by consent',
  'McpApp:proven': 'McpApp, signed',
  'Capability:chat': 'Code of a chat',
  'Capability:wallet': 'Code of a payment',
};
export const nameOfCaller = (caller) => CALLERS[caller] ?? caller;
const nameOf = ({ caller }) => nameOfCaller(caller);
const shown = (count) => count.toLocaleString('en');

const COLUMNS = [
  { title: 'Caller', head: true, cell: nameOf },
  { title: 'Tools', number: true, cell: ({ tools }) => shown(tools) },
  { title: 'Bytes', number: true, cell: ({ sizeBytes }) => shown(sizeBytes) },
  { title: 'Tokens', number: true, cell: ({ estimatedTokens }) => shown(estimatedTokens) },
];
/** The login with the most tools: the share of a profile is counted for it. */
const USUAL = 'McpVerified';

const tokensOf = (rows) => rows.find(({ caller }) => caller === USUAL)?.estimatedTokens ?? 0;

/** The lists of one address. `whole`: those of `/mcp`. */
function Lists({ profile, rows, whole }) {
  const listed = rows.filter(({ tools }) => tools > 0);
  const others = rows.filter(({ tools }) => tools === 0).map(nameOf);
  const share = Math.round((100 * tokensOf(rows)) / Math.max(1, tokensOf(whole)));
  const title = profile === null ? 'All tools' : `Profile ${profile}`;
  return html`<section class="card"><header><h2>${title}</h2><code class="push">${profile === null ? '/mcp' : `/mcp/p/${profile}`}</code></header>
    ${profile !== null && html`<p>${USUAL} reads ${shown(tokensOf(rows))} tokens, ${share} % of all tools.</p>`}
    ${listed.length > 0 && html`<${Table} fits caption=${`Sizes of tools/list: ${title}`} rows=${listed} columns=${COLUMNS} keyOf=${({ caller }) => caller} />`}
    ${others.length > 0 && html`<p class="small soft below">No tools for: ${others.join(', ')}.</p>`}
  </section>`;
}

/** Another node whose catalog is the former one. */
function Stays({ node, reason, faults }) {
  return html`<div class="note warn below" role="alert">
    <p>Node <strong>${node}</strong> keeps its former catalog: ${reason === 'refused' ? 'its configuration file has faults.' : 'it did not answer. Reload again when it does.'}</p>
    ${faults.length > 0 && html`<ul class="small">${faults.map(({ path, message }) => html`<li key=${path}><code>${path}</code> ${message}</li>`)}</ul>`}
  </div>`;
}

/** `onReload`: the catalog is another one now. */
export function CatalogParts({ role, onReload }) {
  const [stays, setStays] = useState([]);
  const lists = useLoad(() => get('/ProxyAdmin/api/catalog'), []);
  return html`<p class="small soft">What a client reads before its first call. Tokens are an estimate, four bytes each.</p>
    <div><${Loaded} of=${lists}>${(all) => {
      const profiles = [...new Set(all.map(({ profile }) => profile))];
      const rowsOf = (name) => all.filter(({ profile }) => profile === name);
      return profiles.map(
        (profile) =>
          html`<${Lists} key=${profile} profile=${profile} rows=${rowsOf(profile)} whole=${rowsOf(null)} />`,
      );
    }}<//></div>
    <${McpServers} role=${role} />
    ${
      role === 'admin' &&
      html`<section class="card"><header><h2>Reload</h2></header>
      <p>Reads tools, resources and profiles from the configuration file again. If one is invalid, the current catalog stays.</p>
      <${Ask} kind="" label="Reload the catalog" title="Reload the catalog?" confirm="Reload" done="The catalog is reloaded." question="Running calls finish with the current catalog." run=${async () => {
        const { notReloaded } = await post('/ProxyAdmin/api/reload', {});
        setStays(notReloaded);
        lists.reload();
        onReload();
      }} />
      ${stays.map((each) => html`<${Stays} key=${each.node} ...${each} />`)}
    </section>`
    }`;
}
