/** A module of another name than the built-in ones, on the real program: proxy, tools of all methods, key and events. */
import http from 'node:http';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { bearerOf, callTool, signUpAgent } from '../../kit/agent.ts';
import { listenFor } from '../../kit/http.ts';
import { launchFor } from '../../kit/launch.ts';

t.setTimeout(60_000);

const KEY = 'k'.repeat(32);
const asked: { method: string; url: string; body: string; userId: string | undefined }[] = [];
const backend = http.createServer(async (request, response) => {
  const { method = '', url = '', headers } = request;
  const userId = headers['x-user-id']?.toString();
  asked.push({ method, url, body: await text(request), userId });
  response.writeHead(200, { 'content-type': 'application/json' }).end('{"result":"fine"}');
});
const { url } = await listenFor(t, backend);

const item = { type: 'object', properties: { id: { type: 'string' }, name: { type: 'string' } } };
const tool = (method: string, more: object = {}) => ({
  endpoint: 'my-shop:/my-shop/v1/items/{id}',
  method,
  description: `The method ${method} of an item.`,
  inputSchema: item,
  ...more,
});
const gateway = await launchFor(t, {
  configuration: {
    Modules: { 'my-shop': { url, key: KEY, public: ['/my-shop/v1/news'] } },
    McpTools: {
      item_put: tool('PUT'),
      item_patch: tool('PATCH', { queryParams: ['name'] }),
      item_delete: tool('DELETE'),
    },
  },
});
const person = await signUpAgent(gateway.url);
const bearer = await bearerOf(gateway.url, person.key);

t.test('module of any name: its paths are proxied, public ones without a session', async (t) => {
  const authorization = `Bearer ${bearer}`;
  const own = await fetch(`${gateway.url}/my-shop/v1/items?x=1`, { headers: { authorization } });
  t.strictSame([own.status, await own.text()], [200, '{"result":"fine"}']);
  t.match(asked.at(-1), { method: 'GET', url: '/my-shop/v1/items?x=1', userId: person.userId });
  t.equal((await fetch(`${gateway.url}/my-shop/v1/items`)).status, 401);
  t.equal((await fetch(`${gateway.url}/my-shop/v1/news`)).status, 200);
  t.equal((await fetch(`${gateway.url}/other/v1/items`)).status, 404);
});

// covers R18
t.test('tools with PUT and PATCH send a body, tools with DELETE a query', async (t) => {
  const values = { id: '7', name: 'ink' };
  const rows = [
    ['item_put', { method: 'PUT', url: '/my-shop/v1/items/7', body: '{"name":"ink"}' }],
    ['item_patch', { method: 'PATCH', url: '/my-shop/v1/items/7?name=ink', body: '{}' }],
    ['item_delete', { method: 'DELETE', url: '/my-shop/v1/items/7?name=ink', body: '' }],
  ] as const;
  for (const [name, expected] of rows) {
    const answer = await callTool(gateway.url, bearer, name, values);
    t.match(answer.json, { result: { content: [{ text: '{"result":"fine"}' }] } }, name);
    t.match(asked.at(-1), { ...expected, userId: person.userId }, name);
  }
});

t.test('module of any name: pushes its own events with its key, and no others', async (t) => {
  const push = async (module: string, key: string) => {
    const event = { module, tick: '1', type: 'ItemSold', crmId: person.userId, data: {} };
    const answer = await fetch(`${gateway.internal}/internal/v1/events`, {
      method: 'POST',
      headers: { 'x-module-key': key, 'content-type': 'application/json' },
      body: JSON.stringify({ events: [event] }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  t.strictSame(await push('my-shop', KEY), {
    status: 200,
    text: '{"result":{"accepted":1,"duplicates":0}}',
  });
  t.equal((await push('wallet', KEY)).status, 400, 'a module that is not configured');
  t.equal((await push('my-shop', 'x'.repeat(32))).status, 401);
});
