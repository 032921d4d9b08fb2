/** The address for MCP hosts, and how each known host takes it. */
import { get } from '../shared/api.js';
import { Copy, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { HOST_SNIPPETS } from './host-snippets.js';

const addressOf = ({ baseUrl }) => `${baseUrl}/connect/mcp`;

export function Address({ info }) {
  return html`<div class="address"><code>${addressOf(info)}</code><${Copy} text=${addressOf(info)} label="Copy the address" /></div>`;
}

/** Addresses with fewer tools. Nothing is shown without profiles. */
function Profiles() {
  const { value = [] } = useLoad(() => get('/auth/v1/mcp_profiles'), []);
  if (value.length === 0) return null;
  return html`<h3>Fewer tools</h3>
    <p class="small soft">Each address offers a part of the tools.</p>
    ${value.map(
      ({ name, title, address }) =>
        html`<div class="address" key=${name}><span>${title}</span><code>${address}</code><${Copy} text=${address} label=${`Copy the address of ${title}`} /></div>`,
    )}`;
}

export function AddressPart({ info }) {
  const address = addressOf(info);
  return html`<section class="card">
    <header><h2>Paste this address into your MCP host</h2></header>
    <p>The host opens a page here. Log in, read what it asks for, and agree. No token is pasted, and you can end it under <a href="#hosts">Connected hosts</a>.</p>
    <${Address} info=${info} />
    <p class="hint">In Claude and ChatGPT: Settings, Connectors, add a custom connector. They call from their own servers, so they need a public https address.</p>
    <${Profiles} />
    <h3>By host</h3>
    ${HOST_SNIPPETS.map(
      ({ name, where, text }) => html`<details key=${name} name="hosts">
        <summary>${name}</summary>
        <p class="small soft">${where}</p>
        <pre tabindex="0" role="region" aria-label=${`For ${name}`}>${text(address)}</pre>
        <div class="row"><${Copy} text=${text(address)} label=${`Copy for ${name}`} /></div>
      </details>`,
    )}
  </section>`;
}
