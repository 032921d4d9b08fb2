/** Allows the key of an agent from the link that `gatehouse-connect` prints. */
import { checkLetters, LETTERS, NAME_MAX, readAgentLink, typedLetters } from '../shared/agent-link.js';
import { get, post } from '../shared/api.js';
import { Act } from '../shared/ui.js';
import { html, useState } from '../vendor/preact.js';

export function EnrollPart({ hash }) {
  const link = readAgentLink(hash);
  if (link === undefined)
    return html`<h1>Allow an agent</h1>
      <div class="note bad" role="alert"><p>The link is incomplete: it names no key. Copy the whole link from the agent's terminal.</p></div>`;
  return html`<${Enroll} key=${link.publicKey} link=${link} />`;
}

function Enroll({ link }) {
  const [name, setName] = useState(link.name);
  const [letters, setLetters] = useState('');
  const [isDone, setDone] = useState(false);
  const allow = async () => {
    await checkLetters(link.publicKey, letters);
    const { publicKey } = link;
    const { challengeId, code } = await get('/auth/v1/register_options');
    const label = name.trim() === '' ? 'Agent' : name.trim();
    const { key } = await post('/auth/v1/keys/register_key', {
      challengeId,
      code,
      publicKey,
      name: label,
      browserLogin: false,
    });
    await post('/auth/v1/keys/update_key', { keyId: key.id, mcpAccess: true });
    setDone(true);
  };
  if (isDone)
    return html`<h1>Allow an agent</h1>
      <div class="note good" role="status"><p>The agent is allowed, and connects by itself now. You can revoke its key at any time under <a href="#keys">Keys</a>.</p></div>`;
  return html`<h1>Allow an agent</h1>
    <form class="card stack" onSubmit=${(event) => event.preventDefault()}>
      <p>An agent asks to act for this account with a key of its own. The key may use MCP only: it cannot log in to this page.</p>
      <dl class="facts small"><dt>Public key</dt><dd class="mono">${link.publicKey}</dd></dl>
      <div>
        <label for="letters">Six letters from the agent's terminal</label>
        <input id="letters" class="letters mono" autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="13" aria-describedby="letters-hint" value=${letters} onInput=${(event) => setLetters(event.currentTarget.value)} />
        <p class="hint" id="letters-hint">Type them only if you have started the agent yourself. Never take them from a message or from another person.</p>
      </div>
      <div>
        <label for="agent-name">Key name</label>
        <input id="agent-name" maxlength=${NAME_MAX} value=${name} onInput=${(event) => setName(event.currentTarget.value)} />
      </div>
      <div class="row"><${Act} kind="primary" inline disabled=${typedLetters(letters).length !== LETTERS} run=${allow}>Allow the agent<//><a class="button" href="#agent">Cancel</a></div>
    </form>`;
}
