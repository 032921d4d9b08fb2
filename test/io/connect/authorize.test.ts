import t from 'tap';
import type { Answer } from '../../../kit/agent.ts';
import { request } from '../../../kit/agent.ts';
import { MINUTE_MS } from '../../../src/domain/time.ts';
import type { DocumentClient } from '../../../src/io/connect/documents.ts';
import { cookie } from '../../support/account.ts';
import { type ConnectFixture, startConnectOf as start } from '../../support/connect.ts';
import {
  askRequest,
  authorizeQuery,
  challengeOfView,
  connectHost,
  consent,
  decideRequest,
  exchange,
  type HostClient,
  hostClient,
  registerHost,
  tokensOf,
} from '../../support/hosts.ts';

async function redirectOf(answer: Promise<Answer>): Promise<URL> {
  return new URL(String((await answer).json['result']?.['redirect']));
}

// covers R42 S81
t.test('request: a bad client or redirect URI is shown, never redirected', async (t) => {
  const fixture = await start(t);
  const host = await registerHost(fixture.url);
  const web = await registerHost(fixture.url, 'Web', 'https://host.example/cb');
  const sid = fixture.cookieOf(fixture.owner);
  const to = (client: HostClient, redirect_uri: string) => authorizeQuery(client, { redirect_uri });
  const cases: readonly (readonly [string, string, string])[] = [
    ['no client', authorizeQuery(host, { client_id: undefined }), 'invalid_request'],
    ['unknown client', authorizeQuery(host, { client_id: 'dcr.AAAA' }), 'invalid_client'],
    ['unknown application', authorizeQuery(host, { client_id: '4711' }), 'invalid_client'],
    ['the row itself', authorizeQuery(host, { client_id: '1' }), 'invalid_client'],
    ['no redirect URI', authorizeQuery(host, { redirect_uri: undefined }), 'invalid_request'],
    ['another path', authorizeQuery(host, { redirect_uri: 'http://127.0.0.1:33418/x' }), 'invalid_request'],
    ['another name', to(host, 'http://localhost:33418/callback'), 'invalid_request'],
    ['another scheme', to(host, 'https://127.0.0.1:1/callback'), 'invalid_request'],
    ['a query more', to(web, 'https://host.example/cb?x=1'), 'invalid_request'],
    ['a port more', to(web, 'https://host.example:444/cb'), 'invalid_request'],
    ['upper case', to(web, 'https://HOST.example/cb'), 'invalid_request'],
    ['sent twice', `${authorizeQuery(host)}&client_id=x`, 'invalid_request'],
  ];
  for (const [name, query, code] of cases) {
    const { json } = await fixture.shown(query);
    t.match(json, { result: { step: 'error', redirect: null, challenge: null, error: { code } } }, name);
    const decided = await request(`${fixture.url}/connect/decide`, {
      headers: { cookie: sid, origin: fixture.url },
      body: { request: query, challengeId: 1, code: 'x', allow: true },
    });
    t.not(decided.status, 200, name);
  }
  const free = to(host, 'http://127.0.0.1:5000/callback');
  t.match((await fixture.shown(free)).json, { result: { step: 'consent' } }, 'the port is free');
});

// covers S83 S87 S89
t.test('request: other faults go to the redirect URI, with state and iss, after a login', async (t) => {
  const fixture = await start(t);
  const host = await registerHost(fixture.url);
  const cases: readonly (readonly [Record<string, string | undefined>, string])[] = [
    [{ response_type: 'token' }, 'unsupported_response_type'],
    [{ response_type: undefined }, 'unsupported_response_type'],
    [{ code_challenge: undefined }, 'invalid_request'],
    [{ code_challenge_method: undefined }, 'invalid_request'],
    [{ code_challenge_method: 'plain' }, 'invalid_request'],
    [{ code_challenge: 'short' }, 'invalid_request'],
    [{ response_mode: 'fragment' }, 'invalid_request'],
    [{ request_uri: 'https://host.example/r' }, 'invalid_request'],
    [{ prompt: 'none' }, 'consent_required'],
    [{ resource: 'https://other.example/connect/mcp' }, 'invalid_target'],
    [{ resource: `${fixture.url}/connect/mcp//` }, 'invalid_target'],
    [{ resource: `${fixture.url}/connect/mcp?x=1` }, 'invalid_target'],
    [{ resource: `${fixture.url}/connect/mcp#x` }, 'invalid_target'],
    [{ resource: `${fixture.url}/CONNECT/MCP` }, 'invalid_target'],
    [{ resource: '/connect/mcp' }, 'invalid_target'],
    [{ resource: `${fixture.url}/mcp` }, 'invalid_target'],
    [{ scope: 'admin' }, 'invalid_scope'],
  ];
  for (const [changes, error] of cases) {
    const query = authorizeQuery(host, changes);
    const before = await askRequest(fixture.url, undefined, query);
    t.match(before.json, { result: { step: 'login', redirect: null, client: { name: 'Notebook' } } });
    const { json } = await fixture.shown(query);
    const redirect = new URL(String(json['result']?.['redirect']));
    t.equal(redirect.searchParams.get('error'), error, JSON.stringify(changes));
    t.equal(redirect.searchParams.get('state'), 'as it came');
    t.equal(redirect.searchParams.get('iss'), `http://localhost:${fixture.http.port}`);
    t.equal(redirect.searchParams.get('code'), null);
  }
});

