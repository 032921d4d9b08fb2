/** Other MCP servers that the person connects with credentials of their own: login there, a personal token, the end. */
import { get, post } from '../shared/api.js';
import { Act, Ask, Dialog, Empty, Loaded, Time, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

/** Results by the last part of the address that the gateway sends the browser back to. */
const RESULTS = {
  connected: { kind: 'good', text: 'The server is connected.' },
  expired: {
    kind: 'bad',
    text: 'The login took too long, or was ended in another session. Connect the server again.',
  },
  refused: { kind: 'bad', text: 'The server did not allow it, so nothing is connected.' },
  session: { kind: 'bad', text: 'You were not logged in here any more. Connect the server again.' },
  failed: { kind: 'bad', text: 'The login of the server failed, so nothing is connected.' },
};

export function ServersPart({ hash }) {
  const servers = useLoad(() => get('/auth/v1/upstreams'), []);
  const [, named, result] = hash.split('/');
  const shown = Object.hasOwn(RESULTS, result ?? '') ? RESULTS[result] : undefined;
  return html`<h1>Connected servers</h1>
    <p class="soft">Other services whose tools your agents use here. Each is called with your own credentials, which no one else's calls get.</p>
    ${shown !== undefined && html`<div class=${`note ${shown.kind}`} role="status"><p>${shown.text}</p></div>`}
    <${Loaded} of=${servers}>${(list) =>
      list.length === 0
        ? html`<section class="card"><${Empty} icon="server"><p>This gateway has no server to connect.</p><//></section>`
        : html`<div class="grid">${sorted(list, named).map((each) => html`<${Server} key=${each.server} item=${each} reload=${servers.reload} />`)}</div>`}<//>`;
}

/** The one of the link comes first. */
function sorted(list, named) {
  return [...list].sort((a, b) => Number(b.server === named) - Number(a.server === named));
}

function Server({ item, reload }) {
  const { server, title, connected, kind, connectedUtc } = item;
  const connect = async () => {
    const { redirect } = await post('/auth/v1/upstreams/connect', { server });
    location.assign(redirect);
  };
  const disconnect = async () => {
    await post('/auth/v1/upstreams/disconnect', { server });
    await reload();
  };
  return html`<article class="card" aria-label=${title}>
    <header><h2>${title}</h2>${connected && html`<span class="tag good">connected</span>`}</header>
    ${connected && html`<dl class="facts small"><dt>With</dt><dd>${kind === 'oauth' ? 'a login there' : 'a personal token'}</dd><dt>Since</dt><dd><${Time} of=${connectedUtc} /></dd></dl>`}
    <div class="row">
      <${Act} kind=${connected ? '' : 'primary'} run=${connect}>${connected ? 'Connect again' : `Connect ${title}`}<//>
      <${Token} item=${item} reload=${reload} />
      ${connected && html`<${Ask} label="Disconnect" title=${`Disconnect ${title}?`} confirm="Disconnect it" done="The server is disconnected." question="Your agents' calls of it are refused from then on. The service itself may still list this gateway: remove it there too." run=${disconnect} />`}
    </div>
  </article>`;
}

function Token({ item: { server, title }, reload }) {
  const [open, setOpen] = useState(false);
  const [token, setToken] = useState('');
  const close = () => {
    setOpen(false);
    setToken('');
  };
  const save = async () => {
    await post('/auth/v1/upstreams/token', { server, token: token.trim() });
    close();
    await reload();
  };
  const id = `token-${server}`;
  return html`<button type="button" onClick=${() => setOpen(true)}>Use a token</button>
    <${Dialog} title=${`Personal token of ${title}`} open=${open} onClose=${close}>
      <form class="stack" onSubmit=${(event) => event.preventDefault()}>
        <div>
          <label for=${id}>Token</label>
          <input id=${id} type="password" autocomplete="off" spellcheck="false" maxlength="8192" aria-describedby=${`${id}-hint`} value=${token} onInput=${(event) => setToken(event.currentTarget.value)} />
          <p class="hint" id=${`${id}-hint`}>Make one in the settings of ${title}. It is kept encrypted, and is sent to ${title} alone.</p>
        </div>
        <div class="row"><button type="button" onClick=${close}>Cancel</button><${Act} kind="primary" inline disabled=${token.trim() === ''} done="The server is connected." run=${save}>Save the token<//></div>
      </form>
    <//>`;
}
