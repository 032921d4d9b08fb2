/**
 * The MCP client of @ai-sdk as a host: `node ai-sdk.js URL`. Lines of standard input: the address that the browser came
 * back to, or `call`. Lines of standard output: `authorize URL`, `tokens JSON`, `result JSON`, `failed MESSAGE`.
 */
import { createInterface } from 'node:readline';
import { auth, createMCPClient } from '@ai-sdk/mcp';

const [, , serverUrl] = process.argv;
const callback = 'http://127.0.0.1:33418/callback';
const kept = {};

const say = (word, value) => process.stdout.write(`${word} ${value}\n`);

const authProvider = {
  redirectUrl: callback,
  clientMetadata: { client_name: 'ai-sdk', redirect_uris: [callback], token_endpoint_auth_method: 'none' },
  isClientInformationDynamicallyRegistered: () => true,
  clientInformation: () => kept.client,
  saveClientInformation(client) {
    kept.client = client;
  },
  authorizationServerInformation: () => kept.server,
  saveAuthorizationServerInformation(server) {
    kept.server = server;
  },
  tokens: () => kept.tokens,
  saveTokens(tokens) {
    kept.tokens = tokens;
    say('tokens', JSON.stringify({ clientId: kept.client.client_id, token: tokens.access_token }));
  },
  saveCodeVerifier(verifier) {
    kept.verifier = verifier;
  },
  codeVerifier: () => kept.verifier,
  state: () => crypto.randomUUID(),
  saveState(state) {
    kept.state = state;
  },
  storedState: () => kept.state,
  validateAuthorizationServerURL() {},
  redirectToAuthorization: (url) => say('authorize', url.href),
  invalidateCredentials(scope) {
    if (scope === 'all' || scope === 'tokens') delete kept.tokens;
    if (scope === 'all' || scope === 'client') delete kept.client;
  },
};

async function call() {
  const client = await createMCPClient({ transport: { type: 'http', url: serverUrl, authProvider } });
  try {
    const tools = await client.tools();
    const result = await tools.wallet_get_balance.execute({}, { toolCallId: '1', messages: [] });
    say('result', JSON.stringify(result));
  } finally {
    await client.close();
  }
}

const attempt = (work) => work().catch((error) => say('failed', error.message));

await attempt(call);
for await (const line of createInterface(process.stdin)) {
  if (line !== 'call') {
    const { searchParams } = new URL(line);
    const [authorizationCode, callbackState, callbackIssuer] = ['code', 'state', 'iss'].map(
      (name) => searchParams.get(name) ?? undefined,
    );
    await attempt(() => auth(authProvider, { serverUrl, authorizationCode, callbackState, callbackIssuer }));
  }
  await attempt(call);
}
