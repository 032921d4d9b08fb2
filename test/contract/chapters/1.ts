/** Contract, conventions and section 1: purpose of the service. */
import { request } from 'node:http';
import { type Check, checksOf } from '../check.ts';
import { type Answer, read } from '../client.ts';
import { deliveredCode, expectOk, sessionOf } from '../unshown.ts';
import { smallFile, uploadV1 } from '../uploads.ts';
import { PROJECT, type World } from '../world.ts';

/** Names that are not camelCase in the contract (2.3). */
const GIVEN_NAMES = ['success_count', 'failed_count', 'last_tick'];

function namesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(namesIn);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, child]) => [name, ...namesIn(child)]);
}

/** Status and headers of an event stream, and its first event of a type. */
export function firstEvent(
  world: World,
  cookie: string,
  type: string,
): Promise<{ mime: string; data: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(`${world.gateway.url}/auth/v1/events`, {
      headers: { Cookie: cookie },
      agent: false,
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        const found = text.split('\n\n').find((event) => event.includes(`"type":"${type}"`));
        if (found === undefined) return;
        const data = found.split('\n').filter((line) => line.startsWith('data:'));
        resolve({ mime: String(response.headers['content-type']), data: data.join('').slice(5) });
        sent.destroy();
      });
      response.on('error', () => undefined);
    });
    sent.end();
  });
}

const CONVENTIONS = checksOf('Intro', {
  'a success is an object with `result` and nothing else': {
    sentence: 'a JSON answer of a successful request is { "result": <payload> }.',
    async run(t, world) {
      const person = await world.person();
      for (const path of ['/auth/v1/get_info', '/auth/v1/info', '/auth/v1/keys/user_keys']) {
        const answer = expectOk(path, await world.get(path, person.auth));
        t.same(Object.keys(answer.json as object), ['result'], path);
        t.match(answer.header('content-type'), /^application\/json/);
      }
    },
  },
  'a failure is an object with `error`, an integer code and a message': {
    sentence: 'A failed request is answered with { "error": { "code": <int>, "message": <string> } }.',
    async run(t, world) {
      const answers = [
        await world.get('/auth/v1/nothing'),
        await world.get('/auth/v1/keys/user_keys'),
        await world.post('/auth/v1/login_phone', {}, '{'),
        await world.mcpLogin({ 'X-PublicKey': '?' }),
      ];
      for (const answer of answers) {
        t.ok(answer.status >= 400, String(answer.status));
        t.same(Object.keys(answer.json as object), ['error']);
        t.ok(Number.isInteger(answer.at('error.code')), answer.text);
        t.type(answer.at('error.message'), 'string');
      }
    },
  },
  'every property name of nine answers is camelCase or a name given in the contract': {
    sentence: 'Property names are camelCase, except where this page writes another form.',
    async run(t, world) {
      const { person, auth, login } = await world.agent();
      const app = await world.app(person, { name: 'Names', url: 'https://names.example' });
      const answers = [login, app];
      for (const path of ['get_info', 'info', 'keys/user_keys', 'sessions', 'login_log', 'app/list'])
        answers.push(expectOk(path, await world.get(`/auth/v1/${path}`, person.auth)));
      answers.push(await world.rpc(auth, 'resources/list'));
      const names = new Set(answers.flatMap(({ json }) => namesIn(json)));
      t.same(
        [...names].filter((name) => !/^[a-z][A-Za-z0-9]*$/.test(name) && !GIVEN_NAMES.includes(name)),
        [],
      );
    },
  },
  'ids of keys, users and applications are strings of digits': {
    sentence: 'A 64-bit integer id is usually a decimal string.',
    async run(t, world) {
      const person = await world.person();
      const keys = await world.get('/auth/v1/keys/user_keys', person.auth);
      t.match(keys.at('result.0.id'), /^\d{10,19}$/);
      t.match(person.userId, /^\d{10,19}$/);
      const app = await world.app(person, { name: 'Ids', url: 'https://ids.example' });
      t.match(app.at('result.id'), /^\d{10,19}$/);
    },
  },
});

