/** A browser's own name for itself in words that people know. */
import { html } from '../vendor/preact.js';

/** Marks in the order in which they decide: most browsers also name the ones before them. */
const PROGRAMS = [
  ['Edg', 'Edge'],
  ['OPR/', 'Opera'],
  ['Firefox/', 'Firefox'],
  ['Chrome/', 'Chrome'],
  ['Safari/', 'Safari'],
];
const SYSTEMS = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['CrOS', 'ChromeOS'],
  ['Windows', 'Windows'],
  ['Mac OS', 'macOS'],
  ['Linux', 'Linux'],
];

const found = (marks, text) => marks.find(([mark]) => text.includes(mark))?.[1];

/** Browser and system of a User-Agent field; of another program its first word. */
export function deviceOf(userAgent) {
  const words = [found(PROGRAMS, userAgent), found(SYSTEMS, userAgent)].filter((word) => word !== undefined);
  return words.length === 2 ? words.join(' on ') : userAgent.split(' ', 1)[0] || 'Unknown program';
}

export function Device({ userAgent }) {
  return html`<span title=${userAgent}>${deviceOf(userAgent)}</span>`;
}
