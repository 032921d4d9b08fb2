/** The fields of a record of the audit log in words: what each is called, and its value as people read it. */
import { LOGINS } from '../../shared/logins.js';
import { ShortId, sizeText } from '../../shared/ui.js';
import { html } from '../../vendor/preact.js';
import { count, msText } from '../figures.js';
import { Who } from '../who.js';

/** Names that say too little in words of their own. All others are their words: `sessionsClosed` is "Sessions closed". */
const TITLES = {
  ip: 'From',
  address: 'From',
  crc32: 'CRC-32',
  loginType: 'Login',
  by: 'By',
  subject: 'Account',
  sizeBytes: 'Size',
  backendMs: 'Module took',
  durationMs: 'Took',
  milliseconds: 'Took',
  cardDavAccess: 'Contact sync',
  mcpAccess: 'MCP',
};

/** The other account of a record: who acted, or whose role was changed. */
const OTHERS = new Set(['by', 'subject']);
const ID = /(^id|Id)$/;
const DURATION = /Ms$|^milliseconds$/;

export function titleOf(name) {
  if (Object.hasOwn(TITLES, name)) return TITLES[name];
  const words = name
    .replace(/Id$/, '')
    .replace(/([a-z0-9])([A-Z])/g, (_, end, start) => `${end} ${start.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** `otherNickname`: of the account that `by` or `subject` names. */
function shown(name, value, otherNickname) {
  if (value === null || value === undefined || value === '') return '–';
  if (OTHERS.has(name) && typeof value === 'string')
    return html`<${Who} id=${value} nickname=${otherNickname} />`;
  if (ID.test(name)) return html`<${ShortId} id=${String(value)} />`;
  if (name === 'loginType') return LOGINS[value] ?? value;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value !== 'number') return String(value);
  if (name.endsWith('Bytes')) return sizeText(value);
  if (!DURATION.test(name)) return count(value);
  return value < 1_000 ? `${value} ms` : msText(value);
}

/** Ids are short, and those that are null are left out. */
export function Details({ fields, otherNickname }) {
  return html`<dl class="details">${Object.entries(fields)
    .filter(([name, value]) => value !== null || !ID.test(name))
    .map(
      ([name, value]) =>
        html`<div key=${name}><dt>${titleOf(name)}</dt><dd>${shown(name, value, otherNickname)}</dd></div>`,
    )}</dl>`;
}
