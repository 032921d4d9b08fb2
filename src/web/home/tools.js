/** Tools of the gateway: a form from the schema, the call, and the answer as an agent receives it. */
import { agentSession, rpc } from '../shared/mcp-client.js';
import { ToolForm, withCode } from '../shared/tool-form.js';
import { Empty, Loaded, useLoad } from '../shared/ui.js';
import { html, useEffect, useState } from '../vendor/preact.js';

/** `hash`: `#tools/NAME` shows that tool. */
export function ToolsPart({ hash }) {
  const tools = useLoad(async () => (await rpc('tools/list')).tools, []);
  const [search, setSearch] = useState('');
  const [name, setName] = useState(undefined);
  useEffect(() => setName(hash.split('/')[1]), [hash]);
  const hasAgent = agentSession() !== undefined;
  return html`<h1>Try tools</h1>
    ${!hasAgent && html`<div class="note warn"><p>This tab has no agent yet. All tools are listed, but calls are refused. <a href="#agent">Create an agent</a> first.</p></div>`}
    <${Loaded} of=${tools}>${(list) => {
      const shown = list.filter((tool) =>
        `${tool.name} ${tool.description}`.toLowerCase().includes(search.trim().toLowerCase()),
      );
      const chosen = list.find((tool) => tool.name === name);
      return html`<div class="tools">
        <div class="stack">
          <div><label for="search">Search</label><input id="search" type="search" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} /></div>
          <nav aria-label="Tools">
            ${shown.map((tool) => html`<button type="button" key=${tool.name} aria-pressed=${tool.name === name} onClick=${() => setName(tool.name)}>${breakable(tool.name)}</button>`)}
            ${shown.length === 0 && html`<p class="empty">No matching tools.</p>`}
          </nav>
        </div>
        ${
          chosen === undefined
            ? html`<${Empty}><p>Select one of ${list.length} tools.</p><//>`
            : html`<${Tool} key=${chosen.name} tool=${chosen} disabled=${!hasAgent} />`
        }
      </div>`;
    }}<//>`;
}

/** A name that wraps behind its underscores. */
const breakable = (name) => name.split('_').map((word, at) => (at === 0 ? word : html`_<wbr />${word}`));

function Tool({ tool, disabled }) {
  const marks = tool.annotations ?? {};
  return html`<section>
    <h2>${tool.title ?? tool.name}</h2>
    <p>${withCode(tool.description)}</p>
    <p class="row">${marks.readOnlyHint && html`<span class="tag good">Read-only</span>`}${marks.destructiveHint && html`<span class="tag bad">Irreversible</span>`}${marks.idempotentHint && html`<span class="tag">Safe to retry</span>`}</p>
    <${ToolForm} tool=${tool} disabled=${disabled} />
  </section>`;
}
