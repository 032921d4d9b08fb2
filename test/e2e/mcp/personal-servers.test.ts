/** Another MCP server that each person connects (`auth: "user"`), behind the real program. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import t, { type Test } from 'tap';
import { expectOk, newKey, request, rpc } from '../../../kit/agent.ts';
import { closeAfter } from '../../../kit/close-after.ts';
import { connectHost } from '../../../kit/consent.ts';
import { launchFor, NO_LIMITS } from '../../../kit/launch.ts';
import { bearer, connectMode, MODES } from '../../support/mcp-clients/client-modes.ts';
import { startOAuthUpstream } from '../../support/upstreams/oauth.ts';
import {
  ask,
  beginLogin,
  type Connecting,
  comeBack,
  connect,
  newPerson,
  ofTool,
} from '../../support/upstreams/people.ts';

t.setTimeout(240_000);

const WHOSE = { name: 'whose', description: 'Says whose it is.', inputSchema: { type: 'object' } };
const list = (method: string) => ({ jsonrpc: '2.0', id: 1, method });

/** A gateway with the server `notes`, and its admin, who has connected it: so its tools are approved. */
async function start(t: Test, { server = {}, more = {} } = {}) {
  const upstream = closeAfter(t, await startOAuthUpstream([WHOSE]));
  const key = newKey();
  const gateway = await launchFor(t, {
    configuration: {
      Admin: { publicKeys: [key.publicKey] },
      Settings: NO_LIMITS,
      McpServers: {
        notes: { url: upstream.url, auth: 'user', title: 'Notes', authNetworks: ['127.0.0.0/8'], ...server },
        ...more,
      },
    },
  });
  const { url } = gateway;
  const audit = async (admin: Connecting) => {
    const answer = await request(`${url}/ProxyAdmin/api/audit?limit=1000`, {
      headers: { Cookie: admin.cookie },
    });
    return expectOk('audit', answer).text;
  };
  return { upstream, gateway, url, audit, admin: await newPerson(url, key) };
}

async function startConnected(t: Test, options: Parameters<typeof start>[1] = {}) {
  const started = await start(t, options);
  const { url, admin, upstream, gateway } = started;
  await connect(url, admin, upstream, 'root');
  await ofTool(url, admin).catch(() => '');
  await rpc(url, admin.bearer, list('prompts/list'));
  await gateway.said(/"server":"notes","tools":1,.*"mcp server up"/);
  return started;
}

/** Serves the tests whose people are their own. */
const standing = await startConnected(t);

