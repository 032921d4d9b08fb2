/** Actors that failed: those in quarantine, and messages that were given up. */
import { get, post } from '../shared/api.js';
import { Act, Ask, Empty, Loaded, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';

export function ActorsPage({ role }) {
  const actors = useLoad(() => get('/ProxyAdmin/api/actors'), []);
  const act = async (path, body) => {
    await post(`/ProxyAdmin/api/actors/${path}`, body);
    await actors.reload();
  };
  const canAct = role === 'admin';
  return html`<${Loaded} of=${actors}>${({ failing, dead }) => html`
    <section class="card"><header><h2>Failing</h2><div class="push"><button type="button" onClick=${actors.reload}>Refresh</button></div></header>
      ${
        failing.length === 0
          ? html`<${Empty}><p>All actors are well.</p><//>`
          : html`<div class="scroll" tabindex="0" role="region" aria-label="Failing actors"><table><thead><tr><th scope="col">Actor</th><th scope="col">State</th><th scope="col" class="number">Failures</th><th scope="col">Act</th></tr></thead>
            <tbody>${failing.map(
              ({
                kind,
                id,
                quarantined,
                failures,
              }) => html`<tr key=${`${kind} ${id}`}><td class="mono">${kind} ${id}</td><td><span class=${`tag ${quarantined ? 'bad' : 'warn'}`}>${quarantined ? 'quarantined' : 'backing off'}</span></td><td class="number">${failures}</td>
              <td>${canAct && html`<div class="row"><${Act} done="It is tried again." run=${() => act('reset', { kind, id })}>Try again<//><${Ask} label="Skip" confirm="Skip its next message" done="The message was given up." question="The message that it fails on becomes a dead letter, and the actor goes on with the next." run=${() => act('skip', { kind, id })} /></div>`}</td></tr>`,
            )}</tbody></table></div>`
      }
    </section>
    <section class="card"><header><h2>Dead letters</h2></header>
      ${
        dead.length === 0
          ? html`<${Empty}><p>No message was given up.</p><//>`
          : html`<div class="scroll" tabindex="0" role="region" aria-label="Dead letters"><table><thead><tr><th scope="col">When</th><th scope="col">For</th><th scope="col">Message</th><th scope="col">Why</th><th scope="col">Act</th></tr></thead>
            <tbody>${dead.map(
              ({
                timeMs,
                kind,
                id,
                seq,
                utc,
                reason,
                command,
              }) => html`<tr key=${`${timeMs} ${kind} ${id} ${seq}`}><td><${Time} of=${utc} /></td><td class="mono">${kind} ${id}</td><td><code>${command ?? 'unknown'}</code></td><td>${reason}</td>
              <td>${canAct && html`<${Ask} label="Remove" confirm="Remove it" done="It is gone." question="The message is removed for good." run=${() => act('discard', { timeMs, kind, id, seq })} />`}</td></tr>`,
            )}</tbody></table></div>`
      }
    </section>`}<//>`;
}
