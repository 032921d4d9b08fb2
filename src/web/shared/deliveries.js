/** Webhook deliveries of an application: attempts, parked events, and resending. */

import { html, useState } from '../vendor/preact.js';
import { Act, Empty, Loaded, ShortId, Table, Time, useLoad } from './ui.js';

const KINDS = { delivered: 'good', failed: 'bad', parked: 'bad', dropped: 'warn', split: 'warn' };

/** Collapsed at first. `load()` resolves with the newest deliveries, `resend(webhookId)` sends one again. */
export function Deliveries({ load, resend }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>Deliveries</summary>
    ${open && html`<${DeliveryList} load=${load} resend=${resend} />`}
  </details>`;
}

/** The column of a button that sends a delivery once more, by `again(delivery)`. */
export const resendColumn = (again) => ({
  title: 'Actions',
  action: true,
  cell: (delivery) =>
    delivery.source !== 'ping' &&
    html`<${Act} done="The delivery is sent again." run=${() => again(delivery)}>Resend<//>`,
});

/** `again(delivery)`: sends one once more; without it there are no buttons. */
export const deliveryColumns = (again) => [
  { title: 'When', cell: ({ utc }) => html`<${Time} of=${utc} />` },
  {
    title: 'Delivery',
    cell: ({ webhookId, source }) =>
      html`<${ShortId} id=${webhookId} />${source !== 'live' && html` <span class="tag">${source}</span>`}`,
  },
  { title: 'Events', number: true, cell: ({ events }) => events },
  {
    title: 'Outcome',
    cell: (item) =>
      html`<span class=${`tag ${KINDS[item.outcome] ?? ''}`}>${item.outcome}</span> ${item.status ?? item.class ?? ''}, attempt\u00a0${item.attempt}`,
  },
  { title: 'Duration', number: true, cell: ({ milliseconds }) => `${milliseconds}\u00a0ms` },
  { title: 'Answer', cell: ({ answer }) => answer && html`<span class="small wraps">${answer}</span>` },
  ...(again === undefined ? [] : [resendColumn(again)]),
];

/** The list without the collapsible header. */
export function DeliveryList({ load, resend, canResend = true }) {
  const page = useLoad(() => load(), []);
  const again = async ({ webhookId }) => {
    await resend(webhookId);
    await page.reload();
  };
  const columns = deliveryColumns(canResend ? again : undefined);
  return html`<${Loaded} of=${page}>${({ items, parked, oldestUndeliveredSeconds }) => html`
    <div class="row"><span class="soft small">${oldestUndeliveredSeconds === null ? 'No pending events.' : `The oldest pending event is ${oldestUndeliveredSeconds} s old.`} ${parked.length > 0 ? `${parked.length} refused events are parked.` : ''}</span><button type="button" onClick=${page.reload}>Refresh</button></div>
    ${
      items.length === 0
        ? html`<${Empty}><p>No deliveries in the last 7 days.</p><//>`
        : html`<${Table} caption="Deliveries" rows=${[...items].reverse()} columns=${columns} keyOf=${({ number }) => number} />`
    }`}<//>`;
}