t.test('request: resource is taken in upper case and with a slash at its end', async (t) => {
  const fixture = await start(t);
  const host = await registerHost(fixture.url);
  const sid = fixture.cookieOf(fixture.owner);
  for (const resource of [
    `${fixture.url}/connect/mcp`,
    `${fixture.url}/connect/mcp/`,
    `HTTP://LOCALHOST:${fixture.http.port}/connect/mcp`,
    `Http://Localhost:${fixture.http.port}/connect/mcp/`,
  ]) {
    const query = authorizeQuery(host, { resource });
    t.match((await fixture.shown(query)).json, { result: { step: 'consent' } }, resource);
    const code = await consent(fixture.url, sid, query);
    const answer = await exchange(fixture.url, host, code, { resource: `${fixture.url}/connect/mcp/` });
    t.equal(answer.status, 200, resource);
  }
});

// covers S90
t.test(
  'request: without a session step login, then consent with client, destination, tools and account',
  async (t) => {
    const fixture = await start(t);
    const host = await registerHost(fixture.url);
    const query = authorizeQuery(host);
    const before = await askRequest(fixture.url, undefined, query);
    t.match(before.json, { result: { step: 'login', challenge: null, account: null } });
    const { json } = await fixture.shown(query);
    t.match(json, {
      result: {
        step: 'consent',
        client: { kind: 'registration', name: 'Notebook', host: null },
        destination: { kind: 'computer', host: '127.0.0.1:33418' },
        resource: { address: `${fixture.url}/connect/mcp` },
        access: 'tools',
        account: { userId: fixture.owner.userId },
        challenge: { code: /./ },
      },
    });
    const tools = json['result']?.['tools'] as unknown as readonly { name: string; access: string[] }[];
    t.ok(
      tools.some(({ name }) => name === 'payorder_create'),
      'tools are listed by name',
    );
    t.ok(
      tools.every(({ access }) => access.length > 0),
      'each is opened by some choice',
    );
  },
);

// covers S87 S89
t.test(
  'decide: consent every time; a refusal is access_denied with state and iss, in the login log',
  async (t) => {
    const fixture = await start(t);
    const sid = fixture.cookieOf(fixture.owner);
    const { host } = await connectHost(fixture.url, sid);
    const again = await fixture.shown(authorizeQuery(host));
    t.match(again.json, { result: { step: 'consent' } }, 'a known host is asked for again');
    const refused = await redirectOf(decideRequest(fixture.url, sid, authorizeQuery(host), false));
    t.equal(refused.searchParams.get('error'), 'access_denied');
    t.equal(refused.searchParams.get('state'), 'as it came');
    t.equal(refused.searchParams.get('iss'), `http://localhost:${fixture.http.port}`);
    const log = (await fixture.loginLog(fixture.owner.sid)) as readonly { event: string }[];
    t.ok(log.some(({ event }) => event === 'host_refused'));
  },
);

