/** Shared components of the pages: loading states, notices, buttons, dialogs, paged tables, icons, ids, times, copying. */
import { html, useCallback, useEffect, useRef, useState } from '../vendor/preact.js';
import { onSessionBack, sentenceOf } from './api.js';

const ICONS = new URL('./icons.svg', import.meta.url).pathname;

/** An icon of the sprite beside a word that says the same. */
export function Icon({ name, kind = '' }) {
  return html`<svg class=${`i ${kind}`} aria-hidden="true"><use href=${`${ICONS}#${name}`} /></svg>`;
}

/** Runs `load` now and whenever one of `inputs` changes; `reload` runs it again and keeps the value until it resolves. */
export function useLoad(load, inputs) {
  const [state, setState] = useState({ busy: true });
  const latest = useRef(0);
  const reload = useCallback(async () => {
    latest.current += 1;
    const turn = latest.current;
    setState((before) => ({ ...before, busy: true, error: undefined }));
    try {
      const value = await load();
      if (turn === latest.current) setState({ value, busy: false });
    } catch (error) {
      if (turn === latest.current) setState((before) => ({ ...before, error, busy: false }));
    }
  }, inputs);
  useEffect(() => {
    void reload();
    return () => {
      latest.current += 1;
    };
  }, [reload]);
  useEffect(() => (state.error === undefined ? undefined : onSessionBack(reload)), [state.error, reload]);
  return { ...state, reload };
}

/** Shows that it loads, a failure with a button to try again, or the content. `children` takes the value. */
export function Loaded({ of: load, children }) {
  if (load.error !== undefined && load.value === undefined) {
    return html`<div class="empty failed" role="alert">
      <${Icon} name="circle-alert" /><p><strong>This did not load</strong><br />${withStop(sentenceOf(load.error))} Nothing was changed.</p>
      <button type="button" onClick=${load.reload}><${Icon} name="rotate-cw" />Try again</button>
    </div>`;
  }
  if (load.value === undefined) return html`<${Skeleton} />`;
  return html`${load.error !== undefined && html`<div class="note bad" role="alert"><${Icon} name="circle-alert" /><p>${sentenceOf(load.error)}</p></div>`}${children(load.value)}`;
}

const withStop = (sentence) => (/[.!?]$/.test(sentence) ? sentence : `${sentence}.`);

/** A view whose file is loaded when it is first shown: `load` resolves with its component. */
export function View({ load, ...properties }) {
  const view = useLoad(async () => {
    try {
      return { Shown: await load() };
    } catch {
      throw new Error('This page could not be loaded. Check the connection.');
    }
  }, [load]);
  // After a move the focus is on the content until its heading is there.
  useEffect(() => {
    const content = document.getElementById('content');
    const heading = content?.querySelector('h1');
    if (view.value === undefined || document.activeElement !== content || !heading) return;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
  }, [view.value]);
  return html`<${Loaded} of=${view}>${({ Shown }) => html`<${Shown} ...${properties} />`}<//>`;
}

/** Lines where rows will be. */
function Skeleton() {
  return html`<div class="skeleton" role="status"><span class="hidden">Loading …</span><i></i><i></i><i></i></div>`;
}

export function Empty({ icon, children }) {
  return html`<div class="empty">${icon !== undefined && html`<${Icon} name=${icon} />`}${children}</div>`;
}

/** @type {Set<(notice: { id: number, kind: string, text: string }) => void>} */
const noticeListeners = new Set();
let noticeCount = 0;

/** The view that is shown; a change of its filter alone does not leave it. */
const viewOf = () => location.pathname + location.hash;

/** Shows a sentence for `NOTICE_MS` while its view is shown. `kind`: good, bad or warn. */
export function notify(text, kind = 'good') {
  noticeCount += 1;
  for (const listener of noticeListeners) listener({ id: noticeCount, kind, text, view: viewOf() });
}

