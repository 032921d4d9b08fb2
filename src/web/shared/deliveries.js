/** Webhook deliveries of an application, each with its attempts, what it carried, how it was signed, and resending. */

import { html, useState } from '../vendor/preact.js';
import { Act, agoText, Copy, CopyText, Empty, Icon, Loaded, Table, Time, useCursor } from './ui.js';

const KINDS = { delivered: 'good', failed: 'bad', parked: 'bad', dropped: 'warn', split: 'warn' };
/** The reasons that there was no answer, by the class of the failure. */
const FAILURES = {
  blocked_address: 'address is not allowed',
  unresolved: 'name has no address',
  unreachable: 'no connection',
  timed_out: 'no answer in time',
  broken: 'connection broke',
};
/** Attempts that the server gives at once. */
const PAGE = 100;

/** Collapsed at first. `read(before)` resolves with a page of attempts, `resend(delivery)` sends one again. */
export function Deliveries({ read, resend }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary>Deliveries</summary>
    ${open && html`<${DeliveryList} load=${attemptsOf(read)} resend=${resend} />`}
  </details>`;
}

/** Pages of attempts of one application, the newest first, with what waits. */
export const attemptsOf = (read) => async (before) => {
  const { items, parked, oldestUndeliveredSeconds } = await read(before);
  const next = items.length < PAGE ? undefined : items[0].number;
  return { rows: items.reverse(), next, parked: parked.length, waits: oldestUndeliveredSeconds };
};

/** `load(next)`: as of `useCursor`, attempts the newest first. Without `resend` and `payload` there are no such buttons. */
export function DeliveryList({ load, resend, payload }) {
  const pages = useCursor(load, []);
  const again = async (delivery) => {
    await resend(delivery);
    await pages.reload();
  };
  return html`<${Loaded} of=${pages}>${({ parked = 0, waits }) => html`<div>
    <div class="row tools"><span class="soft small">${waitingText(waits, parked)}</span><div class="push"><button type="button" onClick=${pages.reload}>Refresh</button></div></div>
    ${
      pages.rows.length === 0
        ? html`<${Empty} icon="webhook"><p>No deliveries in the last 7 days.</p><//>`
        : html`<ul class="deliveries">${deliveriesOf(pages.rows).map((delivery) => html`<${Delivery} key=${delivery.key} delivery=${delivery} resend=${resend && again} payload=${payload} />`)}</ul>`
    }
    ${!pages.isWhole && html`<p class="more"><${Act} run=${pages.more}>Show older attempts<//></p>`}</div>`}<//>`;
}

function waitingText(seconds, parked) {
  const waits =
    seconds === undefined
      ? ''
      : seconds === null
        ? 'No pending events.'
        : `The oldest pending event is from ${agoText(Date.now() - 1_000 * seconds, Date.now())}.`;
  return parked === 0
    ? waits
    : `${waits} ${parked} refused ${parked === 1 ? 'event is' : 'events are'} parked.`;
}

/** Attempts by their webhook id, in the order of the newest of each. */
function deliveriesOf(attempts) {
  const found = new Map();
  for (const attempt of attempts) {
    const key = `${attempt.app?.id ?? ''} ${attempt.webhookId}`;
    const delivery = found.get(key) ?? { ...attempt, key, attempts: [] };
    delivery.attempts.push(attempt);
    found.set(key, delivery);
  }
  return [...found.values()];
}

const reasonOf = ({ status, class: failure }) => status ?? FAILURES[failure] ?? failure ?? '';

const ATTEMPTS = [
  { title: 'When', brief: true, cell: ({ utc }) => html`<${Time} of=${utc} />` },
  {
    title: 'Attempt',
    brief: true,
    cell: ({ attempt, source }) =>
      html`${attempt}${source === 'resend' && html` <span class="tag">resend</span>`}`,
  },
  {
    title: 'Outcome',
    brief: true,
    cell: (attempt) =>
      html`<span class=${`tag ${KINDS[attempt.outcome] ?? ''}`}>${attempt.outcome}</span> ${reasonOf(attempt)}`,
  },
  {
    title: 'Duration',
    number: true,
    cell: ({ milliseconds }) => `${milliseconds.toLocaleString('en')}\u00a0ms`,
  },
  { title: 'Answer', cell: ({ answer }) => answer && html`<span class="small wraps">${answer}</span>` },
  {
    title: 'Signature',
    brief: true,
    cell: ({ webhookId, signed }) =>
      signed &&
      html`<${CopyText} text=${headersOf(webhookId, signed)} shown=${`${signed.signature.slice(0, 9)}…`} what="headers with the signature" />`,
  },
];

/** Headers by which a receiver verifies the body. */
const headersOf = (webhookId, { timestamp, signature }) =>
  `webhook-id: ${webhookId}\nwebhook-timestamp: ${timestamp}\nwebhook-signature: ${signature}`;

/** A row that opens. The state is that of the newest attempt. */
function Delivery({ delivery, resend, payload }) {
  const [open, setOpen] = useState(false);
  const { webhookId, source, app, outcome, type, events, attempts, utc } = delivery;
  const name = source === 'ping' ? 'Test event' : (type ?? 'Events no longer kept');
  return html`<li><details class="delivery" onToggle=${(event) => setOpen(event.currentTarget.open)}>
    <summary><${Icon} name="chevron-right" /><span class=${`tag ${KINDS[outcome] ?? ''}`}>${outcome}</span>
      <span><strong>${name}</strong>${events > 1 && html` <span class="soft">and ${events - 1} more</span>`}${app !== undefined && html` <span class="soft">to ${app.name}</span>`}</span>
      <span class="soft small push">${outcome !== 'delivered' && html`${reasonOf(delivery)} · `}${attempts.length === 1 ? '1 attempt' : `${attempts.length} attempts`} · <${Time} of=${utc} /></span></summary>
    ${
      open &&
      html`<div>
      <p class="small soft">Webhook <${CopyText} text=${webhookId} shown=${webhookId} what="webhook id" /></p>
      <${Table} caption=${`Attempts of ${name}`} rows=${attempts} columns=${ATTEMPTS} keyOf=${({ number }) => number} />
      ${source !== 'ping' && html`<div class="row acts">${resend && html`<${Act} done="The delivery is sent again." run=${() => resend(delivery)}>Resend<//>`}${payload && html`<${Payload} load=${() => payload(delivery)} />`}</div>`}
    </div>`
    }
  </details></li>`;
}

/** Loaded at a press: each look is recorded. */
function Payload({ load }) {
  const [text, setText] = useState(undefined);
  if (text === undefined)
    return html`<${Act} inline run=${async () => setText(await load())}>Show payload<//>`;
  return html`<${Copy} text=${text} label="Copy payload" /><pre class="payload" tabindex="0" role="region" aria-label="Payload">${text}</pre>`;
}
