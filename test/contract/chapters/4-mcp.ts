/** Contract, sections 4.1 and 4.2: the MCP endpoint and its login. */
import { randomUUID } from 'node:crypto';
import { type Check, checksOf } from '../check.ts';
import { type Headers, read } from '../client.ts';
import { newKey } from '../unshown.ts';
import { verifiedHeaders, type World } from '../world.ts';
import { paymentCode } from './2-tools.ts';

const HELLO = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'c', version: '1' } };

/** Creates an invite code of a chat. */
export async function inviteCode(world: World): Promise<string> {
  const { auth } = await world.agent();
  await world.toolJson(auth, 'chat_create', { name: 'Invited' });
  return String(read(await world.toolJson(auth, 'chat_invites'), 'result.invites.0.code'));
}

const ENDPOINT = checksOf('4.1', {
  'the answer has jsonrpc 2.0 and the id of the request; another content type is 415': {
    sentence:
      'The route is POST /mcp. The content type is application/json. A body is one JSON-RPC 2.0 request, { jsonrpc: "2.0", id, method, params }.',
    async run(t, world) {
      for (const id of [7, 'seven']) {
        const answer = await world.post('/mcp', {}, { jsonrpc: '2.0', id, method: 'tools/list' });
        t.match(answer.json, { jsonrpc: '2.0', id });
        t.match(answer.header('content-type'), /^application\/json/);
      }
      const body = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/list"}');
      const text = await world.send('POST', '/mcp', {
        headers: { 'content-type': 'text/plain' },
        bytes: body,
      });
      t.equal(text.status, 415);
    },
  },
  'a code is accepted in each of the four positions': {
    sentence:
      'A capability code (section 5): code in the query, X-MCP-Code, params.arguments.code or params.code.',
    also: [
      [
        '5.2',
        'Public flows that work with a code need no login. The caller sends the capability code (code in the query, X-MCP-Code, or the argument code).',
      ],
    ],
    async run(t, world) {
      const code = await paymentCode(world);
      const name = 'payment_order_info';
      const call = (params: object) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
      const answers = {
        query: await world.post(`/mcp?code=${code}`, {}, call({ name, arguments: {} })),
        header: await world.rpc({ 'X-MCP-Code': code }, 'tools/call', { name, arguments: {} }),
        argument: await world.rpc({}, 'tools/call', { name, arguments: { code } }),
        param: await world.rpc({}, 'tools/call', { name, arguments: {}, code }),
      };
      for (const [place, answer] of Object.entries(answers)) {
        t.equal(answer.at('error'), undefined, `${place}: ${answer.text}`);
        t.match(answer.textAt('result.content.0.text'), /3\.00/, place);
      }
    },
  },
  'a device id is accepted in each of the three positions; a missing or malformed one is -32602': {
    sentence:
      'For codes of the chat family a device id, a UUID: X-Device-Guid, device_guid in the query, or params.arguments.device_guid.',
    also: [['5.2', 'A code of the chat family needs a device UUID besides (4.1).']],
    async run(t, world) {
      const code = await inviteCode(world);
      const guid = randomUUID();
      const send = (path: string, headers: Headers, args: object) =>
        world.post(path, headers, {
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'chat_anon_send_message', arguments: { text: 'hello', code, ...args } },
        });
      t.equal((await send('/mcp', { 'X-Device-Guid': guid }, {})).at('error'), undefined, 'header');
      t.equal((await send(`/mcp?device_guid=${guid}`, {}, {})).at('error'), undefined, 'query');
      t.equal((await send('/mcp', {}, { device_guid: guid })).at('error'), undefined, 'argument');
      t.equal((await send('/mcp', {}, {})).at('error.code'), -32602);
      t.equal((await send('/mcp', { 'X-Device-Guid': 'phone' }, {})).at('error.code'), -32602);
    },
  },
  'initialize without a session returns the fields, Mcp-Session-Id, and 2024-11-05 for every version': {
    sentence:
      'initialize | protocolVersion (string), capabilities (object), clientInfo {name, version} | { protocolVersion, capabilities: { tools: {}, resources: {} }, serverInfo: { name, version } }. The answer has the header Mcp-Session-Id. Authentication is not required.',
    also: [['9', 'initialize reports the MCP protocol version 2024-11-05.']],
    async run(t, world) {
      for (const protocolVersion of ['2024-11-05', '2025-06-18', '1999-01-01']) {
        const answer = await world.rpc({}, 'initialize', { ...HELLO, protocolVersion });
        t.match(answer.at('result'), {
          protocolVersion: '2024-11-05',
          capabilities: { tools: {}, resources: {} },
          serverInfo: { name: /./, version: /^\d+\.\d+\.\d+/ },
        });
        t.match(answer.header('mcp-session-id'), /./);
      }
    },
  },
  'without a session every tool is listed; with a session listed tools are callable and the others are -32001':
    {
      sentence:
        'tools/list | none | { tools: [ <tool> ] }. Without authentication it is the whole advertised catalog. With authentication it is what the session may call.',
      async run(t, world) {
        const all = await world.toolNames({});
        const { auth } = await world.agent('McpBasic');
        const own = await world.toolNames(auth);
        t.ok(own.length > 0 && own.length < all.length);
        const refused: string[] = [];
        for (const name of all) {
          const answer = await world.tool(auth, name, { unknownArgumentOfTheTest: 1 });
          if (answer.at('error.code') === -32001) refused.push(name);
        }
        t.same(refused.sort(), all.filter((name) => !own.includes(name)).sort());
      },
    },
  'a missing name is -32602; omitted or null arguments are empty, another type is refused': {
    sentence:
      'tools/call | name (string, required), arguments (object) | { content: [ { type: "text", text: <string> } ], isError?: true }. text holds the JSON of the backend, unchanged, as a string.',
    async run(t, world) {
      const { auth } = await world.agent();
      const call = (params: object) => world.rpc(auth, 'tools/call', params);
      t.equal((await call({ arguments: {} })).at('error.code'), -32602);
      const name = 'wallet_get_balance';
      const [whole, ...same] = [
        await call({ name, arguments: {} }),
        await call({ name }),
        await call({ name, arguments: null }),
      ];
      t.match(whole.json, { result: { content: [{ type: 'text', text: String }] } });
      for (const answer of same) t.same(answer.at('result'), whole.at('result'));
      for (const wrong of ['x', [], 7]) {
        const answer = await call({ name, arguments: wrong });
        t.ok(answer.at('error.code') === -32602 || answer.at('result.isError') === true, answer.text);
      }
    },
  },
  'every listed resource can be read, and a code lists different ones than a session': {
    sentence: 'resources/list | none | The resources that the caller may see.',
    async run(t, world) {
      const { auth } = await world.agent();
      const uris = await world.resourceUris(auth);
      t.ok(uris.length > 0);
      for (const uri of uris)
        t.equal((await world.rpc(auth, 'resources/read', { uri })).at('error'), undefined, uri);
      t.strictNotSame(await world.resourceUris({ 'X-MCP-Code': await paymentCode(world) }), uris);
    },
  },
  'without a session exactly the public resources are listed and readable': {
    sentence: 'resources/list | none | The resources that the caller may see.',
    async run(t, world) {
      const [open, all] = [
        await world.resourceUris({}),
        await world.resourceUris((await world.agent()).auth),
      ];
      const readable = async (uri: string) =>
        (await world.rpc({}, 'resources/read', { uri })).at('error') === undefined;
      for (const uri of open) t.ok(await readable(uri), uri);
      for (const uri of all) if (!open.includes(uri)) t.notOk(await readable(uri), uri);
    },
  },
  'a resource has text and mimeType; with a failing backend isError is true': {
    sentence:
      'resources/read | uri (string) | { contents: [ { text, mimeType } ] }. An error of the backend sets isError: true.',
    async run(t, world) {
      const { auth } = await world.agent();
      const uri = 'contract://core/plain';
      const good = await world.rpc(auth, 'resources/read', { uri });
      t.match(good.at('result'), { contents: [{ text: /./, mimeType: 'application/json' }] });
      t.equal(good.at('result.isError'), undefined);
      world.core.answer = () => ({ status: 409, body: '{"error":{"code":9001,"message":"No"}}' });
      const bad = await world.rpc(auth, 'resources/read', { uri });
      world.core.answer = () => ({});
      t.equal(bad.at('result.isError'), true);
      t.match(bad.textAt('result.contents.0.text'), /9001/);
    },
  },
});