const NOTICE_MS = 4_000;
const NOTICES_MAX = 4;
const NOTICE_ICONS = { good: 'circle-check', warn: 'triangle-alert', bad: 'circle-alert' };

/** The notices of a page; once per page. They wait under the pointer. */
export function Notices() {
  const [notices, setNotices] = useState([]);
  const [isHeld, setHeld] = useState(false);
  useEffect(() => {
    const listener = (notice) => setNotices((shown) => [...shown, notice].slice(-NOTICES_MAX));
    const leave = () => setNotices((shown) => shown.filter(({ view }) => view === viewOf()));
    noticeListeners.add(listener);
    addEventListener('popstate', leave);
    addEventListener('hashchange', leave);
    return () => {
      noticeListeners.delete(listener);
      removeEventListener('popstate', leave);
      removeEventListener('hashchange', leave);
    };
  }, []);
  const [oldest] = notices;
  useEffect(() => {
    if (oldest === undefined || isHeld) return undefined;
    const timer = setTimeout(() => setNotices((shown) => shown.filter((each) => each !== oldest)), NOTICE_MS);
    return () => clearTimeout(timer);
  }, [oldest, isHeld]);
  const shown = notices.filter(({ view }) => view === viewOf());
  return html`<div class="notices" role="status" aria-live="polite" onPointerEnter=${() => setHeld(true)} onPointerLeave=${() => setHeld(false)}>
    ${shown.map(({ id, kind, text }) => html`<div key=${id} class=${`note ${kind}`}><${Icon} name=${NOTICE_ICONS[kind]} /><p>${text}</p></div>`)}
  </div>`;
}

/**
 * A button that runs a promise and is busy meanwhile. `done` is the notice of a success. A failure is a notice too, or
 * stands beside the button when `inline`: a dialog covers notices.
 */
export function Act({ run, done, kind = '', disabled = false, inline = false, title, hint, children }) {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState(undefined);
  const act = async () => {
    setBusy(true);
    setFault(undefined);
    try {
      const answer = await run();
      if (done !== undefined && answer !== false) notify(done);
    } catch (error) {
      if (inline) setFault(sentenceOf(error));
      else notify(sentenceOf(error), 'bad');
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" class=${kind} title=${title} aria-describedby=${hint} disabled=${disabled || busy} aria-busy=${busy} onClick=${act}>${children}</button>
    ${fault !== undefined && html`<p class="fault" role="alert">${fault}</p>`}`;
}

/** The element of a modal dialog, which the browser shows while `open`. Escape closes it, and the focus returns. */
export function useModal(open) {
  const element = useRef(null);
  useEffect(() => {
    const dialog = element.current;
    if (dialog === null) return;
    if (open && !dialog.open) dialog.showModal();
    if (!open && dialog.open) dialog.close();
  }, [open]);
  return element;
}

/**
 * A modal dialog. Escape closes it (unless `onCancel` prevents it), and the focus returns. The browser focuses the
 * control with `autofocus`, else the first one.
 */
export function Dialog({ title, open, onClose, onCancel = onClose, children }) {
  const element = useModal(open);
  return html`<dialog ref=${element} aria-label=${title} onClose=${onClose} onCancel=${onCancel}>
    ${open && html`<h2>${title}</h2>${children}`}
  </dialog>`;
}

/**
 * Asks before `run`; the children state the effect. Cancel has the focus. The dialog stays open while `run` is pending,
 * so that its result is shown.
 */
export function Confirm({
  title,
  open,
  onClose,
  confirm,
  kind = 'danger',
  run,
  done,
  disabled = false,
  children,
}) {
  const [busy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    try {
      const answer = await run();
      onClose();
      return answer;
    } finally {
      setBusy(false);
    }
  };
  const stayWhileBusy = (event) => {
    if (busy) event.preventDefault();
  };
  return html`<${Dialog} title=${title} open=${open} onClose=${onClose} onCancel=${stayWhileBusy}>
    ${children}
    <div class="row">
      <button type="button" autofocus disabled=${busy} onClick=${onClose}>Cancel</button>
      <${Act} kind=${kind} done=${done} disabled=${disabled} inline run=${act}>${confirm}<//>
    </div>
  <//>`;
}

/** A button that asks before it acts. `title` is the question; `question` states the effect and whether it can be undone. */
export function Ask({ label, title, question, confirm, run, done, kind = 'danger', disabled = false }) {
  const [open, setOpen] = useState(false);
  return html`<button type="button" class=${kind} disabled=${disabled} onClick=${() => setOpen(true)}>${label}</button>
    <${Confirm} title=${title} open=${open} onClose=${() => setOpen(false)} confirm=${confirm} kind=${kind} run=${run} done=${done}>
      <p>${question}</p>
    <//>`;
}

/** Resolves with whether it was copied; a notice says why not. */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    notify('Copying failed. Select the text and copy it.', 'warn');
    return false;
  }
}

