import t, { type Test } from 'tap';
import type { Site } from '../../../src/domain/site.ts';
import { protectedEndpoint } from '../../../src/io/connect/mcp-endpoint.ts';
import { type OAuthClients, policyOf } from '../../../src/io/connect/policy.ts';
import { createResources, mcpResource } from '../../../src/io/connect/resources.ts';
import { resourceMetadataRoute, serverMetadataRoutes } from '../../../src/io/routes/connect-metadata.ts';
import { OAUTH } from '../../support/connect.ts';
import { type McpFixture, startMcp, TOKENS } from '../../support/mcp.ts';

const CALL = JSON.stringify({ jsonrpc: '2.0', id: 'a1', method: 'tools/list' });
const FOREIGN = { origin: 'https://inspector.example' };

const SERVER_METADATA = '/.well-known/oauth-authorization-server';

async function start(t: Test, clients: OAuthClients = 'any', site: Partial<Site> = {}): Promise<McpFixture> {
  const mcp = await startMcp({
    site,
    endpoints: [protectedEndpoint()],
    routes: [
      resourceMetadataRoute(createResources([mcpResource({ project: 'demo' })])),
      ...serverMetadataRoutes(policyOf({ ...OAUTH, oauthClients: clients })),
    ],
  });
  t.teardown(() => mcp.close());
  return mcp;
}

function send(mcp: McpFixture, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${mcp.http.url}${path}`, init);
}

function post(mcp: McpFixture, body: string, headers: Record<string, string> = {}): Promise<Response> {
  const all = { 'content-type': 'application/json', ...headers };
  return send(mcp, '/connect/mcp', { method: 'POST', headers: all, body });
}

// covers R41
t.test('/connect/mcp: without or with a dead token 401 for every method and message', async (t) => {
  const mcp = await start(t);
  const metadata = `${mcp.http.url}/.well-known/oauth-protected-resource/connect/mcp`;
  for (const [name, token, error] of [
    ['none', undefined, ''],
    ['unknown', 'nothing', 'error="invalid_token", '],
    ['of /mcp', TOKENS.McpVerified, 'error="invalid_token", '],
  ] as const) {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const bodies = [
      CALL,
      '{"jsonrpc":"2.0","id":2,"method":"initialize"}',
      '{"jsonrpc":"2.0","method":"notifications/initialized"}',
      `[${CALL}]`,
      'not json',
    ];
    for (const body of bodies) {
      const answer = await post(mcp, body, headers);
      t.equal(answer.status, 401, `${name}: ${body}`);
      t.equal(
        answer.headers.get('www-authenticate'),
        `Bearer ${error}resource_metadata="${metadata}", scope="tools"`,
      );
    }
    for (const method of ['GET', 'DELETE'])
      t.equal((await send(mcp, '/connect/mcp', { method, headers })).status, 401, `${name}: ${method}`);
    const unread = await send(mcp, '/connect/mcp', { method: 'POST', headers, body: 'text' });
    t.equal(unread.status, 401, `${name}: another media type`);
  }
  const answer = await post(mcp, CALL);
  t.match(await answer.json(), { jsonrpc: '2.0', id: 'a1', error: { code: -32001 } });
  const capability = await post(mcp, CALL, { 'x-mcp-code': 'any' });
  t.equal(capability.status, 401, 'a capability code is no token');
});

t.test('/connect/mcp: a token of it is served as at /mcp, GET is 405', async (t) => {
  const mcp = await start(t);
  const bearer = { authorization: `Bearer ${TOKENS.connected}` };
  const answer = await post(mcp, CALL, bearer);
  t.equal(answer.status, 200);
  t.match(await answer.json(), { id: 'a1', result: { tools: [{ name: /./ }] } });
  const get = await send(mcp, '/connect/mcp', { headers: bearer });
  t.equal(get.status, 405);
  t.equal(get.headers.get('allow'), 'POST, DELETE');
  t.equal((await post(mcp, 'not json', bearer)).status, 400);
  t.equal((await post(mcp, '[]', bearer)).status, 200);
  const elsewhere = await mcp.rpc('tools/list', {}, TOKENS.connected);
  t.equal(elsewhere.error?.code, -32001, 'its audience is not /mcp');
});

// covers R46
t.test('/connect/mcp: notifications and responses are 202 without a body and a media type', async (t) => {
  const mcp = await start(t);
  const bearer = { authorization: `Bearer ${TOKENS.connected}` };
  const initialized = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
  const response = '{"jsonrpc":"2.0","id":7,"result":{}}';
  for (const body of [initialized, response, `[${initialized},${response}]`]) {
    const answer = await post(mcp, body, bearer);
    t.equal(answer.status, 202, body);
    t.equal(answer.headers.get('content-type'), null);
    t.equal(await answer.text(), '');
  }
  t.equal((await post(mcp, `[${initialized},${CALL}]`, bearer)).status, 200, 'a batch with a request');
});

t.test(
  '/connect/mcp/: with a slash at its end the address has the same challenge, metadata and token',
  async (t) => {
    const mcp = await start(t);
    const metadata = `${mcp.http.url}/.well-known/oauth-protected-resource/connect/mcp/`;
    const call = (token?: string, path = '/connect/mcp/') => {
      const bearer = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const headers = { 'content-type': 'application/json', ...bearer };
      return send(mcp, path, { method: 'POST', headers, body: CALL });
    };
    const challenged = await call();
    t.equal(challenged.status, 401);
    t.match(challenged.headers.get('www-authenticate'), `resource_metadata="${metadata}"`);
    t.match(await (await fetch(metadata)).json(), { resource: `${mcp.http.url}/connect/mcp/` });
    t.equal((await call(TOKENS.connected)).status, 200);
    t.equal((await call(undefined, '/mcp/')).status, 200);
    t.equal((await send(mcp, '/mcp/')).headers.get('allow'), 'POST, DELETE');
    const { status } = await send(mcp, '/connect/mcp//', { method: 'POST', body: CALL });
    t.equal(status, 404, 'one slash alone');
    t.equal((await send(mcp, `${SERVER_METADATA}/`)).status, 404, 'other addresses have one spelling');
  },
);

t.test('/connect/mcp: pages of every origin see the challenge, the preflight is 204', async (t) => {
  const mcp = await start(t);
  const preflight = await send(mcp, '/connect/mcp', {
    method: 'OPTIONS',
    headers: { ...FOREIGN, 'access-control-request-method': 'POST' },
  });
  t.equal(preflight.status, 204);
  t.equal(preflight.headers.get('access-control-allow-origin'), '*');
  const answer = await post(mcp, CALL, FOREIGN);
  t.equal(answer.status, 401);
  t.equal(answer.headers.get('access-control-allow-origin'), '*');
  t.equal(answer.headers.get('access-control-allow-credentials'), null);
  t.match(answer.headers.get('access-control-expose-headers'), /WWW-Authenticate/);
});

// covers R41
t.test('metadata: the resource is the typed address, the issuer is BaseUrl', async (t) => {
  const mcp = await start(t);
  const path = '/.well-known/oauth-protected-resource/connect/mcp';
  for (const host of ['localhost', '127.0.0.1']) {
    const origin = `http://${host}:${mcp.http.port}`;
    const answer = await fetch(`${origin}${path}`, { headers: FOREIGN });
    t.equal(answer.headers.get('access-control-allow-origin'), '*');
    t.strictSame(await answer.json(), {
      resource: `${origin}/connect/mcp`,
      authorization_servers: [`http://localhost:${mcp.http.port}`],
      scopes_supported: ['read', 'tools'],
      bearer_methods_supported: ['header'],
      resource_name: 'demo',
    });
  }
});