// covers R122
t.test(
  'personal server: from the list to a call, with a login there; disconnected, calls are refused',
  async (t) => {
    const { url, upstream, audit, admin } = standing;
    const anna = await newPerson(url);
    const item = { server: 'notes', title: 'Notes', connected: false, kind: null, connectedUtc: null };
    t.same((await ask(url, anna, '')).json, { result: [item] });
    const refused = await ofTool(url, anna);
    t.match(refused, /"isError":true/);
    t.match(refused, /1035.*connect Notes at http:\/\/localhost:\d+\/#servers\/notes/);
    const document = (await request(`${url}/connect/client.json`)).json;
    t.match(document, { client_id: /\/connect\/client\.json$/, token_endpoint_auth_method: 'none' });
    const address = await beginLogin(url, anna, 'notes');
    const asked = new URL(address).searchParams;
    t.equal(asked.get('resource'), upstream.url);
    t.equal(asked.get('scope'), 'read');
    t.equal(asked.get('code_challenge_method'), 'S256');
    t.match(upstream.registered.at(-1), {
      token_endpoint_auth_method: 'none',
      redirect_uris: [/\/auth\/v1\/upstreams\/callback$/],
    });
    const back = upstream.allow(address, 'anna');
    t.equal(await comeBack(url, anna, back), '/#servers/notes/connected');
    t.equal(await comeBack(url, anna, back), '/#servers/-/expired', 'a state is good once');
    t.match((await ask(url, anna, '')).json, { result: [{ connected: true, kind: 'oauth' }] });
    t.match(await ofTool(url, anna), /"text":"anna"/);
    const read = { ...list('resources/read'), params: { uri: 'up+notes:memo://mine' } };
    t.match((await rpc(url, anna.bearer, read)).text, /"text":"anna"/);
    const get = { ...list('prompts/get'), params: { name: 'notes_any' } };
    t.match((await rpc(url, anna.bearer, get)).text, /"text":"anna"/);
    t.match((await rpc(url, anna.bearer, list('prompts/list'))).text, /"name":"notes_of-anna"/);
    t.match((await rpc(url, anna.bearer, list('resources/list'))).text, /"uri":"up\+notes:memo:\/\/anna"/);
    t.match(await ofTool(url, admin), /"text":"root"/);
    expectOk('disconnect', await ask(url, anna, '/disconnect', { server: 'notes' }));
    t.equal((await ask(url, anna, '/disconnect', { server: 'notes' })).status, 404);
    t.match(await ofTool(url, anna), /1035/);
    t.match((await rpc(url, anna.bearer, get)).json, { error: { code: -32000, message: /./ } });
    t.notMatch((await rpc(url, anna.bearer, list('prompts/list'))).text, /of-anna/);
    const records = await audit(admin);
    t.match(records, /"upstream_connected"/);
    t.match(records, /"upstream_disconnected"/);
    for (const token of [...upstream.tokens.keys()])
      t.notOk(records.includes(token), 'no token in the audit log');
  },
);

t.test('personal server: a token by form; one that the server refuses is a refused call', async (t) => {
  const { url, upstream } = standing;
  const person = await newPerson(url);
  upstream.tokens.set('personal-1', 'paul');
  t.match((await ask(url, person, '/token', { server: 'notes', token: 'personal-1' })).json, {
    result: { server: 'notes', connected: true, kind: 'token' },
  });
  t.match(await ofTool(url, person), /"text":"paul"/);
  upstream.tokens.delete('personal-1');
  t.match(await ofTool(url, person), /1035/);
  expectOk('token', await ask(url, person, '/token', { server: 'notes', token: 'nothing' }));
  t.match(await ofTool(url, person), /1035/, 'nor does it open a session');
  for (const [body, status] of [
    [{ server: 'notes', token: 'two words' }, 400],
    [{ server: 'notes', token: '' }, 400],
    [{ server: 'nowhere', token: 'x' }, 404],
  ] as const)
    t.equal((await ask(url, person, '/token', body)).status, status);
});

// covers R122
t.test(
  'personal server: ten calls with a token that is over are one refresh, whichever side knows',
  async (t) => {
    const { url, upstream } = standing;
    const person = await newPerson(url);
    const ten = () => Promise.all(Array.from({ length: 10 }, () => ofTool(url, person)));
    const refreshes = () =>
      upstream.askedTokens.filter((asked) => asked.get('grant_type') === 'refresh_token').length;
    await connect(url, person, upstream, 'paula');
    await ofTool(url, person);
    upstream.expireTokens();
    t.same(new Set((await ten()).map((text) => /"text":"(\w+)"/.exec(text)?.[1])), new Set(['paula']));
    t.equal(refreshes(), 1, 'the server refused the token');
    upstream.expiresInSeconds = 1;
    await connect(url, person, upstream, 'paula');
    upstream.expiresInSeconds = 3600;
    t.same(new Set((await ten()).map((text) => /"text":"(\w+)"/.exec(text)?.[1])), new Set(['paula']));
    t.equal(refreshes(), 2, 'its time is over');
    upstream.expireTokens();
    upstream.endGrants();
    t.same(new Set((await ten()).map((text) => /1035/.test(text))), new Set([true]));
    t.equal(refreshes(), 3, 'the grant is over');
    t.match((await ask(url, person, '')).json, { result: [{ connected: false }] });
    await connect(url, person, upstream, 'paula');
    await ofTool(url, person);
    upstream.expireTokens();
    upstream.onRefresh = (_answer, response) => {
      response.statusCode = 503;
      response.end();
    };
    t.match(await ofTool(url, person), /"code":-32000/, 'a failing token endpoint is a failed call');
    upstream.onRefresh = undefined;
    t.match(await ofTool(url, person), /"text":"paula"/, 'and ends nothing');
  },
);

// covers S202
t.test(
  'personal server: 1,000 interleaved calls, reads, prompts and lists of two accounts stay apart',
  async (t) => {
    const { url, upstream } = standing;
    const people = [await newPerson(url), await newPerson(url)];
    const accounts = ['ada', 'bob'];
    for (const [at, person] of people.entries()) await connect(url, person, upstream, accounts[at] ?? '');
    const messages = [
      { ...list('tools/call'), params: { name: 'notes_whose' } },
      { ...list('resources/read'), params: { uri: 'up+notes:memo://mine' } },
      { ...list('prompts/get'), params: { name: 'notes_x' } },
      list('prompts/list'),
      list('resources/list'),
    ];
    const wrong: string[] = [];
    let right = 0;
    const one = async (n: number) => {
      const at = n % 2;
      const { text } = await rpc(url, people[at]?.bearer, messages[n % messages.length]);
      const own = accounts[at] ?? '';
      const other = accounts[1 - at] ?? '';
      if (text.includes(own) && !text.includes(other)) right += 1;
      else wrong.push(text);
      // Now and then every token is over.
      if (n % 250 === 249) upstream.expireTokens();
    };
    for (let n = 0; n < 1000; n += 20) await Promise.all(Array.from({ length: 20 }, (_, k) => one(n + k)));
    t.same(wrong, []);
    t.equal(right, 1000);
  },
);

// covers S204
t.test('personal server: a callback of another session, issuer or person connects nothing', async (t) => {
  const { url, upstream } = standing;
  const [anna, mallory] = [await newPerson(url), await newPerson(url)];
  const before = upstream.askedTokens.length;
  const back = () => beginLogin(url, anna, 'notes').then((address) => upstream.allow(address, 'anna'));
  t.equal(await comeBack(url, mallory, await back()), '/#servers/-/expired');
  t.equal(await comeBack(url, { cookie: '' }, await back()), '/#servers/-/session');
  const mixed = await back();
  mixed.searchParams.set('iss', 'https://other.example');
  t.equal(await comeBack(url, anna, mixed), '/#servers/-/failed', 'the issuer is another one');
  const without = await back();
  without.searchParams.delete('iss');
  t.equal(await comeBack(url, anna, without), '/#servers/-/failed', 'the server said that it names it');
  const refused = await back();
  refused.searchParams.delete('code');
  refused.searchParams.set('error', 'access_denied');
  t.equal(await comeBack(url, anna, refused), '/#servers/-/refused');
  const twice = await back();
  twice.searchParams.append('state', 'x');
  t.equal(await comeBack(url, anna, twice), '/#servers/-/expired');
  t.match((await ask(url, anna, '')).json, { result: [{ connected: false }] });
  t.match((await ask(url, mallory, '')).json, { result: [{ connected: false }] });
  t.equal(upstream.askedTokens.length, before, 'no code was sent');
  t.equal((await request(`${url}/auth/v1/upstreams`)).status, 401);
});

const [walled, narrow] = [
  closeAfter(t, await startOAuthUpstream([WHOSE])),
  closeAfter(t, await startOAuthUpstream([WHOSE])),
];
/** No admin has connected its servers: two of them may name few networks. */
const strict = await start(t, {
  more: {
    walled: { url: walled.url, auth: 'user', authNetworks: [] },
    narrow: { url: narrow.url, auth: 'user', authNetworks: ['127.0.0.1'] },
  },
});

// covers S203
t.test('personal server: metadata that names inner addresses reaches none', async (t) => {
  const { url } = strict;
  const upstream = walled;
  const inner = closeAfter(t, await startOAuthUpstream([]));
  const person = await newPerson(url);
  const port = new URL(inner.url).port;
  const hosts = [
    `http://127.0.0.1:${port}`,
    `http://localhost:${port}`,
    `https://localhost:${port}`,
    `http://[::1]:${port}`,
    `http://2130706433:${port}`,
    `http://[::ffff:127.0.0.1]:${port}`,
    'https://169.254.169.254',
    'https://10.0.0.1',
    'file:///etc',
  ];
  for (const host of hosts) {
    upstream.resourceMetadata = { authorization_servers: [host] };
    const answer = await ask(url, person, '/connect', { server: 'walled' });
    t.equal(answer.status, 502, host);
    t.notMatch(answer.text, /127\.0\.0\.1|169\.254/, 'nor does the answer say what it is');
  }
  t.equal(inner.connections, 0);
});

// covers S203
t.test('personal server: each endpoint of the metadata is judged, not the issuer alone', async (t) => {
  // The login is at 127.0.0.1, which the operator allows; what it names beyond that is not allowed.
  const { url } = strict;
  const upstream = narrow;
  const person = await newPerson(url);
  for (const metadata of [
    { registration_endpoint: 'https://10.0.0.1/register' },
    { authorization_endpoint: 'https://10.0.0.1/authorize' },
    { authorization_endpoint: 'javascript:alert(1)' },
    { authorization_endpoint: 'https://name.invalid/authorize' },
    { issuer: 'https://other.example' },
    { registration_endpoint: undefined },
  ]) {
    upstream.metadata = metadata;
    t.equal((await ask(url, person, '/connect', { server: 'narrow' })).status, 502, JSON.stringify(metadata));
  }
  upstream.metadata = { token_endpoint: 'https://10.0.0.1/token' };
  const back = upstream.allow(await beginLogin(url, person, 'narrow'), 'x');
  t.equal(await comeBack(url, person, back), '/#servers/-/failed');
  upstream.metadata = {};
  upstream.resourceMetadata = { resource: 'https://other.example/mcp' };
  t.equal(
    (await ask(url, person, '/connect', { server: 'narrow' })).status,
    502,
    'a token of another resource',
  );
  upstream.resourceMetadata = undefined;
  await connect(url, person, upstream, 'old', 'narrow');
  const listed = (await ask(url, person, '')).text;
  t.match(listed, /"server":"narrow"[^}]*"connected":true/, 'a server of 2025-03-26');
});