/** Copies a text; the button confirms it. */
export function Copy({ text, label = 'Copy' }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    if (!(await copyText(text))) return;
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return html`<button type="button" onClick=${copy}>${copied ? 'Copied' : label}</button>`;
}

const DATE = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });
const MINUTE_MS = 60_000;
/** The largest unit of a distance in time, and from which it is used. Farther ones are dates. */
const UNITS = [
  { fromMs: 30 * 24 * 60 * MINUTE_MS },
  { fromMs: 48 * 60 * MINUTE_MS, ms: 24 * 60 * MINUTE_MS, word: 'days' },
  { fromMs: 60 * MINUTE_MS, ms: 60 * MINUTE_MS, word: 'h' },
  { fromMs: MINUTE_MS, ms: MINUTE_MS, word: 'min' },
];

/** Says how far a time is from now: "2 min ago", "in 3 days", or its date. */
export function agoText(timeMs, nowMs) {
  const distanceMs = Math.abs(timeMs - nowMs);
  const unit = UNITS.find(({ fromMs }) => distanceMs >= fromMs);
  if (unit === undefined) return timeMs > nowMs ? 'in a moment' : 'just now';
  if (unit.ms === undefined) return DATE.format(timeMs);
  const words = `${Math.floor(distanceMs / unit.ms)} ${unit.word}`;
  return timeMs > nowMs ? `in ${words}` : `${words} ago`;
}

/** @type {Set<() => void>} */
const clocks = new Set();
setInterval(() => {
  for (const tick of clocks) tick();
}, MINUTE_MS / 2);

/** A time of the API (ISO 8601) as its distance from now, kept true; the exact one in UTC on hover. */
export function Time({ of: iso }) {
  const [, tick] = useState(0);
  useEffect(() => {
    const again = () => tick((count) => count + 1);
    clocks.add(again);
    return () => clocks.delete(again);
  }, []);
  if (iso === undefined || iso === null) return html`<span class="soft">never</span>`;
  const timeMs = Date.parse(iso);
  return html`<time datetime=${iso} title=${exactTime(iso)}>${Number.isNaN(timeMs) ? iso : agoText(timeMs, Date.now())}</time>`;
}

/** Formats a time as `2026-11-24 12:30:05 UTC`; a text that is no time stays as it is. */
export function exactTime(iso) {
  const timeMs = Date.parse(iso);
  return Number.isNaN(timeMs) ? iso : `${new Date(timeMs).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** The last four digits of an id; the whole one on hover, copied at a press. */
export function ShortId({ id }) {
  return html`<${CopyText} text=${id} shown=${`…${id.slice(-4)}`} what=${`id ${id}`} />`;
}

/** A text of machines, such as a name or an id, as `shown`; a press copies all of it. `what`: the word for it. */
export function CopyText({ text, shown, what }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => setCopied(await copyText(text));
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  const word = copied ? 'Copied' : shown;
  return html`<button type="button" class="id" title=${text} aria-label=${`${word}, copy the ${what}`} onClick=${copy}>${word}<${Icon} name=${copied ? 'circle-check' : 'copy'} /></button>`;
}

/** Bytes for people: 1,536 → 1.5 KB, by 1,024. */
export function sizeText(sizeBytes) {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];
  let value = sizeBytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${Number(value.toFixed(1))} ${units[unit]}`;
}

