/** An account in a list: its name, which leads to its page, and its short id. */
import { Icon, ShortId } from '../shared/ui.js';
import { html } from '../vendor/preact.js';

export const addressOfAccount = (id) => `/ProxyAdmin/Account?userId=${id}`;

/** Returns the name of an account in a sentence. */
export const called = ({ id, nickname }) => nickname || `account …${id.slice(-4)}`;

export function Who({ id, nickname }) {
  return html`<span class="who"><a href=${addressOfAccount(id)}>${nickname || html`Account<span class="hidden"> ${id}</span>`}</a><${ShortId} id=${id} /></span>`;
}

/** Downloads a list as the server exports it, with the filters that `query` names. */
export function Csv({ list, query = {} }) {
  const fields = new URLSearchParams(Object.entries(query));
  return html`<a class="button" download href=${`/ProxyAdmin/api/export/${list}${fields.size === 0 ? '' : `?${fields}`}`}><${Icon} name="download" />CSV<span class="hidden"> of ${list}</span></a>`;
}