const LOGIN = checksOf('4.2', {
  'a login needs headers only and returns the four fields': {
    sentence:
      'The route is POST /auth/v1/mcp_login. It has no body. Everything is in headers. A login returns { result: { sessionId, loginType, expiresUtc, appId } }.',
    async run(t, world) {
      const { login } = await world.agent();
      t.match(login.at('result'), {
        sessionId: /./,
        loginType: 'McpVerified',
        expiresUtc: /Z$/,
        appId: null,
      });
      t.equal((await world.get('/auth/v1/mcp_login')).status, 405);
    },
  },
  'the headers determine the login type; an incomplete set is 400': {
    sentence:
      'McpBasic | X-PublicKey … McpVerified | X-PublicKey, X-Timestamp, X-Signature … McpApp | X-PublicKey, X-App-Id',
    also: [['2.1', 'loginType | string | McpBasic, McpVerified or McpApp.']],
    async run(t, world) {
      const person = await world.mcpPerson();
      const all = verifiedHeaders(person.key);
      const { 'X-PublicKey': key = '', 'X-Timestamp': time = '', 'X-Signature': signature = '' } = all;
      t.equal((await world.mcpLogin({ 'X-PublicKey': key })).at('result.loginType'), 'McpBasic');
      t.equal((await world.mcpLogin(all)).at('result.loginType'), 'McpVerified');
      t.equal((await world.appAgent()).login.at('result.loginType'), 'McpApp');
      for (const headers of [
        {},
        { 'X-Timestamp': time, 'X-Signature': signature },
        { 'X-PublicKey': key, 'X-Timestamp': time },
        { 'X-PublicKey': key, 'X-Signature': signature },
      ])
        t.equal((await world.mcpLogin(headers)).status, 400, Object.keys(headers).join());
    },
  },
  '31 or 33 bytes, or text that is not base64url, are 400': {
    sentence: 'X-PublicKey | Ed25519 public key, 32 bytes in base64url',
    async run(t, world) {
      for (const wrong of [Buffer.alloc(31, 1), Buffer.alloc(33, 1)])
        t.equal((await world.mcpLogin({ 'X-PublicKey': wrong.toString('base64url') })).status, 400);
      t.equal((await world.mcpLogin({ 'X-PublicKey': '!'.repeat(43) })).status, 400);
    },
  },
  'a fraction, a word and an ISO date are 400': {
    sentence: 'X-Timestamp | Unix time in seconds, a decimal integer',
    async run(t, world) {
      const headers = verifiedHeaders((await world.mcpPerson()).key);
      for (const time of [`${headers['X-Timestamp']}.5`, 'now', new Date().toISOString()])
        t.equal((await world.mcpLogin({ ...headers, 'X-Timestamp': time })).status, 400, time);
    },
  },
  '63 and 65 bytes are 400': {
    sentence: 'X-Signature | Ed25519 signature, 64 bytes in base64url',
    async run(t, world) {
      const headers = verifiedHeaders(newKey());
      for (const length of [63, 65]) {
        const signature = Buffer.alloc(length, 1).toString('base64url');
        t.equal((await world.mcpLogin({ ...headers, 'X-Signature': signature })).status, 400);
      }
    },
  },
  'a value that is not a number is 400; an unknown application id is 401 Access denied': {
    sentence: 'X-App-Id | Id (a tick) of an application that is registered',
    async run(t, world) {
      const { publicKey } = (await world.mcpPerson()).key;
      const login = (id: string) => world.mcpLogin({ 'X-PublicKey': publicKey, 'X-App-Id': id });
      for (const wrong of ['shop', '-1', '1.5', '99999999999999999999'])
        t.equal((await login(wrong)).status, 400, wrong);
      t.match(await login('1882695855062390768'), { status: 401 });
      t.equal((await login('1882695855062390768')).at('error.message'), 'Access denied');
    },
  },
});

export const CHECKS: readonly Check[] = [...ENDPOINT, ...LOGIN];
