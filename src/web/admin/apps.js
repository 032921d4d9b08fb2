/** Applications of all accounts: approval, MCP logins, webhooks and their deliveries. */
import { get, post } from '../shared/api.js';
import { DeliveryList } from '../shared/deliveries.js';
import { Act, Ask, PagedTable, useLoad, usePages } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

const PAGE = 100;
/** Applications that are counted, at most: a page of the largest size. */
const COUNTED_MAX = 1_000;
/** Holds every MCP host that no application describes; no account owns it, so only its switch can be changed. */
const UNREGISTERED = '1';

export function AppsPage({ info, role }) {
  const [waitingOnly, setWaitingOnly] = useState(false);
  const pages = usePages(
    (after) => get('/ProxyAdmin/api/apps', { after, limit: PAGE, approved: waitingOnly ? false : undefined }),
    ({ id }) => id,
    PAGE,
    [waitingOnly],
  );
  const waiting = useLoad(() => get('/ProxyAdmin/api/apps', { approved: false, limit: COUNTED_MAX }), []);
  const [shown, setShown] = useState(undefined);
  const change = async (appId, flags) => {
    await post('/ProxyAdmin/api/apps/update', { appId, ...flags });
    await Promise.all([pages.reload(), waiting.reload()]);
  };
  const acts = (app) => (app.id === UNREGISTERED ? unregisteredActs(app) : ownActs(app));
  const unregisteredActs = (app) =>
    app.disabled
      ? html`<${Act} kind="primary" done="Unregistered hosts may connect." run=${() => change(app.id, { disabled: false })}>Switch on<//>`
      : html`<${Ask} label="Switch off" title="Switch unregistered hosts off?" confirm="Switch them off" done="Unregistered hosts are switched off." question="All MCP hosts that no application describes lose access immediately, in every account. People must connect them again after you switch them on." run=${() => change(app.id, { disabled: true })} />`;
  const ownActs = (app) => html`<div class="row">
    ${
      app.approved
        ? html`<${Ask} label="Withdraw" title="Withdraw the approval?" confirm="Withdraw the approval" done="The approval is withdrawn." question="Agents can no longer log in for it, and their sessions end." run=${() => change(app.id, { approved: false })} />`
        : html`<${Act} kind="primary" done="The application is approved." run=${() => change(app.id, { approved: true })}>Approve<//>`
    }
    <${Act} run=${() => change(app.id, { mcpEnabled: !app.mcpEnabled })}>${app.mcpEnabled ? 'Forbid MCP' : 'Allow MCP'}<//>
  </div>`;
  const webhook = {
    title: 'Webhook',
    cell: (app) =>
      app.webhookUrl
        ? html`<${Webhook} app=${app} /> <button type="button" class="plain" onClick=${() => setShown(app.id)}>Deliveries<span class="hidden"> of ${app.name}</span></button>`
        : html`<span class="soft">none</span>`,
  };
  const columns = [
    {
      title: 'Application',
      cell: (app) =>
        html`<strong>${app.name}</strong><br /><span class="small soft wraps">${app.id === UNREGISTERED ? 'MCP hosts that no application describes' : app.url}</span><br /><span class="mono small">${app.id}</span>${app.redirectUris?.length > 0 && html`<br /><span class="small soft">Connects by ${app.redirectUris.map((uri) => html`<span key=${uri} class="mono wraps">${uri} </span>`)}</span>`}`,
    },
    {
      title: 'Owner',
      cell: ({ ownerId }) =>
        ownerId === '0'
          ? html`<span class="soft">the gateway</span>`
          : html`<a class="mono" href=${`/ProxyAdmin/UserKeys?userId=${ownerId}`}>${ownerId}</a>`,
    },
    {
      title: 'State',
      cell: (app) =>
        html`<span class="tags">${app.disabled ? html`<span class="tag bad">switched off</span>` : html`<span class=${`tag ${app.approved ? 'good' : 'warn'}`}>${app.approved ? 'approved' : 'pending approval'}</span>`}${app.mcpEnabled && html`<span class="tag good">MCP</span>`}</span>`,
    },
    ...(info.features.includes('webhooks') ? [webhook] : []),
    { title: 'Actions', cell: (app) => role === 'admin' && acts(app) },
  ];
  const chosen = pages.rows.find(({ id }) => id === shown);
  return html`<div class="filter"><label class="row"><input type="checkbox" checked=${waitingOnly} onChange=${(event) => setWaitingOnly(event.currentTarget.checked)} /> Only those without an approval</label><p role="status">${pendingText(waiting.value)}</p></div>
    <section class="card"><${PagedTable} pages=${pages} columns=${columns} keyOf=${({ id }) => id} caption="Applications" empty="No applications yet." /></section>
    ${
      chosen !== undefined &&
      html`<section class="card"><header><h2>Deliveries of ${chosen.name}</h2></header>
      <${DeliveryList} key=${chosen.id} load=${() => get('/ProxyAdmin/api/deliveries', { appId: chosen.id })} resend=${(webhookId) => post('/ProxyAdmin/api/resend', { appId: chosen.id, webhookId })} canResend=${role !== 'viewer'} /></section>`
    }`;
}

/** Switched-off ones are decided. */
function pendingText(apps) {
  if (apps === undefined) return '';
  const count = apps.filter(({ disabled, id }) => !disabled && id !== UNREGISTERED).length;
  const more = apps.length === COUNTED_MAX ? ' or more' : '';
  return count === 1
    ? '1 application waits for approval.'
    : `${count}${more} applications wait for approval.`;
}

const KINDS = { active: 'good', failing: 'warn', disabled: 'bad' };

function Webhook({ app }) {
  const { state } = app.webhook;
  const oldest = app.oldestUndeliveredSeconds;
  return html`<span class="small wraps">${app.webhookUrl}</span><br />
    <span class="small soft">${app.success_count} delivered, ${app.failed_count} failed${oldest === null ? '' : `, oldest pending ${oldest} s`}</span><br />
    <span class=${`tag ${KINDS[state] ?? ''}`}>${state}</span>`;
}
