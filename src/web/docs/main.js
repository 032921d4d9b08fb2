/** The API explorer: Swagger UI over the gateway's own description, and a helper that logs an agent in. */
import { ApiError, call, sentenceOf } from '../shared/api.js';
import { importKey, loginHeaders } from '../shared/ed25519.js';
import { html, render, useState } from '../vendor/preact.js';
import { explorerPlugin, nameControls } from './layout.js';

/** Swagger UI has its own dark theme, switched on by a class. */
const dark = matchMedia('(prefers-color-scheme: dark)');
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', followScheme);
followScheme();

nameControls(document.getElementById('explorer'));
const explorer = window.SwaggerUIBundle({
  url: '/docs/swagger/openapi.json',
  domNode: document.getElementById('explorer'),
  presets: [window.SwaggerUIBundle.presets.apis],
  plugins: [explorerPlugin],
  layout: 'ExplorerLayout',
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: -1,
  displayRequestDuration: true,
  filter: true,
  tryItOutEnabled: true,
  queryConfigEnabled: false,
  validatorUrl: null,
  persistAuthorization: false,
});

/** Signs mcp_login with a key that stays in this page and hands the session to "Authorize". */
function Login() {
  const [secretText, setSecretText] = useState('');
  const [state, setState] = useState({});
  const login = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      const headers = await loginHeaders(await importKey(secretText));
      const session = await call('POST', '/auth/v1/mcp_login', { headers });
      explorer.preauthorizeApiKey('bearer', session.sessionId);
      setState({ session, headers });
    } catch (error) {
      setState({ error: error instanceof ApiError ? sentenceOf(error) : faultOf(error) });
    }
  };
  return html`<details class="card">
    <summary>Log in as an agent for the requests below</summary>
    <form class="stack" onSubmit=${login}>
      <div>
        <label for="secret">Secret key of an agent (Ed25519, base64url)</label>
        <input id="secret" type="password" autocomplete="off" spellcheck="false" required value=${secretText}
          aria-describedby="secret-hint" onInput=${(event) => setSecretText(event.currentTarget.value)} />
        <p class="hint" id="secret-hint">It is used in this page only and is never sent. <code>node build/src/main.cjs keygen</code> prints a pair; enroll the public key with MCP access first.</p>
      </div>
      <div class="row"><button type="submit" class="primary" disabled=${state.busy === true}>Sign and log in</button></div>
      <div role="status">
        ${state.error && html`<div class="note bad"><p>${state.error}</p></div>`}
        ${
          state.session &&
          html`<div class="note good">
          <p>Logged in as ${state.session.loginType} until ${state.session.expiresUtc}. Routes with bearer authentication use this session.</p>
          <p class="small">Request headers:</p>
          <pre>${Object.entries(state.headers)
            .map(([name, value]) => `${name}: ${value}`)
            .join('\n')}</pre>
        </div>`
        }
      </div>
    </form>
  </details>`;
}

function faultOf(error) {
  if (error instanceof DOMException && error.name === 'NotSupportedError')
    return 'This browser cannot sign with Ed25519. Use a current version.';
  return 'Invalid secret key: 32 bytes in base64url are expected.';
}

render(html`<${Login} />`, document.getElementById('login'));
