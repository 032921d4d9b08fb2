/** The frame of home and panel: navigation in groups, a drawer on phones, the account menu, search by Ctrl-K. */
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { Palette } from './palette.js';
import { Act, Icon, ShortId, useModal } from './ui.js';

const LOGO = new URL('./icon.svg', import.meta.url).pathname;

/**
 * @typedef {object} Page
 * @property {string} name
 * @property {string} title
 * @property {string} href
 * @property {string} icon
 * @property {string} [group] The heading above it; none for the first pages.
 * @property {{ text: string, kind?: string }} [count]
 */

/**
 * `pages`: of the navigation, in order. `current`: the name of the shown one. `label`: the name of the navigation.
 * `place`: which pages these are. `session`: `{ userId, nickname, role }`. `links`: of the account menu.
 * `view`: changes with each move, after which the heading has the focus. `find(words)`: more that a search finds.
 */
export function Shell({ pages, current, label, place, home, session, links, logOut, view, find, children }) {
  const [isDrawn, setDrawn] = useState(false);
  const [isSearching, setSearching] = useState(false);
  const main = useRef(null);
  useHeadingFocus(main, view);
  useEffect(() => setDrawn(false), [view]);
  useEffect(() => {
    const open = (event) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      setSearching(true);
    };
    addEventListener('keydown', open);
    return () => removeEventListener('keydown', open);
  }, []);
  const brand = html`<a class="brand" href=${home}><img src=${LOGO} alt="" /><span>Gatehouse <small>${place}</small></span></a>`;
  const navigation = html`<${Navigation} pages=${pages} current=${current} />`;
  const search = () => setSearching(true);
  return html`<div class="frame">
    <header class="top">
      <button type="button" class="bare" aria-label="Menu" onClick=${() => setDrawn(true)}><${Icon} name="menu" kind="big" /></button>
      ${brand}
      <button type="button" class="bare" aria-label="Find" onClick=${search}><${Icon} name="search" kind="big" /></button>
      <button type="button" class="bare" aria-label=${`${lettersOf(session)}, account menu`} popovertarget="account-menu"><${Avatar} ...${session} /></button>
    </header>
    <nav class="side" aria-label=${label}>
      ${brand}
      <button type="button" class="bare search" onClick=${search}><${Icon} name="search" />Search<kbd>Ctrl K</kbd></button>
      ${navigation}
      <button type="button" class="bare me" popovertarget="account-menu"><${Avatar} ...${session} /><span>${nameOf(session)}<small>${session.role ?? 'Account'}</small></span><${Icon} name="chevrons-up-down" /></button>
    </nav>
    <main id="content" ref=${main}>${children}</main>
  </div>
  <${Drawer} open=${isDrawn} label=${label} onClose=${() => setDrawn(false)}>${brand}${navigation}<//>
  <div class="menu" id="account-menu" popover="auto" role="group" aria-label="Account">
    <p>${session.nickname ? html`${session.nickname} ` : 'Account '}<${ShortId} id=${session.userId} /></p>
    ${links.map(({ title, href, icon }) => html`<a key=${href} href=${href} onClick=${hideMenu}><${Icon} name=${icon} />${title}</a>`)}
    <${Act} run=${logOut}><${Icon} name="log-out" />Log out<//>
  </div>
  <${Palette} open=${isSearching} onClose=${() => setSearching(false)} pages=${pages} find=${find} />`;
}

const hideMenu = () => document.getElementById('account-menu')?.hidePopover();

/** The nickname where the account has one, else its short id. */
export const nameOf = ({ userId, nickname }) => nickname || `…${userId.slice(-4)}`;

function lettersOf({ userId, nickname }) {
  if (!nickname) return userId.slice(-2);
  const words = nickname.split(/\s+/).slice(0, 2);
  return words
    .map((word) => [...word][0])
    .join('')
    .toUpperCase();
}

export function Avatar({ big = false, ...session }) {
  return html`<span class=${big ? 'avatar big' : 'avatar'} aria-hidden="true">${lettersOf(session)}</span>`;
}

function Navigation({ pages, current }) {
  const groups = [...new Set(pages.map(({ group }) => group))];
  return html`<div>${groups.map(
    (group) => html`${group !== undefined && html`<h2>${group}</h2>`}<ul>
      ${pages
        .filter((page) => page.group === group)
        .map(
          ({ name, title, href, icon, count }) =>
            html`<li key=${name}><a href=${href} aria-current=${name === current ? 'page' : undefined}><${Icon} name=${icon} />${title}</a>${count !== undefined && html`<span class=${`count ${count.kind ?? ''}`}>${count.text}</span>`}</li>`,
        )}
    </ul>`,
  )}</div>`;
}

/** The navigation of a phone. A press beside it closes it. */
function Drawer({ open, label, onClose, children }) {
  const element = useModal(open);
  return html`<dialog class="drawer" ref=${element} aria-label="Menu" onClose=${onClose} onClick=${(event) => event.target === event.currentTarget && onClose()}>${open && html`<nav class="side" aria-label=${label}>${children}</nav>`}</dialog>`;
}

/** After a move the heading has the focus; not at the first view, where the browser chooses. */
function useHeadingFocus(main, view) {
  const before = useRef(view);
  useEffect(() => {
    if (before.current === view) return;
    before.current = view;
    // A view that is still to be loaded takes the focus from the content to its heading.
    const heading = main.current?.querySelector('h1') ?? main.current;
    if (heading === null) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [view]);
}