/**
 * A list that is fetched page by page. `load(next)` resolves with `{rows, next}`: the cursor of the page after it,
 * undefined after the last one. `change` replaces the rows that are shown.
 */
export function useCursor(load, inputs) {
  const [rows, setRows] = useState([]);
  const [next, setNext] = useState(undefined);
  const first = useLoad(async () => {
    const page = await load(undefined);
    setRows(page.rows);
    setNext(page.next);
    return page;
  }, inputs);
  const more = async () => {
    const page = await load(next);
    setRows((shown) => [...shown, ...page.rows]);
    setNext(page.next);
  };
  return { ...first, rows, isWhole: next === undefined, more, change: setRows };
}

/**
 * The same with the last row as cursor: `load(after)` resolves with the rows; a page with fewer than `pageRows` is the
 * last. `cursorOf(row)` is the cursor after this row.
 */
export function usePages(load, cursorOf, pageRows, inputs) {
  const pageAfter = async (after) => {
    const rows = await load(after);
    return { rows, next: rows.length < pageRows ? undefined : cursorOf(rows.at(-1)) };
  };
  return useCursor(pageAfter, inputs);
}

const KINDS_OF_COLUMNS = ['number', 'action', 'brief', 'bare'];

/**
 * A table; on a phone each row is a block, its titles before its values. `columns`: {title, cell(row), number?, head?,
 * action?, brief?, bare?}. `number`: numbers, `head`: the header of the row, `action`: buttons, whose title is not shown.
 * On a phone `brief` ones share a line, as numbers do, and `bare` ones say what they are without a title.
 * `fits`: the columns have room on a phone.
 */
export function Table({ rows, columns, keyOf, caption, fits = false }) {
  const classOf = (column) => KINDS_OF_COLUMNS.find((kind) => column[kind]) ?? '';
  return html`<div class=${fits ? '' : 'scroll'} tabindex=${fits ? undefined : '0'} role=${fits ? undefined : 'region'} aria-label=${fits ? undefined : caption}>
    <table role="table" class=${fits ? '' : 'stacks'}>
      <caption class="hidden">${caption}</caption>
      <thead role="rowgroup"><tr role="row">${columns.map((column) => html`<th role="columnheader" scope="col" class=${classOf(column)}>${column.action ? html`<span class="hidden">${column.title}</span>` : column.title}</th>`)}</tr></thead>
      <tbody role="rowgroup">
        ${rows.map((row) => html`<tr role="row" key=${keyOf(row)}>${columns.map((column) => (column.head ? html`<th role="rowheader" scope="row">${column.cell(row)}</th>` : html`<td role="cell" class=${classOf(column)} data-title=${column.title}><div>${column.cell(row)}</div></td>`))}</tr>`)}
      </tbody>
    </table>
  </div>`;
}

/** Rows of `usePages` or `useCursor` as a `Table` with its states. */
export function PagedTable({ pages, columns, keyOf, empty, caption, icon, more = 'Show more' }) {
  return html`<${Loaded} of=${pages}>
    ${() =>
      html`${
        pages.rows.length === 0
          ? html`<${Empty} icon=${icon}><p>${empty}</p><//>`
          : html`<${Table} rows=${pages.rows} columns=${columns} keyOf=${keyOf} caption=${caption} />`
      }${!pages.isWhole && html`<p class="more"><${Act} run=${pages.more}>${more}<//></p>`}`}
  <//>`;
}
