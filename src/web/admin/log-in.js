/** Log-in to the panel: the links that make an admin, the log-in, and accounts without a role. */
import { post } from '../shared/api.js';
import { logInWithSoftwareKey } from '../shared/key-store.js';
import { logInWithPasskey, passkeyHindrance, registerPasskey } from '../shared/passkeys.js';
import { Act } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

/** Texts of a link, by its kind. */
const WORDS = {
  first: { title: 'Become the first admin', hint: '', done: 'You are the first admin.' },
  recovery: {
    title: 'Regain access as an admin',
    hint: 'Accounts that are admins already stay admins.',
    done: 'You are an admin.',
  },
};

export function LogIn({ session, link, onEnter }) {
  if (link !== undefined) return html`<${Setup} words=${WORDS[link]} onEnter=${onEnter} />`;
  if (session !== null) return html`<${NoRole} session=${session} />`;
  const enter = async (act) => {
    await act();
    await onEnter();
  };
  const hindrance = passkeyHindrance();
  return html`<section class="card">
    <header><h1>Log in to the admin panel</h1></header>
    <div class="row">
      ${hindrance === undefined ? html`<${Act} kind="primary" run=${() => enter(logInWithPasskey)}>Log in with a passkey<//>` : html`<p class="hint">${hindrance}</p>`}
      <${Act} run=${() => enter(logInWithSoftwareKey)}>Log in with this browser's key<//>
    </div>
    <p class="hint">Admins assign roles. The first admin uses the set-up link that the gateway prints at start. If no admin can log in, run <code>gatehouse admin recover</code> on its machine.</p>
  </section>`;
}

function NoRole({ session }) {
  return html`<section class="card">
    <header><h1>This account has no role</h1></header>
    <p>You are logged in as account <code>${session.userId}</code>. An admin can give it a role on the page Accounts.</p>
    <p>No admin yet? Use the set-up link that the gateway prints at start, or add a key to <code>Admin.publicKeys</code> in the configuration.</p>
  </section>`;
}

function Setup({ words, onEnter }) {
  const [token] = useState(location.hash.slice(1));
  const [isDone, setDone] = useState(false);
  const hindrance = passkeyHindrance();
  const claim = async () => {
    await post('/ProxyAdmin/api/claim', { token });
    setDone(true);
    history.replaceState(null, '', '/ProxyAdmin/Dashboard');
    await onEnter();
  };
  const enrol = async () => {
    await registerPasskey('Admin');
    await claim();
  };
  const logIn = async () => {
    await logInWithPasskey();
    await claim();
  };
  return html`<section class="card">
    <header><h1>${words.title}</h1></header>
    <p>The link works once, within 30 minutes. The passkey that you create now gives access to the panel. ${words.hint}</p>
    ${token === '' && html`<div class="note bad" role="alert"><p>The address is incomplete: the part after # is missing. Copy the whole line from the console.</p></div>`}
    ${
      hindrance !== undefined
        ? html`<div class="note bad" role="alert"><p>${hindrance}</p></div>`
        : html`<div class="row">
          <${Act} kind="primary" inline disabled=${token === '' || isDone} done=${words.done} run=${enrol}>Create a passkey<//>
          <${Act} inline disabled=${token === '' || isDone} done=${words.done} run=${logIn}>Use an existing passkey<//>
        </div>`
    }
  </section>`;
}