t.test('metadata: the server names its endpoints, registration only where it is on', async (t) => {
  for (const clients of ['any', 'cimd', 'registered'] as const) {
    const mcp = await start(t, clients);
    const answer = await send(mcp, SERVER_METADATA, { headers: FOREIGN });
    t.equal(answer.headers.get('access-control-allow-origin'), '*');
    const issuer = `http://localhost:${mcp.http.port}`;
    const document = (await answer.json()) as Record<string, unknown>;
    t.match(document, {
      issuer,
      authorization_endpoint: `${issuer}/connect/authorize`,
      token_endpoint: `${issuer}/connect/token`,
      revocation_endpoint: `${issuer}/connect/revoke`,
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'],
      client_id_metadata_document_supported: clients !== 'registered',
      authorization_response_iss_parameter_supported: true,
    });
    t.equal(document['registration_endpoint'], clients === 'any' ? `${issuer}/connect/register` : undefined);
    t.strictSame(await (await send(mcp, `${SERVER_METADATA}/connect`)).json(), document, 'the former place');
  }
});

t.test('metadata: with the issuer BaseUrl/connect the root has no document', async (t) => {
  const issuer = 'https://gate.example/connect';
  const mcp = await start(t, 'any', { baseUrl: 'https://gate.example', issuer });
  t.equal((await send(mcp, SERVER_METADATA)).status, 404);
  const document = await (await send(mcp, `${SERVER_METADATA}/connect`)).json();
  t.match(document, { issuer, token_endpoint: `${issuer}/token` });
  const resource = await send(mcp, '/.well-known/oauth-protected-resource/connect/mcp');
  t.match(await resource.json(), { authorization_servers: [issuer] });
});

// covers R41
t.test('metadata: addresses of /mcp and the root, which clients probe, stay 404', async (t) => {
  const mcp = await start(t);
  for (const path of [
    '/.well-known/oauth-protected-resource',
    '/.well-known/oauth-protected-resource/mcp',
    '/.well-known/oauth-protected-resource/mcp/p/one',
    '/.well-known/oauth-authorization-server/mcp',
    '/.well-known/openid-configuration',
    '/.well-known/openid-configuration/connect',
    '/register',
    '/authorize',
    '/token',
  ])
    t.equal((await send(mcp, path)).status, 404, path);
});
