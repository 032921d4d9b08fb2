/** The audit log and the login log: filters, the newest first, a page at a time. */
import { get, getPage } from '../../shared/api.js';
import { PagedTable, Time, useCursor, useLoad } from '../../shared/ui.js';
import { html } from '../../vendor/preact.js';
import { moveTo } from '../address.js';
import { count } from '../figures.js';
import { Filters } from '../folded.js';
import { Csv, Who } from '../who.js';
import { Details } from './details.js';
import { sentenceOf } from './sentences.js';

export const AUDIT = '/ProxyAdmin/api/audit';
const FILTERS = ['userId', 'event', 'ring', 'from', 'to', 'node'];
const RINGS = {
  admin: 'Admin acts',
  accounts: 'Keys and applications',
  logins: 'Logins',
  unproven: 'Refusals and codes',
  calls: 'Calls, files and deliveries',
};

export const auditColumns = [
  {
    title: 'When',
    bare: true,
    cell: ({ utc }) => (utc === null ? html`<span class="soft">unknown</span>` : html`<${Time} of=${utc} />`),
  },
  { title: 'What', bare: true, cell: (record) => html`<${Sentence} record=${record} />` },
  { title: 'Details', bare: true, cell: (record) => html`<${Details} ...${record} />` },
];

/** A sentence with the actor, the act and its target; its event below. */
function Sentence({ record }) {
  const { who, words, of, whom } = sentenceOf(record);
  return html`<span class="sentence">${who === null ? 'A caller without a login' : html`<${Who} ...${who} />`} ${words}${whom !== null && html` ${of} <${Who} ...${whom} />`}</span><br /><code class="small soft">${record.event}</code>`;
}

/** Column of a cluster alone. */
const nodeColumn = {
  title: 'Node',
  cell: ({ node }) => node ?? html`<span class="soft">all</span>`,
};

export const recordKey = ({ seq, node, utc }) => `${node} ${utc} ${seq}`;

const isoOf = (local) => (local === '' ? '' : new Date(local).toISOString());

const shownNode = (query, place) => query.get('node') || place.node;

/** Each node that keeps its own records of calls has a log of its own. */
function OwnCalls({ query, place }) {
  return html`<p class="small soft">Of calls, refusals and reloads this page has those of ${shownNode(query, place)}. Other nodes keep their own.</p>`;
}

/** The form of a time input, in the zone of the reader. */
function localOf(iso) {
  const date = new Date(iso ?? '');
  if (Number.isNaN(date.getTime())) return '';
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

/** `preset`: the ring that is shown unless another is chosen. `place`: where records of calls are kept. */
function Filter({ query, events, rings, preset, place }) {
  const value = (name) => query.get(name) ?? '';
  const show = (event) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    const what = String(fields.get('what'));
    moveTo({
      userId: String(fields.get('userId')).trim(),
      event: what.startsWith('ring:') ? '' : what,
      ring: what.startsWith('ring:') ? what.slice('ring:'.length) : '',
      from: isoOf(String(fields.get('from'))),
      to: isoOf(String(fields.get('to'))),
      node: String(fields.get('node') ?? ''),
    });
  };
  const ring = value('ring') || (preset ?? '');
  const chosen = value('event') || (ring && `ring:${ring}`);
  const set = FILTERS.filter((name) => value(name) !== '').length;
  return html`<${Filters} kind="card" set=${set} onSubmit=${show}>
    <div><label for="what">What</label>
      <select id="what" name="what">
        ${preset === undefined && html`<option value="" selected=${chosen === ''}>Everything</option>`}
        ${rings.map(
          (name) => html`<optgroup key=${name} label=${RINGS[name]}>
          <option value=${`ring:${name}`} selected=${chosen === `ring:${name}`}>${RINGS[name]}: all</option>
          ${events.filter((each) => each.ring === name).map(({ event }) => html`<option key=${event} value=${event} selected=${chosen === event}>${event}</option>`)}
        </optgroup>`,
        )}
      </select></div>
    <div><label for="userId">Account id</label><input id="userId" name="userId" inputmode="numeric" pattern="[0-9]{1,19}" title="Digits only" defaultValue=${value('userId')} /></div>
    <div><label for="from">From</label><input id="from" name="from" type="datetime-local" step="1" defaultValue=${localOf(query.get('from'))} /></div>
    <div><label for="to">To</label><input id="to" name="to" type="datetime-local" step="1" defaultValue=${localOf(query.get('to'))} /></div>
    ${
      place.calls === 'node' &&
      html`<div><label for="node">Node</label>
      <select id="node" name="node">
        ${place.nodes.map((name) => html`<option key=${name} value=${name} selected=${name === shownNode(query, place)}>${name}</option>`)}
      </select></div>`
    }
    <div class="row"><button type="submit" class="primary">Show</button>${set > 0 && html`<button type="button" onClick=${() => moveTo({})}>Clear</button>`}</div>
  <//>`;
}

function Records({ query, preset, rings, caption }) {
  const events = useLoad(() => get(`${AUDIT}/events`), []);
  const place = useLoad(() => get(`${AUDIT}/nodes`), []).value ?? { calls: 'gateway', node: null, nodes: [] };
  const filter = preset === undefined ? {} : { ring: preset };
  for (const name of FILTERS) if (query.get(name)) filter[name] = query.get(name);
  if (filter.event !== undefined) filter.ring = undefined;
  const pages = useCursor((next) => (next === undefined ? getPage(AUDIT, filter) : getPage(next)), []);
  const exported = Object.fromEntries(Object.entries(filter).filter(([, value]) => value !== undefined));
  const isFiltered = Object.keys(filter).length > 0;
  const ending = isFiltered ? 'No matching records.' : 'The log is empty.';
  return html`<${Filter} query=${query} events=${events.value ?? []} rings=${rings} preset=${preset} place=${place} />
    <section class="card"><header><h2>${caption}</h2><div class="push"><${Csv} list="audit" query=${exported} /></div></header>${place.calls === 'node' && html`<${OwnCalls} query=${query} place=${place} />`}
      <${PagedTable} pages=${pages} columns=${place.calls === 'gateway' ? auditColumns : [...auditColumns, nodeColumn]} keyOf=${recordKey} caption=${caption}
      empty=${pages.isWhole ? ending : 'No match in the records searched so far. Each page searches 20,000 records.'}
      more=${pages.rows.length === 0 ? 'Continue with older records' : 'Show older records'} />
      ${pages.isWhole && pages.rows.length > 0 && html`<p class="small soft more">${pages.rows.length === 1 ? 'One record' : `${count(pages.rows.length)} records`}. End of the log.</p>`}</section>`;
}

export function AuditPage({ query }) {
  return html`<${Records} query=${query} rings=${Object.keys(RINGS)} caption="Audit log" />`;
}

export function LoginLogPage({ query }) {
  return html`<${Records} query=${query} preset="logins" rings=${['logins', 'unproven']} caption="Logins and refusals" />`;
}
