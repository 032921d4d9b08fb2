/** Other MCP servers: their state, and definitions of tools that wait for a decision, the approved one beside the listed one. */
import { get, post } from '../shared/api.js';
import { Act, Ask, Loaded, Table, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { count, msText } from './figures.js';

const STATES = { up: 'good', down: 'bad', connecting: 'warn' };
const linesOf = (definition) =>
  definition === null ? [] : JSON.stringify(JSON.parse(definition), null, 2).split('\n');

/** The lines between those that both texts begin and end with: a change is never shown as none. */
function changedRange(before, after) {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return { head, tail };
}

/** One definition; `mark` is the element of the lines that changed. */
function Definition({ title, lines, range: { head, tail }, mark: Mark }) {
  const end = lines.length - tail;
  const changed = lines.slice(head, end).join('\n');
  return html`<figure><figcaption>${title}</figcaption><pre tabindex="0" role="region" aria-label=${title}>${lines.slice(0, head).join('\n')}${changed === '' && head > 0 && '\n'}${changed !== '' && html`<${Mark}>${changed}<//>`}${lines.slice(end).join('\n')}</pre></figure>`;
}

/** A tool that is not served. */
function Waiting({ server, tool, state, sinceUtc, approved, listed, canAct, decide }) {
  const [before, after] = [linesOf(approved), linesOf(listed)];
  const range = approved === null ? { head: after.length, tail: 0 } : changedRange(before, after);
  return html`<section class="waiting" aria-label=${`${server} ${tool}`}>
    <h3><code>${tool}</code> <span class=${`tag ${state === 'hidden' ? '' : 'warn'}`}>${state}</span></h3>
    ${sinceUtc !== null && html`<p class="small soft">Listed since <${Time} of=${sinceUtc} />.</p>`}
    <div class="sides">
      ${approved !== null && html`<${Definition} title=${`Approved: ${tool}`} lines=${before} range=${range} mark="del" />`}
      <${Definition} title=${`Listed: ${tool}`} lines=${after} range=${range} mark="ins" />
    </div>
    ${
      canAct &&
      html`<div class="row">
      <${Ask} kind="primary" label="Approve" title=${`Approve ${tool}?`} confirm="Approve the listed definition" done="The tool is served." question="Models read this definition, and callers may use the tool." run=${() => decide('approve')} />
      ${state !== 'hidden' && html`<${Act} done="The tool stays hidden." run=${() => decide('hide')}>Keep hidden<//>`}
    </div>`
    }
  </section>`;
}

function Server({ server, canAct, reload }) {
  const { name, url, prefix, state, reason, calls, failed, p99Milliseconds, served, hidden, leftOut } =
    server;
  const decide = async (type, tool, digest) => {
    await post(`/ProxyAdmin/api/mcp_servers/${type}`, { server: name, tool, digest });
    await reload();
  };
  const columns = [
    { title: 'Tool', head: true, cell: ({ tool }) => html`<span class="mono">${prefix}${tool}</span>` },
    {
      title: 'Actions',
      action: true,
      cell: ({ tool, digest }) =>
        canAct &&
        html`<${Ask} label="Hide" title=${`Hide ${tool}?`} confirm="Hide the tool" done="The tool is hidden." question="It is neither listed nor called until it is approved again." run=${() => decide('hide', tool, digest)} />`,
    },
  ];
  const time = p99Milliseconds === null ? '' : `, 99 % within ${msText(p99Milliseconds)}`;
  return html`<section class="card"><header><h2>MCP server ${name}</h2><span class=${`tag ${STATES[state]}`}>${state}</span><code class="push">${url}</code></header>
    <p>Tools: ${count(served.length)} served, ${count(hidden.length)} hidden, ${count(leftOut.length)} left out. Calls: ${count(calls)}, ${count(failed)} failed${time}.</p>
    ${reason !== null && html`<div class="note bad"><p>${reason}</p></div>`}
    ${hidden.map((each) => html`<${Waiting} key=${each.tool} server=${name} ...${each} canAct=${canAct} decide=${(type) => decide(type, each.tool, each.digest)} />`)}
    ${leftOut.length > 0 && html`<details><summary>Left out: ${leftOut.length}</summary><ul class="small">${leftOut.map(({ tool, reason }) => html`<li><code>${tool}</code> ${reason}</li>`)}</ul></details>`}
    ${served.length > 0 && html`<details><summary>Served: ${served.length}</summary><${Table} fits caption=${`Tools of ${name}`} rows=${served} columns=${columns} keyOf=${({ tool }) => tool} /></details>`}
    ${
      canAct &&
      html`<div class="row below"><${Act} done="The server is asked for its tools." run=${async () => {
        await post('/ProxyAdmin/api/mcp_servers/reload', { server: name });
        await reload();
      }}>List its tools again<//></div>`
    }
  </section>`;
}

/** Nothing where the configuration names no server. */
export function McpServers({ role }) {
  const servers = useLoad(() => get('/ProxyAdmin/api/mcp_servers'), []);
  return html`<${Loaded} of=${servers}>${(all) => all.map((server) => html`<${Server} key=${server.name} server=${server} canAct=${role === 'admin'} reload=${servers.reload} />`)}<//>`;
}
