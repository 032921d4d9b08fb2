/** Columns of connected hosts, for the home page and the admin panel. */
import { html } from '../vendor/preact.js';
import { Time } from './ui.js';

/** Meaning of each scope, in a few words. */
const SCOPES = {
  read: 'look things up',
  tools: 'use tools',
  full: 'all tools',
  offline_access: 'stay connected',
};

const KINDS = {
  application: 'registered application',
  document: 'described by its own site',
  registration: 'name not checked',
};

const LOOPBACK = /^(127\.0\.0\.1|\[::1\]|localhost)(:\d+)?$/;
const isLoopback = (host) => LOOPBACK.test(host);

/** `action(host)`: the buttons of a row; none without it. */
export function hostColumns(action) {
  const columns = [
    {
      title: 'Host',
      head: true,
      cell: ({ name, host, kind }) =>
        html`<strong>${name === '' ? host : `“${name}”`}</strong><br /><span class="small soft">${host !== null && name !== '' && html`<span class="wraps">${isLoopback(host) ? 'a program on a computer' : host}</span>, `}${KINDS[kind]}</span>`,
    },
    {
      title: 'May',
      brief: true,
      cell: ({ scopes }) =>
        html`<span class="tags">${scopes.map((scope) => html`<span key=${scope} class=${scope === 'full' ? 'tag warn' : 'tag'} title=${scope}>${SCOPES[scope] ?? scope}</span>`)}</span>`,
    },
    {
      title: 'When',
      bare: true,
      cell: ({ createdUtc, lastUsedUtc, expiresUtc }) =>
        html`<dl class="details lines"><div><dt>Connected</dt><dd><${Time} of=${createdUtc} /></dd></div><div><dt>Last used</dt><dd><${Time} of=${lastUsedUtc} /></dd></div><div><dt>Ends</dt><dd><${Time} of=${expiresUtc} /></dd></div></dl>`,
    },
  ];
  return action === undefined ? columns : [...columns, { title: 'Actions', action: true, cell: action }];
}
