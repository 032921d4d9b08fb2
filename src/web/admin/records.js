/** Events, the newest first, and the uploads that are open. */
import { get } from '../shared/api.js';
import { Empty, Loaded, PagedTable, Table, Time, useLoad, usePages } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { count } from './figures.js';
import { Who } from './who.js';

const PAGE = 100;
export function EventsPage() {
  const pages = usePages(
    (before) => get('/ProxyAdmin/api/events', { before }),
    ({ sequence }) => sequence,
    PAGE,
    [],
  );
  const cells = [
    { title: 'Type', head: true, cell: ({ type }) => html`<code>${type}</code>` },
    { title: 'Module', brief: true, cell: ({ module }) => module },
    {
      title: 'For',
      brief: true,
      cell: ({ userId, nickname }) =>
        userId === null ? 'all users' : html`<${Who} id=${userId} nickname=${nickname} />`,
    },
    { title: 'Accepted', brief: true, cell: ({ acceptedUtc }) => html`<${Time} of=${acceptedUtc} />` },
    { title: 'Position', number: true, cell: ({ sequence }) => count(sequence) },
    { title: 'Tick', number: true, cell: ({ tick }) => html`<span class="mono">${tick}</span>` },
    { title: 'Bytes', number: true, cell: ({ sizeBytes }) => count(sizeBytes) },
  ];
  return html`<p class="soft">Origin and recipient of each event. Payloads are not shown here.</p>
    <section class="card"><${PagedTable} pages=${pages} columns=${cells} keyOf=${({ sequence }) => sequence} caption="Events" icon="radio" empty="No events yet." /></section>`;
}

const UPLOADS = [
  {
    title: 'Account',
    head: true,
    cell: ({ userId, nickname }) => html`<${Who} id=${userId} nickname=${nickname} />`,
  },
  { title: 'CRC-32', brief: true, cell: ({ uploadId }) => html`<span class="mono">${uploadId}</span>` },
  { title: 'Started', brief: true, cell: ({ startedUtc }) => html`<${Time} of=${startedUtc} />` },
];

export function UploadsPage() {
  const uploads = useLoad(() => get('/ProxyAdmin/api/uploads'), []);
  return html`<section class="card"><header><h2>Open now</h2><div class="push"><button type="button" onClick=${uploads.reload}>Refresh</button></div></header>
    <${Loaded} of=${uploads}>${(list) =>
      list.length === 0
        ? html`<${Empty} icon="upload"><p>No open uploads. The limit is 60, one per account.</p><//>`
        : html`<${Table} caption="Uploads" rows=${list} columns=${UPLOADS} keyOf=${({ userId }) => userId} />`}<//>
  </section>`;
}
