/** Dynamic registration: what is kept and what is refused, by the mode of the gateway. */
import t, { type Test } from 'tap';
import { type Answer, request } from '../../../kit/agent.ts';
import { KNOWN_PRIVATE_REDIRECTS } from '../../../src/domain/oauth/clients.ts';
import { policyOf } from '../../../src/io/connect/policy.ts';
import { type ConnectFixture, OAUTH, startConnectOf as start } from '../../support/connect.ts';
import { askRequest, authorizeQuery, hostClient } from '../../support/hosts.ts';

function register({ url }: ConnectFixture, body: unknown, type = 'application/json'): Promise<Answer> {
  return request(`${url}/connect/register`, { method: 'POST', headers: { 'Content-Type': type }, body });
}

function refusedAs(t: Test, answer: Answer, error: string, status = 400, name = error): void {
  t.equal(answer.status, status, name);
  t.equal(String(answer.json['error']), error, name);
  t.equal(answer.headers.get('cache-control'), 'no-store', name);
}

// covers S92
t.test('register: 201 without storage, the name cut and without invisible characters', async (t) => {
  const fixture = await start(t);
  const before = fixture.actors.system.count('appId');
  const name = `No\u202ete\u0000book ${'x'.repeat(80)}`;
  const answer = await register(fixture, {
    client_name: name,
    redirect_uris: ['https://host.example/cb'],
    token_endpoint_auth_method: 'client_secret_basic',
  });
  t.equal(answer.status, 201);
  t.match(answer.json, { client_id: /^dcr\./, token_endpoint_auth_method: 'none' });
  t.equal(String(answer.json['client_name']), `Notebook ${'x'.repeat(55)}`);
  t.equal(answer.headers.get('access-control-allow-origin'), null, 'no Origin was sent');
  t.equal(fixture.actors.system.count('appId'), before);
});

// covers S81
t.test(
  'register: bad redirect URIs are invalid_redirect_uri, other faults invalid_client_metadata',
  async (t) => {
    const fixture = await start(t);
    const hosts = [
      'http://host.example/cb',
      'https://host.example/cb#fragment',
      'https://user@host.example/cb',
    ];
    const stars = [
      'https://user:secret@host.example/cb',
      'https://*.host.example/cb',
      'https://host.example/*',
    ];
    const schemes = ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd', 'cursor://callback'];
    const forms = ['https:host.example', 'https:///host.example/cb', 'http:///127.0.0.1/cb', '/cb', ''];
    const spelt = ['https://host.example/\u0000', 'https://host.example/ü', 7];
    for (const uri of [...hosts, ...stars, ...schemes, ...forms, ...spelt]) {
      const answer = await register(fixture, { redirect_uris: [uri] });
      refusedAs(t, answer, 'invalid_redirect_uri', 400, String(uri));
    }
    for (const list of [undefined, [], 'https://host.example/cb', Array(11).fill('https://host.example/cb')])
      refusedAs(t, await register(fixture, { redirect_uris: list }), 'invalid_redirect_uri');
    const redirect_uris = ['https://host.example/cb'];
    for (const fault of [
      { redirect_uris, client_name: 7 },
      { redirect_uris, grant_types: ['implicit'] },
      { redirect_uris, response_types: ['token'] },
      { redirect_uris: Array.from({ length: 3 }, (_, n) => `https://host.example/${'x'.repeat(700)}${n}`) },
      [],
      'text',
    ])
      refusedAs(t, await register(fixture, fault), 'invalid_client_metadata');
    refusedAs(t, await register(fixture, { redirect_uris }, 'text/plain'), 'invalid_client_metadata');
  },
);

t.test('register: 403 access_denied where registration is off', async (t) => {
  for (const clients of ['cimd', 'registered'] as const) {
    const fixture = await start(t, { policy: { clients } });
    const answer = await register(fixture, { redirect_uris: ['https://host.example/cb'] });
    refusedAs(t, answer, 'access_denied', 403);
  }
});

t.test('register: a compressed body is 415 with the coding that is taken', async (t) => {
  const { url } = await start(t);
  const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' };
  const answer = await request(`${url}/connect/register`, { method: 'POST', headers, body: '{}' });
  refusedAs(t, answer, 'invalid_request', 415);
  t.equal(answer.headers.get('accept-encoding'), 'identity');
});

/** As recorded from Cursor and VS Code. */
const CURSOR = [
  'cursor://anysphere.cursor-mcp/oauth/callback',
  'https://www.cursor.com/agents/mcp/oauth/callback',
  'http://localhost:8787/callback',
];
const VS_CODE = [
  'https://insiders.vscode.dev/redirect',
  'https://vscode.dev/redirect',
  'http://127.0.0.1/',
  'http://127.0.0.1:33418/',
];

const keptOf = async (fixture: ConnectFixture, redirect_uris: readonly string[]) =>
  (await register(fixture, { redirect_uris })).json['redirect_uris'];

