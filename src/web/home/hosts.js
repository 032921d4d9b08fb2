/** MCP hosts that may act for the account: where they are, what they may do, last use, the end of it. */
import { get, post } from '../shared/api.js';
import { hostColumns } from '../shared/hosts.js';
import { Ask, Empty, Loaded, Table, useLoad } from '../shared/ui.js';
import { html } from '../vendor/preact.js';

export function HostsPart() {
  const hosts = useLoad(() => get('/auth/v1/connected_hosts'), []);
  const disconnect = async ({ id }) => {
    await post('/auth/v1/connected_hosts/revoke', { id });
    await hosts.reload();
  };
  const columns = hostColumns(
    (host) =>
      html`<${Ask} label="Disconnect" title=${`Disconnect “${host.name}”?`} confirm="Disconnect it" done="The host is disconnected." question="It loses access immediately. To come back it must ask you again." run=${() => disconnect(host)} />`,
  );
  return html`<h1>Connected hosts</h1>
    <p class="soft">Programs that you let in with the address of this gateway. Each name is the program's own claim.</p>
    <section class="card"><${Loaded} of=${hosts}>${(list) =>
      list.length === 0
        ? html`<${Empty} icon="plug"><p>No host is connected.</p><a class="button" href="#agent">Connect one</a><//>`
        : html`<${Table} caption="Connected hosts" rows=${list} columns=${columns} keyOf=${({ id }) => id} />`}<//></section>`;
}
