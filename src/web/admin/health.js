/** The state of the gateway; in a cluster of the node that answers. */
import { get } from '../shared/api.js';
import { exactTime, Loaded, sizeText, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { MissingNodes } from './cluster.js';
import { count } from './figures.js';

export function HealthPage() {
  const overview = useLoad(() => get('/ProxyAdmin/api/overview'), []);
  return html`<section class="card"><header><h2>${overview.value?.node ? `State of node ${overview.value.node}` : 'State'}</h2><div class="push"><button type="button" onClick=${overview.reload}>Refresh</button></div></header>
      <${Loaded} of=${overview}>${(
        facts,
      ) => html`<${MissingNodes} names=${facts.missing} of="failing actors there are" /><dl class="facts">
        <dt>Storage</dt><dd><span class=${`tag ${facts.databaseConnected ? 'good' : 'bad'}`}>${facts.databaseConnected ? 'writable' : 'not writable'}</span></dd>
        <dt>Version</dt><dd>${facts.version}</dd>
        <dt>Time of the gateway</dt><dd>${exactTime(facts.utcNow)}</dd>
        <dt>Memory</dt><dd>${sizeText(facts.memory.rssBytes)}</dd>
        <dt>Sessions</dt><dd>${count(facts.sessions.browser)} in browsers, ${count(facts.sessions.mcp)} of agents</dd>
        <dt>Software keys</dt><dd>${count(facts.softwareKeys)}</dd>
        <dt>Applications</dt><dd>${count(facts.apps)}</dd>
        <dt>Failing actors</dt><dd><a href="/ProxyAdmin/Actors">${count(facts.failingActors.length)}</a></dd>
        <dt>Dead letters</dt><dd><a href="/ProxyAdmin/Actors">${count(facts.deadLetters)}</a></dd>
        <dt>Audit records lost</dt><dd>${count(facts.auditDropped)}</dd>
      </dl>`}<//>
    </section>`;
}
