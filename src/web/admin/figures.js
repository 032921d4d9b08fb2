/** Numbers of use as the overview, modules and tools show them. */
import { html } from '../vendor/preact.js';

export const count = (value) => value.toLocaleString('en');

export function msText(ms) {
  if (ms === null) return '–';
  return ms >= 1000 ? `${(ms / 1000).toFixed(1)} s` : `${ms.toFixed(ms < 10 ? 1 : 0)} ms`;
}

/** Calls, errors and p99 of a row `{ calls, errors, p99 }`. */
export const USE_COLUMNS = [
  { title: 'Calls', number: true, cell: ({ calls }) => count(calls) },
  {
    title: 'Errors',
    number: true,
    cell: ({ calls, errors }) =>
      html`<span class=${errors > 0 ? 'bad' : 'soft'} title=${`${count(errors)} of ${count(calls)}`}>${errorText(calls, errors)}</span>`,
  },
  { title: 'p99', number: true, cell: ({ p99 }) => msText(p99) },
];

const errorText = (calls, errors) =>
  errors === 0 ? '0' : `${count(errors)} (${Math.max(0.1, (100 * errors) / calls).toFixed(1)} %)`;