// covers R42 S87
t.test('decide: the challenge is good once, for its session, its request and its own page', async (t) => {
  const fixture = await start(t);
  const host = await registerHost(fixture.url);
  const sid = fixture.cookieOf(fixture.owner);
  const query = authorizeQuery(host);
  const send = async (headers: Record<string, string>, body: object) =>
    (await request(`${fixture.url}/connect/decide`, { headers: { cookie: sid, ...headers }, body })).status;
  const own = { origin: fixture.url };
  const body = async (changes: object = {}) => ({
    request: query,
    allow: true,
    ...challengeOfView(await fixture.shown(query)),
    ...changes,
  });
  t.equal(await send({}, await body()), 403, 'no Origin');
  t.equal(await send({ origin: 'https://evil.example' }, await body()), 403);
  t.equal(await send({ ...own, 'sec-fetch-site': 'same-site' }, await body()), 403);
  const foreign = { ...own, cookie: fixture.cookieOf(fixture.admin) };
  t.equal(await send(foreign, await body()), 401, 'another session');
  t.equal(await send({ ...own, cookie: '' }, await body()), 401, 'no session');
  t.equal(await send(own, await body({ code: 'A'.repeat(43) })), 401, 'another handle');
  const full = authorizeQuery(host, { scope: 'full' });
  t.equal(await send(own, await body({ request: full })), 401, 'another request');
  const once = await body();
  t.equal(await send(own, once), 200);
  t.equal(await send(own, once), 401, 'used');
  const late = await body();
  fixture.actors.clock.nowMs += 11 * MINUTE_MS;
  t.equal(await send(own, late), 401, 'over');
});

// covers S88
t.test('full: only after a login of at most 15 minutes', async (t) => {
  const fixture = await start(t);
  const host = await registerHost(fixture.url);
  const sid = fixture.cookieOf(fixture.owner);
  const query = authorizeQuery(host, { scope: 'full' });
  fixture.actors.clock.nowMs += 14 * MINUTE_MS;
  const shown = await fixture.shown(query);
  t.match(shown.json, { result: { step: 'consent', access: 'full', fullNeedsLogin: false } });
  const { challengeId, code } = challengeOfView(shown);
  fixture.actors.clock.nowMs += 2 * MINUTE_MS;
  t.match((await fixture.shown(query)).json, { result: { step: 'consent', fullNeedsLogin: true } });
  const headers = { cookie: sid, origin: fixture.url };
  const body = { request: query, challengeId, code, allow: true };
  const { status } = await request(`${fixture.url}/connect/decide`, { headers, body });
  t.equal(status, 403, 'also at the answer');
});

// covers S90
t.test('application: private schemes, until its redirect URIs change', async (t) => {
  const fixture = await start(t, { policy: { clients: 'registered' } });
  const redirectUris = ['com.example.host:/callback'];
  const appId = await fixture.register({ name: 'Shop', url: 'https://shop.example', redirectUris });
  const host = hostClient(appId, 'com.example.host:/callback');
  const sid = fixture.cookieOf(fixture.admin);
  const ask = () => fixture.shown(authorizeQuery(host), sid);
  t.match((await ask()).json, { result: { step: 'error' } }, 'not approved yet');
  await fixture.administer(appId, { approved: true, mcpEnabled: true });
  const client = { kind: 'application', name: 'Shop', host: 'shop.example' };
  t.match((await ask()).json, { result: { step: 'consent', client } });
  const code = await consent(fixture.url, sid, authorizeQuery(host));
  const { access } = tokensOf(await exchange(fixture.url, host, code));
  t.equal(await fixture.statusWith(access), 200);
  await fixture.register({ id: appId, redirectUris: ['https://elsewhere.example/cb'] });
  await fixture.actors.settle();
  t.equal(await fixture.statusWith(access), 401);
  t.match((await ask()).json, { result: { step: 'error' } });
  const { result } = await fixture.get('/auth/v1/app/list', cookie(fixture.owner.sid));
  t.match(result, [{ approved: false, redirectUris: ['https://elsewhere.example/cb'] }]);
  const bad = { id: appId, redirectUris: ['javascript:alert(1)'] };
  const refused = await fixture.post('/auth/v1/app/upsert_usr_app', bad, cookie(fixture.owner.sid));
  t.equal(refused.status, 400);
});

const DOCUMENT_ID = 'https://host.example/client.json';

/** A host that serves one document; `asked` counts the fetches. */
function documentHost(body: unknown, options: { status?: number; type?: string } = {}) {
  const counts = { asked: 0 };
  const { status = 200, type = 'application/json' } = options;
  const client: DocumentClient = {
    async request({ answerMaxBytes }) {
      counts.asked += 1;
      const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
      const headers = { 'content-type': type, location: 'https://other.example/' };
      return { kind: 'answered', status, headers, bytes, isCut: bytes.length > answerMaxBytes };
    },
    close: () => undefined,
  };
  return { counts, client };
}

const DOCUMENT = {
  client_id: DOCUMENT_ID,
  client_name: 'Studio',
  redirect_uris: ['https://host.example/cb', 'studio://private'],
  token_endpoint_auth_method: 'none',
};

