/** Events, the newest first, and the uploads that are open. */
import { get } from '../shared/api.js';
import { Empty, Loaded, PagedTable, Time, useLoad, usePages } from '../shared/ui.js';
import { html } from '../vendor/preact.js';

const PAGE = 100;
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
