/** An application in a list: what it is, its state, its webhook, and what an admin may change. */
import { get, post } from '../../shared/api.js';
import { Act, Ask, ShortId } from '../../shared/ui.js';
import { html } from '../../vendor/preact.js';
import { count } from '../figures.js';
import { Who } from '../who.js';

/** Holds every MCP host that no application describes; no account owns it, so only its switch can be changed. */
export const UNREGISTERED = '1';

const application = {
  title: 'Application',
  head: true,
  cell: (app) =>
    html`<strong>${app.name}</strong> ${app.id !== UNREGISTERED && html`<${ShortId} id=${app.id} />`}<br /><span class="small soft wraps">${app.id === UNREGISTERED ? 'MCP hosts that no application describes' : app.url}</span>${app.redirectUris?.length > 0 && html`<br /><span class="small soft">Connects by ${app.redirectUris.map((uri) => html`<span key=${uri} class="mono wraps">${uri} </span>`)}</span>`}`,
};

const owner = {
  title: 'Owner',
  brief: true,
  cell: ({ ownerId, nickname }) =>
    ownerId === '0'
      ? html`<span class="soft">the gateway</span>`
      : html`<${Who} id=${ownerId} nickname=${nickname} />`,
};

const state = {
  title: 'State',
  brief: true,
  cell: (app) =>
    html`<span class="tags">${app.disabled ? html`<span class="tag bad">switched off</span>` : html`<span class=${`tag ${app.approved ? 'good' : 'warn'}`}>${app.approved ? 'approved' : 'pending approval'}</span>`}${app.mcpEnabled && html`<span class="tag good">MCP</span>`}</span>`,
};

export const appColumns = [application, owner, state];
/** Columns of the list of one account's applications. */
export const ownAppColumns = [application, state];

/** `change(flags)`. */
export function AppActs({ app, change }) {
  return app.id === UNREGISTERED
    ? html`<${Switch} app=${app} change=${change} />`
    : html`<${Approval} app=${app} change=${change} />`;
}

function Switch({ app, change }) {
  return app.disabled
    ? html`<${Act} kind="primary" done="Unregistered hosts may connect." run=${() => change({ disabled: false })}>Switch on<//>`
    : html`<${Ask} label="Switch off" title="Switch unregistered hosts off?" confirm="Switch them off" done="Unregistered hosts are switched off." question="All MCP hosts that no application describes lose access immediately, in every account. People must connect them again after you switch them on." run=${() => change({ disabled: true })} />`;
}

function Approval({ app, change }) {
  return html`<div class="row">
    ${
      app.approved
        ? html`<${Ask} label="Withdraw" title="Withdraw the approval?" confirm="Withdraw the approval" done="The approval is withdrawn." question="Agents can no longer log in for it, and their sessions end." run=${() => change({ approved: false })} />`
        : html`<${Act} kind="primary" done="The application is approved." run=${() => change({ approved: true })}>Approve<//>`
    }
    <${Act} run=${() => change({ mcpEnabled: !app.mcpEnabled })}>${app.mcpEnabled ? 'Forbid MCP' : 'Allow MCP'}<//>
  </div>`;
}

const KINDS = { active: 'good', failing: 'warn', disabled: 'bad' };

export function Webhook({ app }) {
  const { state } = app.webhook;
  const oldest = app.oldestUndeliveredSeconds;
  return html`<span class="small wraps">${app.webhookUrl}</span><br />
    <span class="small soft">${count(app.success_count)} delivered, ${count(app.failed_count)} failed${oldest === null ? '' : `, oldest pending ${count(oldest)} s`}</span><br />
    <span class=${`tag ${KINDS[state] ?? ''}`}>${state}</span>`;
}

/** Acts on a delivery of the application that `appOf(delivery)` names, for `DeliveryList`. */
export const deliveryActs = (appOf) => ({
  resend: (delivery) =>
    post('/ProxyAdmin/api/resend', { appId: appOf(delivery), webhookId: delivery.webhookId }),
  payload: async (delivery) => {
    const query = { appId: appOf(delivery), webhookId: delivery.webhookId };
    return (await get('/ProxyAdmin/api/delivery', query)).payload;
  },
});
