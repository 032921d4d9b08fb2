/** Sessions of the account and its last logins; ending what should not be there. */
import { get, post } from '../shared/api.js';
import { Act, Ask, Empty, Loaded, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';

export function SessionsPart() {
  const sessions = useLoad(() => get('/auth/v1/sessions'), []);
  const log = useLoad(() => get('/auth/v1/login_log'), []);
  const close = async (body) => {
    await post('/auth/v1/close_sessions', body);
    await sessions.reload();
  };
  return html`<h1>Sessions</h1>
    <section class="card">
      <header><h2>Open now</h2><div class="push"><${Ask} label="End all others" confirm="End them" done="All other sessions have ended."
        question="Every other browser and agent is logged out at once." run=${() => close({ others: true })} /></div></header>
      <${Loaded} of=${sessions}>${(
        list,
      ) => html`<div class="scroll" tabindex="0" role="region" aria-label="Open sessions"><table>
        <thead><tr><th scope="col">What</th><th scope="col">From</th><th scope="col">Last seen</th><th scope="col">Ends</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
        <tbody>${list.map(
          (item) => html`<tr key=${item.id}>
          <td>${item.kind === 'mcp' ? `Agent, ${item.loginType}` : 'Browser'} ${item.current && html`<span class="tag good">this one</span>`}<br /><span class="small soft">${item.userAgent}</span></td>
          <td class="mono">${item.ip}</td>
          <td><${Time} of=${item.lastSeenUtc} /></td>
          <td><${Time} of=${item.expiresUtc} /></td>
          <td>${!item.current && html`<${Act} kind="danger" done="The session has ended." run=${() => close({ sessionIds: [item.id] })}>End<//>`}</td>
        </tr>`,
        )}</tbody></table></div>`}<//>
    </section>
    <section class="card">
      <header><h2>Last logins</h2></header>
      <${Loaded} of=${log}>${(list) =>
        list.length === 0
          ? html`<${Empty}><p>No logins yet.</p><//>`
          : html`<div class="scroll" tabindex="0" role="region" aria-label="Last logins"><table>
        <thead><tr><th scope="col">When</th><th scope="col">What</th><th scope="col">Outcome</th><th scope="col">From</th></tr></thead>
        <tbody>${list.map(
          (item) => html`<tr key=${item.id}>
          <td><${Time} of=${item.utc} /></td>
          <td>${item.event}${item.loginType === null ? '' : `, ${item.loginType}`}</td>
          <td>${item.ok ? html`<span class="tag good">ok</span>` : html`<span class="tag bad">${item.error ?? 'refused'}</span>`}</td>
          <td class="mono">${item.ip}</td>
        </tr>`,
        )}</tbody></table></div>`}<//>
    </section>`;
}