const SERVICE = checksOf('1', {
  'calls to wallet, chat, payments, markets and core all go through one address': {
    sentence:
      'All backend modules (wallet, chat, payments, markets, and core modules of a customer) are reached through one public entry point.',
    async run(t, world) {
      const { auth } = await world.agent();
      const tools = ['wallet_get_balance', 'chat_list', 'payorder_terminals', 'market_get_rates'];
      for (const name of tools) t.type(read(await world.toolJson(auth, name), 'result'), 'object', name);
      const core = await world.get('/core/v1/things/list', auth);
      t.equal(core.text, '{"result":"fine"}');
      t.equal(world.core.last.url, '/core/v1/things/list');
    },
  },
  'a challenge, a phone code, an e-mail code and mcp_login each open a session': {
    sentence:
      'Authentication: browser sessions (challenge and response, passkeys, hardware keys, codes by phone or e-mail) and sessions of programs for MCP.',
    also: [['5.3', 'A browser logs in by challenge and response (login-options, then login), or by phone.']],
    async run(t, world) {
      const person = await world.mcpPerson();
      t.equal((await world.loginAgain(person)).status, 200, 'challenge');
      const contacts = [
        ['login_phone', 'phone', '+491701234567'],
        ['login_email', 'email', 'ann@example.com'],
      ] as const;
      for (const [route, field, address] of contacts) {
        const asked = expectOk(route, await world.post(`/auth/v1/${route}`, {}, { [field]: address }));
        const code = await deliveredCode(String(world.gateway.sandbox), address);
        const body = { challengeId: asked.at('result.challengeId'), code };
        const login = expectOk('login', await world.post('/auth/v1/login', {}, body));
        t.equal((await world.get('/auth/v1/sessions', sessionOf(login))).status, 200, route);
      }
      t.equal((await world.agent('McpVerified', person)).login.at('result.loginType'), 'McpVerified');
    },
  },
  'an agent logs in, lists tools and resources, calls one and reads one': {
    sentence:
      'An MCP (Model Context Protocol) server, JSON-RPC 2.0 at POST /mcp: an assistant logs in, lists tools and resources, and uses them.',
    async run(t, world) {
      const { auth } = await world.agent();
      t.ok((await world.toolNames(auth)).includes('wallet_get_balance'));
      const [uri] = await world.resourceUris(auth);
      const balance = await world.toolJson(auth, 'wallet_get_balance', { currency: 'DEMO' });
      t.equal(read(balance, 'result.balances.0.currency'), 'DEMO');
      const resource = await world.rpc(auth, 'resources/read', { uri });
      t.type(resource.at('result.contents.0.text'), 'string');
    },
  },
  'tool and REST call name the same user to the module, carry X-RateLimit and leave an audit record; neither works without a session':
    {
      sentence:
        'A tool call becomes a request to a REST endpoint of a backend, with the authentication, rate limits and audit of any REST call.',
      also: [
        [
          '4.1',
          '{ content: [ { type: "text", text: <string> } ], isError?: true }. text holds the JSON of the backend, unchanged, as a string.',
        ],
      ],
      async run(t, world) {
        const { auth, person } = await world.agent();
        const tool = await world.tool(auth, 'wallet_get_balance', { currency: 'DEMO' });
        const rest = await world.get('/wallet/v1/balance/get?currency=DEMO', auth);
        t.match(tool.at('result'), { content: [{ type: 'text', text: rest.text }] });
        t.equal(tool.textAt('result.content.0.text'), rest.text);
        t.equal(tool.at('result.isError'), undefined);
        for (const answer of [tool, rest])
          t.match(answer.header('x-ratelimit'), /^s=[a-z];l=\d+;r=\d+;t=\d+$/);
        t.equal((await world.get('/wallet/v1/balance/get')).at('error.code'), 1101);
        t.equal((await world.tool({}, 'wallet_get_balance')).at('error.code'), -32001);
        const { auth: admin } = await world.admin();
        const audit = await world.get(`/ProxyAdmin/api/audit?userId=${person.userId}&limit=100`, admin);
        t.match(expectOk('audit', audit).text, /"mcp\.tool"/);
        t.match(audit.text, /"rest\.call"/);
      },
    },
  'a file comes back by session and by code; the chat module refuses its id to another user': {
    sentence:
      'The bytes of chat attachments: upload in buffered chunks (v1), upload as a stream (v2), download by session or by code. The service stores bytes; metadata, access and life of an attachment are decided by the chat module.',
    also: [['4.6', 'There is no call to complete an upload. The upload is complete with its last chunk.']],
    async run(t, world) {
      const person = await world.person();
      const { fileId, fileCode, bytes } = await uploadV1(world, person, smallFile());
      const byId = await world.get(`/auth/v1/file/${fileId}`, person.auth);
      t.ok(byId.bytes.equals(bytes), 'by session');
      t.ok((await world.get(`/auth/v2/file/${fileCode}`)).bytes.equals(bytes), 'by code');
      const other = await world.person();
      t.not((await world.get(`/auth/v1/file/${fileId}`, other.auth)).status, 200, 'another user');
    },
  },
  'answers name scope and remaining quota; a download counts as a request': {
    sentence:
      'A rate limiter for HTTP with fixed windows in several scopes, and a bandwidth limiter of its own for file streams.',
    async run(t, world) {
      const person = await world.person();
      const { fileCode } = await uploadV1(world, person, smallFile());
      t.match((await world.get('/auth/v1/get_info')).header('x-ratelimit'), /^s=[ci];/);
      t.match((await world.get('/auth/v1/sessions', person.auth)).header('x-ratelimit'), /^s=s;/);
      t.match((await world.get(`/auth/v2/file/${fileCode}`)).header('x-ratelimit'), /^s=[ci];/);
    },
  },
  'health and info answer JSON; the panel and the explorer are pages': {
    sentence:
      'Routes for health and information, the admin panel /ProxyAdmin, and the interactive API explorer /docs/swagger/.',
    async run(t, world) {
      t.equal((await world.get('/health')).at('status'), 'healthy');
      t.equal((await world.get('/auth/v1/get_info')).at('result.project'), PROJECT);
      for (const path of ['/ProxyAdmin', '/docs/swagger/']) {
        let page: Answer = await world.get(path);
        if (page.status >= 300 && page.status < 400) page = await world.get(page.header('location'));
        t.equal(page.status, 200, path);
        t.match(page.header('content-type'), /^text\/html/);
      }
    },
  },
});

export const CHECKS: readonly Check[] = [...CONVENTIONS, ...SERVICE];
