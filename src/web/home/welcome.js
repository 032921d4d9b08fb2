/** The home page without a session: what the gateway is for, log-in and sign-up. */
import { LogIn, SignUp } from '../shared/enter.js';
import { html } from '../vendor/preact.js';
import { Address } from './address.js';

/** `children`: a note above the log-in. */
export function Welcome({ info, onEnter, children }) {
  return html`<div class="welcome">
    <section>
      <h1>One entry point for people and agents</h1>
      <p>Log in once. Give each agent its own key, control what it can do, review every call, and revoke the key at any time.</p>
      <ul>
        <li>Tools over MCP, with limits and an audit trail</li>
        ${info.features.includes('files') && html`<li>Files with checksums and resumable uploads</li>`}
        ${info.features.includes('streams') && html`<li>Events in real time, here and as webhooks</li>`}
      </ul>
      <h2>Paste this address into an MCP host</h2>
      <p>The host opens a page here, where you log in or sign up and agree.</p>
      <${Address} info=${info} />
      <p class="small soft">${info.project}, version ${info.version}</p>
    </section>
    <section>
      ${children}
      <${LogIn} info=${info} onEnter=${onEnter} />
      <${SignUp} onEnter=${onEnter} />
    </section>
  </div>`;
}
