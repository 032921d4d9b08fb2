/** Failing and quarantined actors, and dead letters, of all nodes. */
import { get, post } from '../shared/api.js';
import { Act, Ask, Empty, Loaded, ShortId, Table, Time, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';
import { MissingNodes } from './cluster.js';
import { count } from './figures.js';

export function ActorsPage({ role }) {
  const actors = useLoad(() => get('/ProxyAdmin/api/actors'), []);
  const act = async (path, body) => {
    await post(`/ProxyAdmin/api/actors/${path}`, body);
    await actors.reload();
  };
  const canAct = role === 'admin';
  const actor = {
    cell: ({ kind, id }) =>
      html`<span class="who"><span class="mono">${kind}</span><${ShortId} id=${id} /></span>`,
  };
  const failingColumns = [
    { title: 'Actor', head: true, ...actor },
    {
      title: 'State',
      brief: true,
      cell: ({ quarantined }) =>
        html`<span class=${`tag ${quarantined ? 'bad' : 'warn'}`}>${quarantined ? 'quarantined' : 'backing off'}</span>`,
    },
    { title: 'Failures', number: true, cell: ({ failures }) => count(failures) },
    { title: 'Node', cell: ({ node }) => node },
    {
      title: 'Actions',
      action: true,
      cell: ({ kind, id }) =>
        canAct &&
        html`<div class="row"><${Act} done="The actor is retried." run=${() => act('reset', { kind, id })}>Retry<//><${Ask} label="Skip" title="Skip the next message?" confirm="Skip its next message" done="The message is now a dead letter." question="The failing message becomes a dead letter, and the actor continues with the next one." run=${() => act('skip', { kind, id })} /></div>`,
    },
  ];
  const deadColumns = [
    { title: 'For', head: true, ...actor },
    { title: 'When', brief: true, cell: ({ utc }) => html`<${Time} of=${utc} />` },
    { title: 'Message', cell: ({ command }) => html`<code>${command ?? 'unknown'}</code>` },
    { title: 'Why', cell: ({ reason }) => reason },
    {
      title: 'Actions',
      action: true,
      cell: ({ timeMs, kind, id, seq }) =>
        canAct &&
        html`<${Ask} label="Remove" title="Remove the message?" confirm="Remove it" done="The message is removed." question="The message is removed. This cannot be undone." run=${() => act('discard', { timeMs, kind, id, seq })} />`,
    },
  ];
  return html`<${Loaded} of=${actors}>${({ failing, missing, dead, damagedRows }) => html`
    <${MissingNodes} names=${missing} of="failing actors there are" />
    ${damagedRows > 0 && html`<div class="note bad" role="alert"><p>${damagedRows === 1 ? 'One row' : `${damagedRows} rows`} of the journal ${damagedRows === 1 ? 'is' : 'are'} damaged. The log names each. The command <code>node build/src/main.cjs check</code> reads the whole journal.</p></div>`}
    <section class="card"><header><h2>Failing actors</h2><div class="push"><button type="button" onClick=${actors.reload}>Refresh</button></div></header>
      ${
        failing.length === 0
          ? html`<${Empty} icon="circle-check"><p>No failing actors.</p><//>`
          : html`<${Table} caption="Failing actors" rows=${failing} columns=${failingColumns.filter(({ title }) => title !== 'Node' || failing.some(({ node }) => node !== null))} keyOf=${({ kind, id, node }) => `${kind} ${id} ${node}`} />`
      }
    </section>
    <section class="card"><header><h2>Dead letters</h2></header>
      ${
        dead.length === 0
          ? html`<${Empty} icon="circle-check"><p>No dead letters.</p><//>`
          : html`<${Table} caption="Dead letters" rows=${dead} columns=${deadColumns} keyOf=${({ timeMs, kind, id, seq }) => `${timeMs} ${kind} ${id} ${seq}`} />`
      }
    </section>`}<//>`;
}
