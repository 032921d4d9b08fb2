/** List of tasks that need a person, with links, on top of the overview. */
import { get } from '../shared/api.js';
import { Icon, Loaded, useLoad } from '../shared/ui.js';
import { html, useEffect } from '../vendor/preact.js';
import { MissingNodes } from './cluster.js';

const ICONS = { bad: 'circle-alert', warn: 'triangle-alert' };
const WORDS = { bad: 'Failing: ', warn: 'Warning: ' };
const MINUTE_MS = 60_000;

export function Attention() {
  const attention = useLoad(() => get('/ProxyAdmin/api/attention'), []);
  useEffect(() => {
    const timer = setInterval(attention.reload, MINUTE_MS);
    return () => clearInterval(timer);
  }, [attention.reload]);
  const count = attention.value?.items.length ?? 0;
  return html`<section class="card attention" aria-labelledby="attention"><header><h2 id="attention">Needs attention</h2>${count > 0 && html`<span class="count bad">${count}</span>`}</header>
    <${Loaded} of=${attention}>${({
      items,
      missing,
    }) => html`<${MissingNodes} names=${missing} of="what needs attention there is" />
      ${
        items.length === 0
          ? html`<p class="row soft"><${Icon} name="circle-check" kind="good" />Nothing needs you.</p>`
          : html`<ul>${items.map(({ level, title, detail, link, href }) => html`<li key=${title}><a href=${href}><span class=${level}><${Icon} name=${ICONS[level]} /><span class="hidden">${WORDS[level]}</span></span><span><strong>${title}</strong> <span class="soft">${detail}</span></span><span class="go">${link}<${Icon} name="chevron-right" /></span></a></li>`)}</ul>`
      }`}<//>
  </section>`;
}
