/** Webhook deliveries of an application: what went out, how it fared, what is parked, and sending again. */

import { html, useState } from '../vendor/preact.js';
import { Act, Empty, Loaded, Time, useLoad } from './ui.js';

const KINDS = { delivered: 'good', failed: 'bad', parked: 'bad', dropped: 'warn', split: 'warn' };

/** Closed until somebody opens it. `load()` resolves with the newest deliveries, `resend(webhookId)` sends one again. */
export function Deliveries({ load, resend }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>Deliveries</summary>
    ${open && html`<${DeliveryList} load=${load} resend=${resend} />`}
  </details>`;
}

/** The same, open. */
export function DeliveryList({ load, resend, canResend = true }) {
  const page = useLoad(() => load(), []);
  const again = async (webhookId) => {
    await resend(webhookId);
    await page.reload();
  };
  return html`<${Loaded} of=${page}>${({ items, parked, oldestUndeliveredSeconds }) => html`
    <div class="row"><span class="soft small">${oldestUndeliveredSeconds === null ? 'Nothing waits.' : `The oldest event waits for ${oldestUndeliveredSeconds} s.`} ${parked.length > 0 ? `${parked.length} refused events are parked.` : ''}</span><button type="button" onClick=${page.reload}>Refresh</button></div>
    ${
      items.length === 0
        ? html`<${Empty}><p>Nothing was sent in the last 7 days.</p><//>`
        : html`<div class="scroll" tabindex="0" role="region" aria-label="Deliveries"><table>
          <thead><tr><th scope="col">When</th><th scope="col">Delivery</th><th scope="col" class="number">Events</th><th scope="col">Outcome</th><th scope="col" class="number">ms</th><th scope="col">Answer</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
          <tbody>${[...items].reverse().map(
            (item) => html`<tr key=${item.number}>
            <td><${Time} of=${item.utc} /></td>
            <td><span class="mono">${item.webhookId}</span>${item.source !== 'live' && html` <span class="tag">${item.source}</span>`}</td>
            <td class="number">${item.events}</td>
            <td><span class=${`tag ${KINDS[item.outcome] ?? ''}`}>${item.outcome}</span> ${item.status ?? item.class ?? ''}, attempt ${item.attempt}</td>
            <td class="number">${item.milliseconds}</td>
            <td class="small">${item.answer}</td>
            <td>${canResend && item.source !== 'ping' && html`<${Act} done="It is sent again." run=${() => again(item.webhookId)}>Send again<//>`}</td>
          </tr>`,
          )}</tbody></table></div>`
    }`}<//>`;
}
