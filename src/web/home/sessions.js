/** Sessions of the account, ending them, and its recent logins. */
import { get, post } from '../shared/api.js';
import { Device } from '../shared/device.js';
import { LOGINS } from '../shared/logins.js';
import { Act, Ask, Empty, Loaded, Table, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';

const inWords = (event) => event.charAt(0).toUpperCase() + event.slice(1).replaceAll('_', ' ');

const COLUMNS = [
  {
    title: 'What',
    head: true,
    cell: ({ event, loginType }) =>
      `${inWords(event)}${loginType === null ? '' : `, ${LOGINS[loginType] ?? loginType}`}`,
  },
  { title: 'When', brief: true, cell: ({ utc }) => html`<${Time} of=${utc} />` },
  {
    title: 'Outcome',
    brief: true,
    cell: ({ ok, error }) =>
      ok ? html`<span class="tag good">ok</span>` : html`<span class="tag bad">${error ?? 'refused'}</span>`,
  },
  { title: 'From', brief: true, cell: ({ ip }) => ip && html`<span class="mono">${ip}</span>` },
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
      head: true,
      cell: (item) =>
        html`<strong>${item.kind === 'mcp' ? `Agent, ${LOGINS[item.loginType] ?? item.loginType}` : 'Browser'}</strong> ${item.current && html`<span class="tag good">current</span>`}<br /><span class="small soft"><${Device} userAgent=${item.userAgent} /></span>`,
    },
    { title: 'From', brief: true, cell: ({ ip }) => html`<span class="mono">${ip}</span>` },
    { title: 'Last seen', brief: true, cell: ({ lastSeenUtc }) => html`<${Time} of=${lastSeenUtc} />` },
    { title: 'Ends', brief: true, cell: ({ expiresUtc }) => html`<${Time} of=${expiresUtc} />` },
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
          ? html`<${Empty} icon="log-in"><p>No logins yet.</p><//>`
          : html`<${Table} caption="Recent logins" rows=${list} columns=${COLUMNS} keyOf=${({ id }) => id} />`}<//>
    </section>`;
}
