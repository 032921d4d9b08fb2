/** Files: upload, progress, pause, resume, download. The list holds the uploads of this tab. */
import { sentenceOf } from '../shared/api.js';
import { Act, Copy, Empty, notify, ShortId, sizeText } from '../shared/ui.js';
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { Upload } from './uploader.js';

/** Lives as long as the page, so that an upload continues while another part is shown. The gateway allows one at a time. */
const shelf = { entries: [], listeners: new Set(), running: false };

function changed(entry, change) {
  Object.assign(entry, change);
  for (const listener of shelf.listeners) listener();
}

async function next() {
  const entry = shelf.entries.find(({ stage }) => stage === 'waiting');
  if (shelf.running || entry === undefined) return;
  shelf.running = true;
  entry.upload = new Upload(entry.file, (state) => changed(entry, state));
  await guarded(entry, () => entry.upload.start());
}

/** A failure stays on the entry. The next file starts when this one is over, not while it is paused. */
async function guarded(entry, act) {
  try {
    await act();
  } catch (error) {
    changed(entry, { stage: 'failed', error: sentenceOf(error) });
  }
  if (entry.stage === 'paused') return;
  shelf.running = false;
  if (entry.stage === 'complete') notify(`${entry.file.name} is uploaded.`);
  await next();
}

function add(files, maxBytes) {
  for (const file of files) {
    if (file.size > maxBytes)
      notify(`${file.name} is larger than the limit of ${sizeText(maxBytes)}.`, 'warn');
    else if (file.size === 0) notify(`${file.name} is empty. Empty files are not accepted.`, 'warn');
    else shelf.entries.unshift({ id: crypto.randomUUID(), file, stage: 'waiting', done: 0, total: 1 });
  }
  for (const listener of shelf.listeners) listener();
  void next();
}

export function FilesPart({ info }) {
  const [, redraw] = useState(0);
  const [over, setOver] = useState(false);
  const picker = useRef(null);
  useEffect(() => {
    const listener = () => redraw((count) => count + 1);
    shelf.listeners.add(listener);
    return () => shelf.listeners.delete(listener);
  }, []);
  const drop = (event) => {
    event.preventDefault();
    setOver(false);
    add(event.dataTransfer.files, info.limits.fileMaxSizeBytes);
  };
  return html`<h1>Files</h1>
    <section class="card">
      <div class=${`drop ${over ? 'over' : ''}`} onDragOver=${(event) => {
        event.preventDefault();
        setOver(true);
      }} onDragLeave=${() => setOver(false)} onDrop=${drop}>
        <p>Drop files here to upload them to your personal storage. The limit is ${sizeText(info.limits.fileMaxSizeBytes)} per file.</p>
        <button type="button" class="primary" onClick=${() => picker.current.click()}>Choose files</button>
        <input ref=${picker} class="hidden" type="file" multiple aria-label="Files to upload" tabindex="-1" onChange=${(
          event,
        ) => {
          add(event.currentTarget.files, info.limits.fileMaxSizeBytes);
          event.currentTarget.value = '';
        }} />
      </div>
    </section>
    <section class="card" aria-live="polite">
      <header><h2>Uploads in this tab</h2></header>
      ${shelf.entries.length === 0 ? html`<${Empty} icon="upload"><p>No uploads yet.</p><//>` : html`<div class="uploads">${shelf.entries.map((entry) => html`<${Entry} baseUrl=${info.baseUrl} key=${entry.id} entry=${entry} />`)}</div>`}
    </section>`;
}

const STAGES = {
  waiting: 'waiting',
  checking: 'reading',
  sending: 'sending',
  paused: 'paused',
  complete: 'complete',
  cancelled: 'cancelled',
  failed: 'failed',
};
const KINDS = { complete: 'good', failed: 'bad', paused: 'warn' };

function Entry({ entry, baseUrl }) {
  const { file, stage, upload } = entry;
  const isLive = stage === 'sending' || stage === 'checking';
  return html`<article class="stack">
    <div class="row">
      <strong>${file.name}</strong><span class="soft small">${sizeText(file.size)}</span>
      <span class=${`tag ${KINDS[stage] ?? ''}`}>${STAGES[stage]}</span>
    </div>
    ${(isLive || stage === 'paused') && html`<progress max=${entry.total} value=${entry.done} aria-label=${`${file.name}, ${entry.done} of ${entry.total} pieces`}></progress>`}
    ${stage === 'failed' && html`<p class="fault small" role="alert">${entry.error}</p>`}
    <div class="row">
      ${stage === 'sending' && html`<button type="button" onClick=${() => upload.pause()}>Pause</button>`}
      ${stage === 'paused' && html`<${Act} kind="primary" run=${() => guarded(entry, () => upload.resume())}>Resume<//>`}
      ${(isLive || stage === 'paused') && html`<${Act} kind="danger" run=${() => guarded(entry, () => upload.cancel())}>Cancel<//>`}
      ${
        stage === 'complete' &&
        html`<a class="button" href=${`/auth/v2/file/${entry.fileCode}`} download=${file.name}>Download</a>
        <${Copy} text=${`${baseUrl}/auth/v2/file/${entry.fileCode}`} label="Copy the link" />
        <span class="soft small">File id <${ShortId} id=${entry.fileId} /></span>`
      }
    </div>
  </article>`;
}