t.test(
  'personal server: tools of the first list are approved if an admin has connected, else they wait',
  async (t) => {
    const { url, upstream, gateway } = strict;
    const person = await newPerson(url);
    await connect(url, person, upstream, 'first');
    await rpc(url, person.bearer, list('prompts/list'));
    await gateway.said(/mcp tools wait for approval/);
    t.notMatch((await rpc(url, person.bearer, list('tools/list'))).text, /notes_whose/);
  },
);

const asking = await startConnected(t, {
  server: { tools: { rows: { whose: { appScope: true } } }, prompts: { appScope: true } },
});

/** A person who has not connected the server; the tokens of an agent and of a connected host, by the address that takes them. */
async function enrolAsking() {
  const { url, upstream } = asking;
  const person = await newPerson(url);
  const tokens = { '/mcp': person.bearer, '/connect/mcp': await connectHost(url, person) };
  const ways = Object.entries(tokens).map(([path, token]) => ({ path, headers: bearer(token) }));
  const away = () => ask(url, person, '/disconnect', { server: 'notes' });
  return { url, upstream, person, ways, away };
}

const BY_URL = { elicitation: { url: {} } };
const WHOSE_CALL = { name: 'notes_whose', arguments: {} };
const TEXT = { isError: true, content: [{ text: /1035.*connect Notes at http.*\/#servers\/notes/ }] };

// covers R122 S207
t.test(
  'personal server: a client that asks its person by an address gets it as an error in revisions with a handshake',
  async (t) => {
    const { url, upstream, person, ways, away } = await enrolAsking();
    for (const { path, headers } of ways) {
      const clientWith = async (capabilities: object) => {
        const client = closeAfter(t, new Client({ name: 'test', version: '1.0.0' }, { capabilities }));
        const transport = new StreamableHTTPClientTransport(new URL(url + path), {
          requestInit: { headers },
        });
        await client.connect(transport as Parameters<Client['connect']>[0]);
        return client;
      };
      const client = await clientWith(BY_URL);
      const asked = {
        code: -32042,
        message: /connect Notes at http/,
        elicitations: [
          { mode: 'url', url: `${url.replace('127.0.0.1', 'localhost')}/#servers/notes`, message: /Notes/ },
        ],
      };
      const [first, second] = await Promise.all(
        [client.callTool(WHOSE_CALL), client.getPrompt({ name: 'notes_any' })].map((answer) =>
          answer.then(
            () => t.fail('no error'),
            (error: unknown) => error,
          ),
        ),
      );
      t.match(first, asked, path);
      t.match(second, asked, path);
      const idOf = (error: unknown) =>
        (error as { elicitations: { elicitationId: string }[] }).elicitations[0];
      t.not(idOf(first)?.elicitationId, idOf(second)?.elicitationId);
      for (const other of [{}, { elicitation: {} }, { elicitation: { form: {} } }])
        t.match(await (await clientWith(other)).callTool(WHOSE_CALL), TEXT, JSON.stringify(other));
      await connect(url, person, upstream, 'anna');
      t.match(await client.callTool(WHOSE_CALL), { content: [{ text: 'anna' }] }, path);
      await away();
    }
  },
);

// covers R122
t.test(
  'personal server: a client of 2026-07-28 is asked, and the call that it repeats waits for the login',
  async (t) => {
    const { url, upstream, person, ways, away } = await enrolAsking();
    const [mode] = MODES.filter(({ name }) => name === 'auto');
    if (mode === undefined) throw new Error('no mode');
    for (const { path, headers } of ways) {
      const client = await connectMode(t, url, mode, headers, { path, capabilities: BY_URL });
      const asked: unknown[] = [];
      /** Action of the person, and the login under way when the client repeats the call. */
      let action: 'accept' | 'decline' | 'cancel' = 'decline';
      let browser: Promise<unknown> = Promise.resolve();
      client.client.setRequestHandler('elicitation/create', ({ params }) => {
        asked.push(params);
        if (action === 'accept') browser = connect(url, person, upstream, 'anna');
        return { action };
      });
      t.match(await client.client.callTool(WHOSE_CALL), TEXT, 'the person declined');
      t.match(asked, [{ mode: 'url', url: /^http:\/\/localhost:\d+\/#servers\/notes$/, message: /Notes/ }]);
      action = 'cancel';
      await t.rejects(client.client.getPrompt({ name: 'notes_any' }), {
        code: -32000,
        message: /connect Notes/,
      });
      action = 'accept';
      t.match(await client.client.callTool(WHOSE_CALL), { content: [{ text: 'anna' }] }, path);
      await browser;
      t.equal(asked.length, 3, 'it is asked once a call');
      await away();
      const silent = await connectMode(t, url, mode, headers, { path });
      t.match(await silent.client.callTool(WHOSE_CALL), TEXT, 'a client that asks no one');
      t.same([...client.faults, ...silent.faults], []);
    }
  },
);
