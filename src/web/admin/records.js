/** What happened: audit, logins, events, and the uploads that are open. The newest first. */
import { get } from '../shared/api.js';
import { Empty, Loaded, PagedTable, Time, useLoad, usePages } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

const PAGE = 100;
/** Before every position there is. */
const END = Number.MAX_SAFE_INTEGER;

function useAudit() {
  return usePages(
    (before) => get('/ProxyAdmin/api/audit', { before: before ?? END, limit: PAGE }),
    ({ seq }) => seq,
    PAGE,
    [],
  );
}

const columns = [
  { title: 'When', cell: ({ utc }) => html`<${Time} of=${utc} />` },
  { title: 'What', cell: ({ event }) => html`<code>${event}</code>` },
  {
    title: 'Account',
    cell: ({ userId }) =>
      userId === null
        ? html`<span class="soft">none</span>`
        : html`<a class="mono" href=${`/ProxyAdmin/Sessions?userId=${userId}`}>${userId}</a>`,
  },
  {
    title: 'Details',
    cell: ({ fields }) =>
      html`<span class="small">${Object.entries(fields).map(([name, value]) => html`<span key=${name}><span class="soft">${name}</span> ${String(value)} </span>`)}</span>`,
  },
];

/** Rows whose text holds the word, of those that are loaded. */
function Rows({ pages, keep = () => true, caption, empty }) {
  const [search, setSearch] = useState('');
  const word = search.trim().toLowerCase();
  const rows = pages.rows.filter((row) => keep(row) && JSON.stringify(row).toLowerCase().includes(word));
  return html`<div class="filter"><label for="search">Search what is loaded</label><input id="search" type="search" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} /></div>
    <section class="card"><${PagedTable} pages=${{ ...pages, rows }} columns=${columns} keyOf=${({ seq }) => seq} caption=${caption} empty=${empty} /></section>`;
}

export function AuditPage() {
  return html`<${Rows} pages=${useAudit()} caption="Audit log" empty="Nothing of that kind among the records shown so far." />`;
}

export function LoginLogPage() {
  return html`<${Rows} pages=${useAudit()} keep=${({ event }) => /sign_up|log_?in|log_?out|session|refused/i.test(event)} caption="Logins and refusals" empty="No login among the records shown so far." />`;
}

export function EventsPage() {
  const pages = usePages(
    (before) => get('/ProxyAdmin/api/events', { before }),
    ({ sequence }) => sequence,
    PAGE,
    [],
  );
  const cells = [
    { title: 'Position', number: true, cell: ({ sequence }) => sequence },
    { title: 'Accepted', cell: ({ acceptedUtc }) => html`<${Time} of=${acceptedUtc} />` },
    { title: 'Module', cell: ({ module }) => module },
    { title: 'Type', cell: ({ type }) => html`<code>${type}</code>` },
    {
      title: 'For',
      cell: ({ userId }) => (userId === null ? 'everybody' : html`<span class="mono">${userId}</span>`),
    },
    { title: 'Tick', number: true, cell: ({ tick }) => html`<span class="mono">${tick}</span>` },
    { title: 'Bytes', number: true, cell: ({ sizeBytes }) => sizeBytes },
  ];
  return html`<p class="soft">Where events came from and whom they go to. What they say is for those they concern.</p>
    <section class="card"><${PagedTable} pages=${pages} columns=${cells} keyOf=${({ sequence }) => sequence} caption="Events" empty="No event has come in yet." /></section>`;
}

export function UploadsPage() {
  const uploads = useLoad(() => get('/ProxyAdmin/api/uploads'), []);
  return html`<section class="card"><header><h2>Open now</h2><div class="push"><button type="button" onClick=${uploads.reload}>Refresh</button></div></header>
    <${Loaded} of=${uploads}>${(list) =>
      list.length === 0
        ? html`<${Empty}><p>No upload is open. At most 60 are, one an account.</p><//>`
        : html`<div class="scroll" tabindex="0" role="region" aria-label="Uploads"><table><thead><tr><th scope="col">Account</th><th scope="col">Upload (CRC-32)</th><th scope="col">Began</th></tr></thead>
            <tbody>${list.map((item) => html`<tr key=${item.userId}><td class="mono">${item.userId}</td><td class="mono">${item.uploadId}</td><td><${Time} of=${item.startedUtc} /></td></tr>`)}</tbody></table></div>`}<//>
  </section>`;
}
