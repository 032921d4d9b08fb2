/**
 * The page of `/connect/authorize`: what an MCP host asks for, log-in or sign-up, the consent. The gateway judges the
 * request; this page shows the result of `GET /connect/request`.
 */
import { get, post } from '../shared/api.js';
import { LogIn, SignUp } from '../shared/enter.js';
import { Loaded, Notices, useLoad } from '../shared/ui.js';
import { html, render, useEffect, useState } from '../vendor/preact.js';
import { Client, Consent } from './consent.js';

/** Unchanged, as the gateway compares it. */
const QUERY = location.search;

const TITLES = {
  login: 'Log in to connect',
  fresh_login: 'Log in again to connect',
  consent: 'Connect a program',
  error: 'This link cannot be used',
  expired: 'The question has expired',
  sent: 'You can close this page',
};

function App() {
  const info = useLoad(() => get('/auth/v1/info'), []);
  const request = useLoad(() => get(`/connect/request${QUERY}`), []);
  /** `sent`, `expired` or `fresh_login`: it replaces the step of the request. */
  const [end, setEnd] = useState(undefined);
  /** Access that the person gives the program. */
  const [chosen, choose] = useState(undefined);
  const shown = end?.step ?? request.value?.step;
  useEffect(() => {
    document.title = `${TITLES[shown] ?? 'Connect'} · Gatehouse`;
    // Each step begins at its heading, for screen readers and the keyboard.
    document.querySelector('h1')?.focus();
  }, [shown]);
  const again = async () => {
    await request.reload();
    setEnd(undefined);
  };
  const leave = (redirect) => {
    setEnd({ step: 'sent', redirect });
    location.replace(redirect);
  };
  const redirect = request.value?.step === 'redirect' ? request.value.redirect : undefined;
  useEffect(() => {
    if (redirect !== undefined) leave(redirect);
  }, [redirect]);
  const change = async () => {
    await post('/auth/v1/logout', {});
    choose(undefined);
    await again();
  };
  return html`<header class="bar">
      <a class="brand" href="/"><img src=${new URL('../shared/icon.svg', import.meta.url).pathname} alt="" /><span>Gatehouse <small>${info.value?.project}</small></span></a>
    </header>
    <main class="page connect" id="content">
      <${Loaded} of=${request}>
        ${(value) => {
          if (end?.step === 'sent' || value.step === 'redirect') return html`<${Sent} request=${value} />`;
          if (end?.step === 'expired') return html`<${Expired} again=${again} />`;
          if (value.step === 'error') return html`<${Unusable} error=${value.error} />`;
          const isAgain = end?.step === 'fresh_login' && value.step === 'consent';
          if (value.step === 'consent' && !isAgain)
            return html`<${Consent} key=${value.challenge.code} request=${value} info=${info.value} query=${QUERY.slice(1)} leave=${leave} expire=${() => setEnd({ step: 'expired' })} change=${change} again=${again} logIn=${() => setEnd({ step: 'fresh_login' })} chosen=${chosen} choose=${choose} />`;
          return html`<${Enter} key=${isAgain} request=${value} info=${info.value} isAgain=${isAgain} again=${again} change=${change} back=${() => setEnd(undefined)} />`;
        }}
      <//>
    </main>
    <${Notices} />`;
}

/** Without a session, or with one that is too old for full access. */
function Enter({ request, info, isAgain, again, change, back }) {
  return html`<section>
      <h1 tabindex="-1">${TITLES[isAgain ? 'fresh_login' : 'login']}</h1>
      <${Client} request=${request} />
      <p>${isAgain ? 'Full access needs a login of the last 15 minutes. Your choice is kept.' : 'After the login this page shows what is asked. Nothing is shared before you agree.'}</p>
      ${isAgain && request.account !== null && html`<p class="soft">You are logged in as account <span class="mono">${request.account.userId}</span>. <button type="button" class="plain" onClick=${change}>Use another account</button></p>`}
    </section>
    <${LogIn} info=${info} title=${isAgain ? 'Log in again' : 'Log in'} onEnter=${again} />
    ${isAgain ? html`<section><button type="button" onClick=${back}>Back to the choice</button></section>` : html`<${SignUp} onEnter=${again} />`}`;
}

/** Texts by the code of RFC 6749; the gateway's message follows, for the developer of the program. */
const FAULTS = {
  invalid_client: 'The program that sent you here is not known to this gateway.',
  invalid_request: 'The program that sent you here asked in a wrong way.',
};

function Unusable({ error }) {
  return html`<section class="card stack" role="alert">
    <h1 tabindex="-1">${TITLES.error}</h1>
    <p>${FAULTS[error.code] ?? 'The request is not valid.'} Nothing was shared.</p>
    <p>Close this page, remove the connection in your program, and add it again.</p>
    <p class="small soft">For its developer: <span class="mono">${error.code}</span>, ${error.message}</p>
    <div class="row"><a class="button" href="/">Go to the home page</a></div>
  </section>`;
}

function Expired({ again }) {
  return html`<section class="card" role="alert">
    <h1 tabindex="-1">${TITLES.expired}</h1>
    <p>It was open for too long, or was answered in another tab. Nothing was shared from here.</p>
    <div class="row"><button type="button" class="primary" onClick=${again}>Ask again</button><a class="button" href="/">Go to the home page</a></div>
  </section>`;
}

function Sent({ request }) {
  const { destination } = request;
  const where = destination?.kind === 'web' ? destination.host : 'your program';
  return html`<section class="card" role="status">
    <h1 tabindex="-1">${TITLES.sent}</h1>
    <p>Your answer is on its way to ${where}. If nothing happens there, start the connection again from the program.</p>
    <p class="soft">All connections are listed on the <a href="/#hosts">home page, under “Connected hosts”</a>.</p>
  </section>`;
}

const root = document.getElementById('app');
root.replaceChildren();
render(html`<${App} />`, root);
