/** Sessions of the account, ending them, and its recent logins. */
import { get, post } from '../shared/api.js';
import { Device } from '../shared/device.js';
import { Act, Ask, Empty, Loaded, Table, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';

const LOGINS = [
  { title: 'When', cell: ({ utc }) => html`<${Time} of=${utc} />` },
  {
    title: 'What',
    cell: ({ event, loginType }) =>
      `${event.replaceAll('_', ' ')}${loginType === null ? '' : `, ${loginType}`}`,
  },
  {
    title: 'Outcome',
    cell: ({ ok, error }) =>
      ok ? html`<span class="tag good">ok</span>` : html`<span class="tag bad">${error ?? 'refused'}</span>`,
  },
  { title: 'From', cell: ({ ip }) => html`<span class="mono">${ip}</span>` },
];

export function SessionsPart() {
  const sessions = useLoad(() => get('/auth/v1/sessions'), []);
  const log = useLoad(() => get('/auth/v1/login_log'), []);
  const close = async (body) => {
    await post('/auth/v1/close_sessions', body);
    await sessions.reload();
  };
  const open = [
    {
      title: 'Session',
      cell: (item) =>
        html`${item.kind === 'mcp' ? `Agent, ${item.loginType}` : 'Browser'} ${item.current && html`<span class="tag good">current</span>`}<br /><span class="small soft"><${Device} userAgent=${item.userAgent} /></span>`,
    },
    { title: 'From', cell: ({ ip }) => html`<span class="mono">${ip}</span>` },
    { title: 'Last seen', cell: ({ lastSeenUtc }) => html`<${Time} of=${lastSeenUtc} />` },
    { title: 'Ends', cell: ({ expiresUtc }) => html`<${Time} of=${expiresUtc} />` },
    {
      title: 'Actions',
      action: true,
      cell: ({ current, id }) =>
        !current &&
        html`<${Act} kind="danger" done="The session has ended." run=${() => close({ sessionIds: [id] })}>End<//>`,
    },
  ];
  return html`<h1>Sessions</h1>
    <section class="card">
      <header><h2>Open now</h2><div class="push"><${Ask} label="End all others" title="End all other sessions?" confirm="End them" done="All other sessions have ended."
        question="Every other browser and agent is logged out immediately." run=${() => close({ others: true })} /></div></header>
      <${Loaded} of=${sessions}>${(list) => html`<${Table} caption="Open sessions" rows=${list} columns=${open} keyOf=${({ id }) => id} />`}<//>
    </section>
    <section class="card">
      <header><h2>Recent logins</h2></header>
      <${Loaded} of=${log}>${(list) =>
        list.length === 0
          ? html`<${Empty}><p>No logins yet.</p><//>`
          : html`<${Table} caption="Recent logins" rows=${list} columns=${LOGINS} keyOf=${({ id }) => id} />`}<//>
    </section>`;
}
