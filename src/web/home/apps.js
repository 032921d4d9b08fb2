/** Applications of the account: registration, API key, webhook and deliveries. */
import { get, newKey, post } from '../shared/api.js';
import { Deliveries } from '../shared/deliveries.js';
import { Act, Ask, Copy, Dialog, Empty, Loaded, notify, ShortId, useLoad } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

export function AppsPart({ info }) {
  const hasWebhooks = info.features.includes('webhooks');
  const apps = useLoad(() => get('/auth/v1/app/list'), []);
  const [edited, setEdited] = useState(undefined);
  const [shown, setShown] = useState(undefined);
  const then = async (act) => {
    const answer = await act();
    await apps.reload();
    return answer;
  };
  const save = async (form) => {
    const answer = await then(() =>
      post('/auth/v1/app/upsert_usr_app', form, { headers: { 'Idempotency-Key': newKey() } }),
    );
    setEdited(undefined);
    if (answer.apiKey !== undefined) setShown(answer);
  };
  const finish = (app) => then(() => post('/auth/v1/app/rotate_key', { appId: app.id, finish: true }));
  const rotate = async (app) =>
    setShown(await then(() => post('/auth/v1/app/rotate_key', { appId: app.id })));
  return html`<h1>Applications</h1>
    <p class="soft">${hasWebhooks && 'Your applications receive events as webhooks. '}Agents can log in for an application once an admin has approved it.</p>
    <p><button type="button" class="primary" onClick=${() => setEdited({})}>Register an application</button></p>
    <${Loaded} of=${apps}>${(list) =>
      list.length === 0
        ? html`<div class="card"><${Empty} icon="app-window"><p>No applications yet.</p><//></div>`
        : list.map(
            (app) =>
              html`<${App} key=${app.id} app=${app} hasWebhooks=${hasWebhooks} edit=${() => setEdited(app)} rotate=${() => rotate(app)} finish=${() => finish(app)} enable=${() => then(() => post('/auth/v1/app/enable', { appId: app.id }))} remove=${() => then(() => post('/auth/v1/app/remove', { appId: app.id }))} />`,
          )}<//>
    <${Dialog} title=${edited?.id === undefined ? 'Register an application' : 'Change the application'} open=${edited !== undefined} onClose=${() => setEdited(undefined)}>
      <${Form} app=${edited ?? {}} hasWebhooks=${hasWebhooks} save=${save} cancel=${() => setEdited(undefined)} />
    <//>
    <${Dialog} title="API key" open=${shown !== undefined} onClose=${() => setShown(undefined)}>
      <p>${keyNote(shown, hasWebhooks)}It is shown once.</p>
      <pre>${shown?.apiKey}</pre>
      <div class="row"><${Copy} text=${shown?.apiKey ?? ''} label="Copy the key" /><button type="button" onClick=${() => setShown(undefined)}>Done</button></div>
    <//>`;
}

/** Says what the new key is used for. */
function keyNote(shown, hasWebhooks) {
  if (!hasWebhooks) return '';
  return shown?.keys?.length > 1
    ? html`Webhooks are signed with it from now on. <code>X-API-Key</code> keeps the former key for 24 hours, or until you end that key. `
    : html`Webhooks send it as <code>X-API-Key</code>. `;
}

async function ping({ id }) {
  const { status, class: fault } = await post('/auth/v1/app/ping', { appId: id });
  const said = status === null ? `No answer: ${fault}.` : `The receiver answered ${status}.`;
  notify(said, status !== null && status < 300 ? 'good' : 'bad');
}

/** A rotation is under way: the key before the newest one has not ended yet. */
function hasFormerKey({ keys = [] }) {
  return keys[1] !== undefined && Date.parse(keys[1].expiresUtc) > Date.now();
}

