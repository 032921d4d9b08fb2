/**
 * Tools of the catalog: a list with filters, one tool with its callers and its form, what the lists cost a model, other
 * MCP servers, and reloading the catalog.
 */
import { get } from '../shared/api.js';
import { LOGINS } from '../shared/logins.js';
import { agentSession } from '../shared/mcp-client.js';
import { ToolForm, withCode } from '../shared/tool-form.js';
import { Empty, Icon, Loaded, Table, Time, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';
import { moveTo } from './address.js';
import { AUDIT } from './audit/page.js';
import { CatalogParts, nameOfCaller } from './catalog.js';
import { MissingNodes } from './cluster.js';
import { count, msText, USE_COLUMNS } from './figures.js';
import { Filters } from './folded.js';
import { RANGES, Ranges, rangeOf } from './history.js';
import { Who } from './who.js';

const EFFECTS = {
  looksUp: { word: 'Looks up', kind: 'good' },
  changes: { word: 'Changes', kind: 'warn' },
  irreversible: { word: 'Irreversible', kind: 'bad' },
};
const GATEWAY = 'gateway';
const moduleOf = ({ module }) => module ?? GATEWAY;

export const addressOfTool = (name) => `/ProxyAdmin/Tools?name=${encodeURIComponent(name)}`;

const Effect = ({ effect }) =>
  html`<span class=${`tag ${EFFECTS[effect].kind}`}>${EFFECTS[effect].word}</span>`;

const COLUMNS = [
  {
    title: 'Tool',
    head: true,
    cell: ({ name, title }) =>
      html`<a class="mono wraps" href=${addressOfTool(name)}>${name}</a>${title !== null && html`<br /><span class="small soft">${title}</span>`}`,
  },
  { title: 'Module', brief: true, cell: moduleOf },
  { title: 'Effect', brief: true, cell: ({ effect }) => html`<${Effect} effect=${effect} />` },
  ...USE_COLUMNS,
  { title: 'Tokens', number: true, cell: ({ estimatedTokens }) => count(estimatedTokens) },
];

export function ToolsPage({ role, query }) {
  const name = query.get('name');
  return name === null ? html`<${List} role=${role} query=${query} />` : html`<${One} name=${name} />`;
}

function List({ role, query }) {
  const range = rangeOf(query, '1h');
  const tools = useLoad(() => get('/ProxyAdmin/api/tools', { range: range.name }), [range.name]);
  const choose = (name) => (name === range.name ? tools.reload() : moveTo({ range: name }));
  return html`<div class="row tools-of-page"><span class="small soft">Use in the last ${range.words}.</span><${Ranges} range=${range} choose=${choose} /></div>
    <section class="card"><${Loaded} of=${tools}>${({ tools: all, missing }) => html`<${MissingNodes} names=${missing} of="calls there are" /><${Filtered} all=${all} />`}<//></section>
    <${CatalogParts} role=${role} onReload=${tools.reload} />`;
}

/** Rows at first, and more with each press. */
const SHOWN = 25;

function Filtered({ all }) {
  const [words, setWords] = useState('');
  const [module, setModule] = useState('');
  const [caller, setCaller] = useState('');
  const [failingOnly, setFailingOnly] = useState(false);
  const [most, setMost] = useState(SHOWN);
  const modules = [...new Set(all.map(moduleOf))].sort();
  const callers = [...new Set(all.flatMap((tool) => tool.callers))];
  const sought = words.trim().toLowerCase();
  const isShown = (tool) =>
    `${tool.name} ${tool.title ?? ''} ${tool.description}`.toLowerCase().includes(sought) &&
    (module === '' || moduleOf(tool) === module) &&
    (caller === '' || tool.callers.includes(caller)) &&
    (!failingOnly || tool.errors > 0);
  const shown = all.filter(isShown).sort((one, other) => other.calls - one.calls);
  const chosen = (set) => (event) => set(event.currentTarget.value);
  const set = [words, module, caller, failingOnly].filter(Boolean).length;
  return html`<${Filters} set=${set} onSubmit=${(event) => event.preventDefault()}>
      <div><label for="words">Name or description</label><input id="words" type="search" value=${words} onInput=${chosen(setWords)} /></div>
      <div><label for="module">Module</label><select id="module" value=${module} onChange=${chosen(setModule)}><option value="">All</option>${modules.map((each) => html`<option key=${each} value=${each}>${each}</option>`)}</select></div>
      <div><label for="caller">Open to</label><select id="caller" value=${caller} onChange=${chosen(setCaller)}><option value="">Anybody</option>${callers.map((each) => html`<option key=${each} value=${each}>${nameOfCaller(each)}</option>`)}</select></div>
      <label class="row"><input type="checkbox" checked=${failingOnly} onChange=${(event) => setFailingOnly(event.currentTarget.checked)} /> Failing only</label>
    <//>
    <p class="small soft" role="status">${shown.length} of ${all.length} tools</p>
    ${shown.length === 0 ? html`<${Empty} icon="wrench"><p>No tool matches.</p><//>` : html`<${Table} caption="Tools" rows=${shown.slice(0, most)} columns=${COLUMNS} keyOf=${({ name }) => name} />`}
    ${shown.length > most && html`<p class="more"><button type="button" onClick=${() => setMost(most + SHOWN)}>Show more</button></p>`}`;
}

/** One tool, in the place of the list. */
function One({ name }) {
  const tool = useLoad(() => get('/ProxyAdmin/api/tool', { name }), [name]);
  return html`<nav class="crumbs" aria-label="Way here"><a href="/ProxyAdmin/Tools">All tools</a><${Icon} name="chevron-right" /><span aria-current="page">${name}</span></nav>
    <${Loaded} of=${tool}>${(one) => html`<h2 class="mono wraps">${name}</h2>
      <p class="row"><${Effect} effect=${one.effect} /><span class="tag">${count(one.estimatedTokens)} tokens</span><span class="tag">${moduleOf(one)}</span>${one.profiles.map((profile) => html`<span key=${profile} class="tag">profile ${profile}</span>`)}</p>
      <p>${withCode(one.description)}</p>
      <p class="row small soft">Open to ${one.callers.length === 0 ? 'no caller' : one.callers.map((caller) => html`<span key=${caller} class="tag">${nameOfCaller(caller)}</span>`)}</p>
      <div class="grid used"><div><${Use} name=${name} /><${Callers} name=${name} /></div><${Call} tool=${one} /></div>`}<//>`;
}

/** Use of a tool in each range. */
function Use({ name }) {
  const ranges = useLoad(
    () =>
      Promise.all(
        RANGES.map(async (range) => {
          const { tools } = await get('/ProxyAdmin/api/tools', { range: range.name });
          return { range, ...tools.find((tool) => tool.name === name) };
        }),
      ),
    [name],
  );
  const columns = [
    { title: 'Last', head: true, cell: ({ range }) => range.title },
    ...USE_COLUMNS.slice(0, 2),
    { title: 'p50', number: true, cell: ({ p50 }) => msText(p50) },
    ...USE_COLUMNS.slice(2),
  ];
  return html`<section class="card"><header><h2>Use</h2></header><${Loaded} of=${ranges}>${(rows) => html`<${Table} fits caption="Use" rows=${rows} columns=${columns} keyOf=${({ range }) => range.name} />`}<//></section>`;
}

/** Records of calls that are searched for the callers of a tool. */
const CALLS_READ = 1_000;

function Callers({ name }) {
  const callers = useLoad(
    async () => callersOf(await get(AUDIT, { event: 'mcp.tool', limit: CALLS_READ }), name),
    [name],
  );
  const columns = [
    {
      title: 'Who',
      head: true,
      cell: ({ userId, nickname }) =>
        userId === null
          ? html`<span class="soft">No login</span>`
          : html`<${Who} id=${userId} nickname=${nickname} />`,
    },
    {
      title: 'Login',
      brief: true,
      cell: ({ loginType }) => LOGINS[loginType] ?? loginType ?? html`<span class="soft">none</span>`,
    },
    ...USE_COLUMNS.slice(0, 2),
    { title: 'Last', brief: true, cell: ({ utc }) => html`<${Time} of=${utc} />` },
  ];
  return html`<section class="card"><header><h2>Last callers</h2><a class="push" href="/ProxyAdmin/Audit?event=mcp.tool">Audit</a></header>
    <${Loaded} of=${callers}>${(rows) =>
      rows.length === 0
        ? html`<${Empty}><p>No call of it among the last ${count(CALLS_READ)} calls of all tools.</p><//>`
        : html`<${Table} caption="Last callers" rows=${rows} columns=${columns} keyOf=${({ key }) => key} />`}<//>
  </section>`;
}

/** Returns the callers by account and login, the latest first. */
function callersOf(records, name) {
  const all = new Map();
  for (const { userId, nickname, utc, fields } of records) {
    if (fields.name !== name) continue;
    const key = `${userId} ${fields.loginType}`;
    const row = all.get(key) ?? {
      key,
      userId,
      nickname,
      loginType: fields.loginType,
      utc,
      calls: 0,
      errors: 0,
    };
    row.calls += 1;
    if (fields.outcome !== 'ok' && fields.outcome !== 'attempt') row.errors += 1;
    all.set(key, row);
  }
  return [...all.values()];
}

function Call({ tool }) {
  const hasAgent = agentSession() !== undefined;
  return html`<section class="card"><header><h2>Call it</h2><span class="small soft push">${hasAgent ? 'as yourself, by the agent of this tab' : 'this tab has no agent'}</span></header>
    ${!hasAgent && html`<div class="note warn"><p>A call needs an agent of yours in this tab. <a href="/#agent">Create an agent</a>, then come back here. Copies work without one.</p></div>`}
    <${ToolForm} tool=${tool} disabled=${!hasAgent} />
  </section>`;
}