// covers S91
t.test('document: fetched only for a session, once while it is cached; the client works', async (t) => {
  const { counts, client } = documentHost(DOCUMENT);
  const elapsed = { nowMs: 0 };
  const documents = { client, elapsed: () => elapsed.nowMs };
  const fixture = await start(t, { policy: { clients: 'cimd' }, documents });
  const host = hostClient(DOCUMENT_ID, 'https://host.example/cb');
  const query = authorizeQuery(host);
  const before = await askRequest(fixture.url, undefined, query);
  t.match(before.json, { result: { step: 'login', client: { kind: 'document', host: 'host.example' } } });
  t.equal(counts.asked, 0);
  const sid = fixture.cookieOf(fixture.owner);
  const shown = await fixture.shown(query);
  const destination = { kind: 'web', host: 'host.example' };
  t.match(shown.json, { result: { step: 'consent', client: { name: 'Studio' }, destination } });
  const code = await consent(fixture.url, sid, query);
  const { access } = tokensOf(await exchange(fixture.url, host, code));
  t.equal(await fixture.statusWith(access), 200);
  t.equal(counts.asked, 1);
  const own = await fixture.shown(authorizeQuery(host, { redirect_uri: 'studio://private' }));
  t.match(own.json, { result: { step: 'error' } }, 'private schemes are for applications');
  elapsed.nowMs += 5 * MINUTE_MS;
  await fixture.shown(query);
  t.equal(counts.asked, 2);
});

// covers S91
t.test('document: redirects, sizes, other types and other contents are refused', async (t) => {
  const cases: readonly (readonly [string, unknown, { status?: number; type?: string }])[] = [
    ['redirect', '', { status: 302 }],
    ['not found', '', { status: 404 }],
    ['type', DOCUMENT, { type: 'text/html' }],
    ['size', { ...DOCUMENT, padding: 'x'.repeat(16 * 1024) }, {}],
    ['no JSON', '{', {}],
    ['no object', '[]', {}],
    ['another client_id', { ...DOCUMENT, client_id: 'https://host.example/other.json' }, {}],
    ['a secret', { ...DOCUMENT, token_endpoint_auth_method: 'client_secret_basic' }, {}],
    ['no redirect', { ...DOCUMENT, redirect_uris: ['http://host.example/cb'] }, {}],
  ];
  for (const [name, body, options] of cases) {
    const { client } = documentHost(body, options);
    const fixture = await start(t, { documents: { client } });
    const query = authorizeQuery(hostClient(DOCUMENT_ID, 'https://host.example/cb'));
    const { json } = await fixture.shown(query);
    t.match(json, { result: { step: 'error', error: { code: 'invalid_client' } } }, name);
  }
});

// covers S91
t.test('document: private addresses, other hosts and other forms of the id are not fetched', async (t) => {
  const fixture = await start(t, { documents: { resolve: async () => ['10.0.0.1'] } });
  const listed = await start(t, { policy: { clients: 'cimd', documentHosts: new Set(['other.example']) } });
  const off = await start(t, { policy: { clients: 'registered' } });
  const ask = async ({ url, cookieOf, owner }: ConnectFixture, clientId: string) => {
    const query = authorizeQuery(hostClient(clientId, 'https://host.example/cb'));
    return (await askRequest(url, cookieOf(owner), query)).json;
  };
  const refused = { result: { step: 'error', error: { code: 'invalid_client' } } };
  t.match(await ask(fixture, DOCUMENT_ID), refused, 'resolves to a private address');
  t.match(await ask(fixture, 'https://10.0.0.1/client.json'), refused);
  t.match(await ask(fixture, 'http://host.example/client.json'), refused);
  t.match(await ask(fixture, 'https://host.example/'), refused, 'no path');
  t.match(await ask(fixture, 'https://host.example/client.json#x'), refused);
  t.match(await ask(fixture, 'https://user@host.example/client.json'), refused);
  t.match(await ask(fixture, 'https://HOST.example/client.json'), refused, 'another spelling');
  t.match(await ask(listed, DOCUMENT_ID), refused, 'a host that is not listed');
  t.match(await ask(off, DOCUMENT_ID), refused);
});

t.test('row of unregistered hosts: switched off, clients without an application are refused', async (t) => {
  const fixture = await start(t);
  const host = await registerHost(fixture.url);
  await fixture.administer('1', { disabled: true });
  const { json } = await fixture.shown(authorizeQuery(host));
  t.match(json, { result: { step: 'error', error: { code: 'invalid_client' } } });
});