function App({ app, hasWebhooks, edit, rotate, finish, enable, remove }) {
  const hasWebhook = hasWebhooks && Boolean(app.webhookUrl);
  return html`<article class="card">
    <header>
      <h2>${app.name}</h2>
      <span class=${`tag ${app.approved ? 'good' : 'warn'}`}>${app.approved ? 'approved' : 'pending approval'}</span>
      ${app.mcpEnabled && html`<span class="tag good">MCP</span>`}
    </header>
    <dl class="facts small">
      <dt>Address</dt><dd>${app.url}</dd>
      ${hasWebhooks && html`<dt>Webhook</dt><dd>${app.webhookUrl || html`<span class="soft">none (events are not sent)</span>`}</dd>`}
      <dt>Currencies</dt><dd>${app.currencies?.length > 0 ? app.currencies.join(', ') : 'all'}</dd>
      <dt>Network types</dt><dd>${app.netTypes?.length > 0 ? app.netTypes.join(', ') : 'all'}</dd>
      ${hasWebhook && html`<dt>Webhook state</dt><dd><span class=${`tag ${{ active: 'good', failing: 'warn', disabled: 'bad' }[app.webhook.state]}`}>${app.webhook.state}</span>${app.webhook.reason === null ? '' : ` ${app.webhook.reason}`}</dd>`}
      ${hasWebhooks && html`<dt>Delivered</dt><dd>${app.success_count.toLocaleString('en')}, failed ${app.failed_count.toLocaleString('en')}</dd>`}
      ${app.redirectUris?.length > 0 && html`<dt>Redirects to</dt><dd class="mono">${app.redirectUris.join(' ')}</dd>`}
      <dt>Id</dt><dd><${ShortId} id=${app.id} /></dd>
    </dl>
    <div class="row">
      <button type="button" onClick=${edit}>Change</button>
      ${hasWebhook && html`<${Act} run=${() => ping(app)}>Send a test event<//>`}
      ${hasWebhook && app.webhook.state !== 'active' && html`<${Act} done="The webhook is re-enabled." run=${enable}>Re-enable webhook<//>`}
      <${Ask} kind="" label="New key" title="Make a new API key?" confirm="Make a new key" question="The old key stays valid for 24 hours, so that receivers can switch." run=${rotate} />
      ${hasFormerKey(app) && html`<${Ask} label="End the former key" title="End the former key?" confirm="End it" done="Webhooks use the new key now." question="Receivers that still use the former key will refuse webhooks." run=${finish} />`}
      <${Ask} label="Remove" title=${`Remove ${app.name}?`} confirm="Remove it" done="The application was removed." question="Its sessions and webhooks end immediately. This cannot be undone." run=${remove} />
    </div>
    ${hasWebhook && html`<${Deliveries} read=${(before) => get('/auth/v1/app/deliveries', { appId: app.id, before })} resend=${({ webhookId }) => post('/auth/v1/app/resend', { appId: app.id, webhookId })} />`}
  </article>`;
}

const listOf = (text) => text.split(/[\s,;]+/).filter((part) => part !== '');

/** Input stays when the gateway refuses it. */
function Form({ app, hasWebhooks, save, cancel }) {
  const [form, setForm] = useState({
    name: app.name ?? '',
    url: app.url ?? '',
    webhookUrl: app.webhookUrl ?? '',
    currencies: (app.currencies ?? []).join(', '),
    netTypes: (app.netTypes ?? []).join(', '),
    redirectUris: (app.redirectUris ?? []).join('\n'),
  });
  const set = (field) => (event) => setForm({ ...form, [field]: event.currentTarget.value });
  const redirectUris = form.redirectUris.split(/\s+/).filter((uri) => uri !== '');
  const hasRedirects = redirectUris.length > 0 || (app.redirectUris ?? []).length > 0;
  const submit = () =>
    save({
      ...(app.id === undefined ? {} : { appId: app.id }),
      name: form.name.trim(),
      url: form.url.trim(),
      webhookUrl: form.webhookUrl.trim(),
      currencies: listOf(form.currencies),
      netTypes: listOf(form.netTypes).map(Number),
      ...(hasRedirects ? { redirectUris } : {}),
    });
  const field = (name, label, hint, more = {}) => html`<div>
    <label for=${`app-${name}`}>${label}</label>
    <input id=${`app-${name}`} value=${form[name]} onInput=${set(name)} aria-describedby=${`app-${name}-hint`} ...${more} />
    <p class="hint" id=${`app-${name}-hint`}>${hint}</p>
  </div>`;
  return html`<form class="stack" onSubmit=${(event) => event.preventDefault()}>
    ${field('name', 'Name', 'Shown to people who grant it access.', { maxlength: 64, required: true })}
    ${field('url', 'Address', 'Home page of the application. The gateway never connects to it.', { type: 'url', required: true })}
    ${
      hasWebhooks &&
      html`${field('webhookUrl', 'Webhook', 'Events are sent to this address by POST. Leave empty for none.', { type: 'url' })}
    ${field('currencies', 'Currencies', 'Receive events of these currency codes only, at most 20. Leave empty for all.')}
    ${field('netTypes', 'Network types', 'Receive events of these network types only: numbers from 0 to 255, at most 30. Leave empty for all. Events without a network type are always sent.')}`
    }
    <div>
      <label for="app-redirectUris">Redirect URIs</label>
      <textarea id="app-redirectUris" rows="2" aria-describedby="app-redirectUris-hint" value=${form.redirectUris} onInput=${set('redirectUris')}></textarea>
      <p class="hint" id="app-redirectUris-hint">For applications that connect by /connect/mcp: up to 5, one per line. A change needs a new approval. Leave empty for none.</p>
    </div>
    <div class="row"><${Act} kind="primary" inline done="Saved." run=${submit}>Save<//><button type="button" onClick=${cancel}>Cancel</button></div>
  </form>`;
}
