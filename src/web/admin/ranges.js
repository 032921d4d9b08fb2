/** The switch of a range. */
import { html } from '../vendor/preact.js';
import { RANGES } from './history.js';

export function Ranges({ range, choose }) {
  return html`<div class="seg push" role="group" aria-label="Range">${RANGES.map(({ name, title }) => html`<button type="button" key=${name} aria-pressed=${name === range.name ? 'true' : 'false'} onClick=${() => choose(name)}>${title}</button>`)}</div>`;
}
