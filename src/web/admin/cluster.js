/** Facts about the nodes of a cluster that all pages use. */
import { get } from '../shared/api.js';
import { html } from '../vendor/preact.js';

/** `nodes`: none without a cluster. */
export const loadNodes = () => get('/ProxyAdmin/api/nodes');

/** Nothing when all have answered. `of`: what is missing of them, as the end of a sentence. */
export function MissingNodes({ names, of }) {
  if (names.length === 0) return '';
  const who = names.length === 1 ? `Node ${names[0]} did` : `Nodes ${names.join(', ')} did`;
  return html`<div class="note warn" role="status"><p>${who} not answer: ${of} missing.</p></div>`;
}
