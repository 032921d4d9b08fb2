/** Live events of the account: transfers, messages, orders, and events of the gateway. */
import { openEvents } from '../shared/events.js';
import { pretty } from '../shared/mcp-client.js';
import { Empty, Time } from '../shared/ui.js';
import { html, useEffect, useState } from '../vendor/preact.js';

const SHOWN_MAX = 100;
const STATES = {
  connecting: { text: 'connecting …', kind: '' },
  live: { text: 'live', kind: 'good' },
  waiting: { text: 'connection lost, reconnecting …', kind: 'warn' },
  signedOut: { text: 'logged out', kind: 'bad' },
  refused: { text: 'refused', kind: 'bad' },
  closed: { text: 'closed', kind: '' },
};

export function EventsPart({ info }) {
  const [events, setEvents] = useState([]);
  const [state, setState] = useState('connecting');
  const [hasGap, setGap] = useState(false);
  const userId = info?.session?.userId;
  useEffect(() => {
    const add = ({ id, text, value }) => {
      const event = { id, type: value.type, module: value.module, text, utc: new Date().toISOString() };
      setEvents((shown) => [event, ...shown].slice(0, SHOWN_MAX));
    };
    const stream = openEvents({
      scope: userId,
      onEvent: add,
      onState: setState,
      onReset: () => setGap(true),
    });
    return () => stream.close();
  }, [userId]);
  const { text, kind } = STATES[state];
  return html`<h1>Live events</h1>
    <p class="soft">Events about your account in real time. All tabs share one connection. After an interruption, missed events arrive exactly once.</p>
    <section class="card">
      <header><h2>Events</h2><span class=${`tag ${kind}`} role="status">${text}</span></header>
      ${hasGap && html`<div class="note warn"><p>This page was disconnected for longer than events are kept. Some events are missing.</p></div>`}
      ${
        events.length === 0
          ? html`<${Empty} icon="radio"><p>No events yet. Call <code>wallet_internal_transfer</code> or <code>chat_send_message</code> under <a href="#tools">Try tools</a> in another tab to see an event here.</p><//>`
          : html`<ul class="feed" aria-live="polite">${events.map(
              (event) => html`<li key=${event.id}>
            <div class="row"><strong>${event.type}</strong><span class="tag">${event.module}</span><span class="soft small"><${Time} of=${event.utc} /></span></div>
            <details><summary class="small">Payload</summary><pre>${pretty(event.text)}</pre></details>
          </li>`,
            )}</ul>`
      }
    </section>`;
}
