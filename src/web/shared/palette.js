/** Search over a page by Ctrl-K: its pages at once, and what `find` knows besides, by keyboard or pointer. */
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { Icon, useModal } from './ui.js';

const FOUND_MAX = 30;

/** `find(words)` resolves with `{ group, title, note, icon, href }` rows; it is asked once the words rest. */
export function Palette({ open, onClose, pages, find }) {
  const element = useModal(open);
  return html`<dialog class="palette" ref=${element} aria-label="Find" onClose=${onClose} onClick=${(event) => event.target === event.currentTarget && onClose()}>
    ${open && html`<${Search} onClose=${onClose} pages=${pages} find=${find} />`}
  </dialog>`;
}

const REST_MS = 150;

function Search({ onClose, pages, find }) {
  const [words, setWords] = useState('');
  const [more, setMore] = useState([]);
  const [at, setAt] = useState(0);
  const list = useRef(null);
  useEffect(() => {
    let isLatest = true;
    const timer = setTimeout(async () => {
      const found = words.trim() === '' ? [] : await find(words.trim().toLowerCase());
      if (isLatest) setMore(found);
    }, REST_MS);
    return () => {
      isLatest = false;
      clearTimeout(timer);
    };
  }, [words]);
  const own = pages
    .filter(({ title }) => title.toLowerCase().includes(words.trim().toLowerCase()))
    .map(({ title, href, icon, group }) => ({ group: 'Pages', title, href, icon, note: group }));
  const found = [...own, ...more].slice(0, FOUND_MAX);
  const chosen = Math.min(at, found.length - 1);
  useEffect(
    () => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }),
    [chosen],
  );
  const onKey = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined && found.length > 0) {
      event.preventDefault();
      setAt((chosen + step + found.length) % found.length);
    }
    if (event.key === 'Enter') list.current?.querySelector('[aria-selected="true"]')?.click();
  };
  const groups = [...new Set(found.map(({ group }) => group))];
  const type = (event) => {
    setWords(event.currentTarget.value);
    setAt(0);
  };
  return html`<label><${Icon} name="search" /><span class="hidden">Search</span>
      <input type="text" role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant=${chosen < 0 ? undefined : `found-${chosen}`} autocomplete="off" spellcheck=${false} autofocus placeholder="Page, account, application, tool, setting" value=${words} onInput=${type} onKeyDown=${onKey} /></label>
    <div class="list" role="listbox" id="found" aria-label="Found" ref=${list}>
      ${groups.map(
        (group, number) => html`<div key=${group} role="group" aria-labelledby=${`found-group-${number}`}>
        <div class="group" id=${`found-group-${number}`}>${group}</div>
        ${found.map((row, index) => row.group === group && html`<${Option} key=${row.href + row.title} row=${row} index=${index} isChosen=${index === chosen} onOpen=${onClose} />`)}
      </div>`,
      )}
    </div>
    <p class="foot" role="status">${found.length === 0 ? 'Nothing found.' : html`<kbd>↑↓</kbd> choose <kbd>Enter</kbd> open <kbd>Esc</kbd> close`}</p>`;
}

/** A press follows the link as one of the page does, so that the page handles the move itself. */
function Option({ row, index, isChosen, onOpen }) {
  const follow = () => {
    const link = document.createElement('a');
    link.href = row.href;
    document.getElementById('app').firstElementChild.append(link);
    link.click();
    link.remove();
    onOpen();
  };
  return html`<div role="option" id=${`found-${index}`} aria-selected=${isChosen ? 'true' : 'false'} onClick=${follow}><${Icon} name=${row.icon} /><span>${row.title}</span>${row.note && html`<span class="soft">${row.note}</span>`}</div>`;
}