t.test('register: outside of Production the payloads of Cursor and VS Code are kept whole', async (t) => {
  const fixture = await start(t);
  t.strictSame(await keptOf(fixture, CURSOR), CURSOR);
  t.strictSame(await keptOf(fixture, [CURSOR[0] ?? '']), [CURSOR[0]], 'the private one alone');
  t.strictSame(await keptOf(fixture, VS_CODE), VS_CODE);
});

// covers S94
t.test(
  'register: in Production loopback, known programs and OAuthClientHosts are kept, the rest is left out',
  async (t) => {
    const production = { ...OAUTH, production: true };
    const bare = await start(t, { policy: policyOf(production) });
    t.strictSame(await keptOf(bare, CURSOR), [CURSOR[0], CURSOR[2]]);
    t.strictSame(await keptOf(bare, VS_CODE), VS_CODE.slice(2));
    const foreign = await register(bare, { redirect_uris: ['https://host.example/cb'] });
    refusedAs(t, foreign, 'invalid_redirect_uri');
    const listed = await start(t, { policy: policyOf({ ...production, oauthClientHosts: ['vscode.dev'] }) });
    t.strictSame(await keptOf(listed, VS_CODE), VS_CODE.slice(1));
  },
);

// covers S93
t.test(
  'register: links of the same programs that install something are left out, and alone refused',
  async (t) => {
    const fixture = await start(t);
    for (const uri of [
      'cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=eyJ9',
      'cursor://anysphere.cursor-deeplink/mcp/install',
      'cursor://anysphere.cursor-mcp/oauth/callback?x=1',
      'cursor://anysphere.cursor-mcp/oauth/../../install',
      'cursor://anysphere.cursor-mcp/oauth/%2e%2e/install',
      'cursor://anysphere.cursor-mcp/oauth/..%2finstall',
      'cursor://anysphere.cursor-mcp/install',
      'cursor://anysphere.cursor-mcp.evil/oauth/callback',
      'Cursor://anysphere.cursor-mcp/oauth/callback',
      'vscode:mcp/install?%7B%7D',
      'vscode://host.example/callback',
    ]) {
      refusedAs(t, await register(fixture, { redirect_uris: [uri] }), 'invalid_redirect_uri', 400, uri);
      t.strictSame(await keptOf(fixture, [uri, 'http://127.0.0.1/cb']), ['http://127.0.0.1/cb'], uri);
    }
  },
);

t.test(
  'register: OAuthPrivateRedirects replaces the list, an empty one takes reverse domain names alone',
  async (t) => {
    const oauthPrivateRedirects = ['studio://auth/', 'one://host/callback'];
    const own = await start(t, { policy: policyOf({ ...OAUTH, oauthPrivateRedirects }) });
    const dotted = 'com.example.studio:/callback';
    const listed = ['studio://auth/x', 'one://host/callback'];
    const given = [CURSOR[0] ?? '', ...listed, 'one://host/callback/x', dotted];
    t.strictSame(await keptOf(own, given), [...listed, dotted]);
    const none = await start(t, { policy: policyOf({ ...OAUTH, oauthPrivateRedirects: [] }) });
    t.strictSame(await keptOf(none, [CURSOR[0] ?? '', dotted]), [dotted]);
    refusedAs(t, await register(none, { redirect_uris: [`${dotted}?x=1`] }), 'invalid_redirect_uri');
  },
);

// covers S93
t.test('request: a private URI is compared exactly, and the view names the known program', async (t) => {
  const fixture = await start(t);
  const [redirectUri = ''] = CURSOR;
  const { json } = await register(fixture, { client_name: 'Cursor', redirect_uris: [redirectUri] });
  const host = hostClient(String(json['client_id']), redirectUri);
  const sid = fixture.cookieOf(fixture.owner);
  const shown = await askRequest(fixture.url, sid, authorizeQuery(host));
  const destination = { kind: 'program', host: 'cursor', program: 'Cursor' };
  t.match(shown.json, { result: { step: 'consent', destination } });
  const others = [`${redirectUri}/`, `${redirectUri}?x=1`, `${KNOWN_PRIVATE_REDIRECTS[0]}other`];
  for (const redirect_uri of others) {
    const other = await askRequest(fixture.url, sid, authorizeQuery(host, { redirect_uri }));
    t.match(other.json, { result: { step: 'error' } }, redirect_uri);
  }
});

// covers S94
t.test('request: a registration that is older than the rules leads nowhere', async (t) => {
  const redirectUri = 'https://host.example/cb';
  const before = await start(t);
  const { json } = await register(before, { redirect_uris: [redirectUri] });
  const host = hostClient(String(json['client_id']), redirectUri);
  const after = await start(t, { policy: policyOf({ ...OAUTH, production: true }) });
  const shown = await askRequest(after.url, after.cookieOf(after.owner), authorizeQuery(host));
  t.match(shown.json, { result: { step: 'error', redirect: null, error: { code: 'invalid_request' } } });
});
