/** Connects agents: by address, or in three steps by a header: a key, a session, the configuration of an MCP host. */
import { get, post } from '../shared/api.js';
import { exportSecret, generateKey } from '../shared/ed25519.js';
import { registerPair } from '../shared/key-store.js';
import { agentSession, logInAgent, pretty, rpc } from '../shared/mcp-client.js';
import { Act, Copy, Time, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';
import { AddressPart } from './address.js';

/** The `mcpServers` entry of an MCP host's configuration. */
function configurationOf(baseUrl, sessionId) {
  const server = {
    type: 'http',
    url: `${baseUrl}/mcp`,
    headers: { Authorization: `Bearer ${sessionId}` },
  };
  return JSON.stringify({ mcpServers: { gatehouse: server } }, null, 2);
}

export function AgentPart({ info }) {
  const [agent, setAgent] = useState(agentSession());
  const [answer, setAnswer] = useState(undefined);
  const create = async () => {
    const pair = await generateKey(true);
    const name = `Agent of ${new Date().toISOString().slice(0, 10)}`;
    const { key } = await registerPair(pair, name);
    await post('/auth/v1/keys/update_key', { keyId: key.id, mcpAccess: true });
    const secretText = await exportSecret(pair.secret);
    setAgent({ ...(await logInAgent(pair)), publicKey: pair.publicKey, secretText });
  };
  const tryOut = async () => setAnswer(await rpc('tools/call', { name: 'sessions', arguments: {} }));
  return html`<h1>Connect an agent</h1>
    <${AddressPart} info=${info} />
    <h2>For hosts that send a header</h2>
    <p class="soft">Some hosts cannot open a page. Give them a session of a key of their own. For a shorter list of tools, add <code>?tools=wallet,market_*</code> to the address.</p>
    <ol class="steps">
      <li class=${agent === undefined ? '' : 'done'}><div>
        <h3>Create a key</h3>
        <p>This page generates an Ed25519 key, adds it to your account and enables MCP for it. You can revoke it at any time under <a href="#keys">Keys</a>.</p>
        <${Act} kind=${agent === undefined ? 'primary' : ''} run=${create} done="The agent has a key and a session.">${agent === undefined ? 'Create an agent' : 'Create another agent'}<//>
      </div></li>
      <li class=${answer === undefined ? '' : 'done'}><div>
        <h3>Test a tool call</h3>
        <p>This calls the <code>sessions</code> tool through <code>POST /mcp</code>, as your agent would.</p>
        <${Act} disabled=${agent === undefined} kind=${agent !== undefined && answer === undefined ? 'primary' : ''} run=${tryOut} done="The agent called a tool.">Call a tool<//>
        ${answer !== undefined && html`<pre tabindex="0" role="region" aria-label="Answer of the tool">${pretty(answer.content?.[0]?.text ?? '')}</pre><p>See all tools under <a href="#tools">Try tools</a>.</p>`}
      </div></li>
      <li><div>
        <h3>Add it to your MCP host</h3>
        ${
          agent === undefined
            ? html`<p class="soft">Create an agent to see its configuration.</p>`
            : html`<p>Paste this into the configuration of Claude, an IDE or another MCP host. It contains a session token that expires <${Time} of=${agent.expiresUtc} />.</p>
              <pre tabindex="0" role="region" aria-label="Configuration">${configurationOf(info.baseUrl, agent.sessionId)}</pre>
              <div class="row"><${Copy} text=${configurationOf(info.baseUrl, agent.sessionId)} label="Copy the configuration" /></div>
              ${agent.secretText !== undefined && html`<${Secret} agent=${agent} />`}`
        }
      </div></li>
    </ol>
    <${ConnectorPart} baseUrl=${info.baseUrl} />`;
}

/** Part for hosts that start programs: the connector of this gateway, where its build packed one. */
function ConnectorPart({ baseUrl }) {
  const { value } = useLoad(() => get('/connect/connector.json'), []);
  if (value === undefined || value === null) return null;
  const command = `npx -y ${baseUrl}/connect/connector.tgz ${baseUrl}`;
  return html`<section id="connector"><h2>For programs without a browser</h2>
    <p class="soft">The connector of this gateway is a stdio MCP server with a key of its own. At its first start it prints a link and six letters, with which you allow the key.</p>
    <pre tabindex="0" role="region" aria-label="Command of the connector">${command}</pre>
    <div class="row"><${Copy} text=${command} label="Copy the command" /></div>
    <p class="hint">What this address gave once is kept by npx: for a newer version use the address of <a href=${value.path}>version ${value.version}</a>. Its SHA-256 is <span class="mono">${value.sha256}</span>.</p>
  </section>`;
}

/** The secret key, shown once and not stored. */
function Secret({ agent }) {
  return html`<details class="card">
    <summary>Secret key, for agents that log in by themselves</summary>
    <p>The agent opens new sessions with it through <code>POST /auth/v1/mcp_login</code>. It is shown once and is not stored.</p>
    <dl class="facts">
      <dt>Public key</dt><dd class="mono">${agent.publicKey}</dd>
      <dt>Secret key</dt><dd class="mono">${agent.secretText}</dd>
    </dl>
    <div class="row"><${Copy} text=${agent.secretText} label="Copy the secret key" /></div>
  </details>`;
}
