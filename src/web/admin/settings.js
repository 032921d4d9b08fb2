/** Runtime settings, effective immediately, and the shared bounds with their current use. */
import { get, post } from '../shared/api.js';
import { Act, Empty, Loaded, Table, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

export function SettingsPage({ nodes, role, query }) {
  const settings = useLoad(() => get('/ProxyAdmin/api/settings'), []);
  const [search, setSearch] = useState(query.get('search') ?? '');
  const word = search.trim().toLowerCase();
  return html`<p class="soft">Changes apply from the next request, survive restarts, and override the configuration file.</p>
    <div class="filter"><label for="search">Search</label><input id="search" type="search" value=${search} onInput=${(event) => setSearch(event.currentTarget.value)} /></div>
    <section class="card" aria-label="Runtime settings"><${Loaded} of=${settings}>${(list) => {
      const shown = list.filter(({ id, name, summary }) =>
        `${id} ${name} ${summary}`.toLowerCase().includes(word),
      );
      return shown.length === 0
        ? html`<${Empty}><p>No matching settings.</p><//>`
        : shown.map(
            (item) =>
              html`<${Setting} key=${item.id} item=${item} canChange=${role === 'admin'} reload=${settings.reload} />`,
          );
    }}<//></section>
    <${Bounds} areSeveral=${nodes.length > 0} />`;
}

/** Read-only: some bounds have a setting that changes them. */
function Bounds({ areSeveral }) {
  const bounds = useLoad(() => get('/ProxyAdmin/api/bounds'), []);
  return html`<section class="card bounds" aria-labelledby="bounds">
    <header><h2 id="bounds">Shared bounds</h2><div class="push"><button type="button" onClick=${bounds.reload}>Refresh</button></div></header>
    <p class="soft">No session, user or network can hold all of a bound. A caller over its share gets status 429, and the others are served.${areSeveral && ' What is held and refused is that of the node that answers.'}</p>
    <${Loaded} of=${bounds}>${(list) =>
      html`<${Table} caption="Maxima and shares" rows=${list} columns=${BOUND_COLUMNS} keyOf=${({ name }) => name} />`}<//>
  </section>`;
}

const MEBIBYTE = 1024 * 1024;

function amount(value, unit) {
  if (value === null) return '–';
  return unit === 'bytes'
    ? `${(value / MEBIBYTE).toLocaleString('en', { maximumFractionDigits: 1 })} MiB`
    : value.toLocaleString('en');
}

const BOUND_COLUMNS = [
  { title: 'Bound', head: true, cell: ({ name, summary }) => html`${name}<p class="hint">${summary}</p>` },
  ...[
    ['Held', ({ held }) => held],
    ['Maximum', ({ maximum }) => maximum],
    ['Per session', ({ session }) => session],
    ['Per user', ({ user }) => user],
    ['Per network', ({ network }) => network],
  ].map(([title, read]) => ({ title, number: true, cell: (row) => amount(read(row), row.unit) })),
  { title: 'Refused', number: true, cell: refusedOf },
];

function refusedOf({ refused }) {
  const all = Object.values(refused).reduce((sum, count) => sum + count, 0);
  const by = Object.entries(refused)
    .filter(([, count]) => count > 0)
    .map(([whose, count]) => `${whose} ${count.toLocaleString('en')}`);
  return html`${all.toLocaleString('en')}${by.length > 0 && html`<p class="hint">${by.join(', ')}</p>`}`;
}

const textOf = (value) => (value === '' ? 'empty' : String(value));

/** Input stays until it is saved or undone. A concurrent change by another admin is shown before it is overwritten. */
function Setting({ item, canChange, reload }) {
  const [typed, setTyped] = useState(undefined);
  const [conflict, setConflict] = useState(undefined);
  const value = typed ?? String(item.value);
  const isNumber = item.type !== 'text';
  const save = async (isSure) => {
    const now = (await get('/ProxyAdmin/api/settings')).find(({ id }) => id === item.id);
    if (!isSure && now.value !== item.value) {
      setConflict(now.value);
      return false;
    }
    await post('/ProxyAdmin/api/settings', { name: item.name, value: isNumber ? Number(value) : value });
    // Before the input is dropped, so that the old value is never shown again.
    await reload();
    setConflict(undefined);
    setTyped(undefined);
    return true;
  };
  const id = `setting-${item.id}`;
  const bounds = item.min === null ? '' : `, from ${item.min} to ${item.max}`;
  return html`<div class="setting">
    <div>
      <h2><label for=${id}>${item.name}</label></h2>
      <p>${item.summary}</p>
      <p class="hint">Number ${item.id}. Default ${textOf(item.default)}${item.unit === '' ? '' : ` ${item.unit}`}${bounds}${item.type === 'flag' ? ', 0 or 1' : ''}.${item.value === item.default ? '' : ` Changed from the default.`}</p>
    </div>
    <form class="stack" onSubmit=${(event) => event.preventDefault()}>
      <input id=${id} value=${value} inputmode=${isNumber ? 'numeric' : undefined} disabled=${!canChange} onInput=${(event) => setTyped(event.currentTarget.value)} />
      ${conflict !== undefined && html`<p class="fault" role="alert">It was set to ${textOf(conflict)} by another admin after you opened this page.</p>`}
      ${
        typed !== undefined &&
        html`<div class="row">
        <${Act} kind="primary" inline done=${`${item.name} is changed.`} disabled=${isNumber && (value.trim() === '' || !Number.isFinite(Number(value)))} run=${() => save(conflict !== undefined)}>${conflict === undefined ? 'Save' : 'Overwrite'}<//>
        <button type="button" onClick=${() => {
          setTyped(undefined);
          setConflict(undefined);
          void reload();
        }}>Undo</button>
      </div>`
      }
    </form>
  </div>`;
}
