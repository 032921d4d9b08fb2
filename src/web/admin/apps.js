/** Applications of all accounts: approval, MCP logins, webhooks and their deliveries. */
import { get, post } from '../shared/api.js';
import { attemptsOf, DeliveryList } from '../shared/deliveries.js';
import { PagedTable, useLoad, usePages } from '../shared/ui.js';
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { AppActs, appColumns, deliveryActs, UNREGISTERED, Webhook } from './account/app-parts.js';
import { count } from './figures.js';
import { Csv } from './who.js';

const PAGE = 100;
/** Applications that are counted, at most: a page of the largest size. */
const COUNTED_MAX = 1_000;

/** `query`: the application whose deliveries are shown, where a link names it as `deliveries`. */
export function AppsPage({ info, role, query }) {
  const [waitingOnly, setWaitingOnly] = useState(false);
  const filter = waitingOnly ? { approved: false } : {};
  const pages = usePages(
    (after) => get('/ProxyAdmin/api/apps', { after, limit: PAGE, newest: true, ...filter }),
    ({ id }) => id,
    PAGE,
    [waitingOnly],
  );
  const waiting = useLoad(() => get('/ProxyAdmin/api/apps', { approved: false, limit: COUNTED_MAX }), []);
  const [shown, setShown] = useState(query.get('deliveries') ?? undefined);
  const deliveries = useRef(null);
  // The list is below the table: the heading takes the focus, and the page scrolls to it.
  useEffect(() => deliveries.current?.focus(), [shown, pages.value === undefined]);
  const change = async (appId, flags) => {
    await post('/ProxyAdmin/api/apps/update', { appId, ...flags });
    await Promise.all([pages.reload(), waiting.reload()]);
  };
  const webhook = {
    title: 'Webhook',
    cell: (app) =>
      app.webhookUrl
        ? html`<${Webhook} app=${app} /> <button type="button" class="plain" onClick=${() => setShown(app.id)}>Deliveries<span class="hidden"> of ${app.name}</span></button>`
        : html`<span class="soft">none</span>`,
  };
  const columns = [
    ...appColumns,
    ...(info.features.includes('webhooks') ? [webhook] : []),
    {
      title: 'Actions',
      action: true,
      cell: (app) =>
        role === 'admin' && html`<${AppActs} app=${app} change=${(flags) => change(app.id, flags)} />`,
    },
  ];
  const chosen = pages.rows.find(({ id }) => id === shown);
  return html`<section class="card">
      <div class="tools"><label class="check"><input type="checkbox" checked=${waitingOnly} onChange=${(event) => setWaitingOnly(event.currentTarget.checked)} />Only those without an approval</label><span class="small soft" role="status">${pendingText(waiting.value)}</span><div class="push"><${Csv} list="applications" query=${filter} /></div></div>
      <${PagedTable} pages=${pages} columns=${columns} keyOf=${({ id }) => id} caption="Applications" icon="app-window" empty="No applications yet." /></section>
    ${
      shown !== undefined &&
      html`<section class="card"><header><h2 ref=${deliveries} tabindex="-1">Deliveries of ${chosen?.name ?? `application …${shown.slice(-4)}`}</h2></header>
      <${DeliveryList} key=${shown} load=${attemptsOf((before) => get('/ProxyAdmin/api/deliveries', { appId: shown, before }))} ...${role === 'viewer' ? {} : deliveryActs(() => shown)} /></section>`
    }`;
}

/** Switched-off ones are decided. */
function pendingText(apps) {
  if (apps === undefined) return '';
  const waiting = apps.filter(({ disabled, id }) => !disabled && id !== UNREGISTERED).length;
  const more = apps.length === COUNTED_MAX ? ' or more' : '';
  return waiting === 1
    ? '1 application waits for approval.'
    : `${count(waiting)}${more} applications wait for approval.`;
}
