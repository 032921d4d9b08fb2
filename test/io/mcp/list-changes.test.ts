/** `subscriptions/listen`: the acknowledgement, changes after a reload, and every end of a stream. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { resolveMcpServer } from '../../../src/domain/config/mcp-servers.ts';
import { type ConfiguredRows, loadCatalog } from '../../../src/io/mcp/catalog.ts';
import { BUILT_IN } from '../../../src/io/mcp/tools/built-in.ts';
import { readOffers } from '../../../src/io/mcp/upstreams/offers.ts';
import type { OfferKind, UpstreamServer } from '../../../src/io/mcp/upstreams/types.ts';
import { freshBounds } from '../../support/actors/bounds.ts';
import { promiseOf } from '../../support/http.ts';
import { type McpFixture, type McpFixtureOptions, sessionOf, startMcp, TOKENS } from '../../support/mcp.ts';

const META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};
const TOOL = {
  endpoint: 'http://127.0.0.1:1/x',
  method: 'GET',
  description: 'A tool that a reload adds.',
  inputSchema: { type: 'object' },
};
const SUBSCRIPTION = { 'io.modelcontextprotocol/subscriptionId': 'a1' };
const COMPLETE = { jsonrpc: '2.0', id: 'a1', result: { resultType: 'complete', _meta: SUBSCRIPTION } };
const acknowledged = (notifications: object) => ({
  jsonrpc: '2.0',
  method: 'notifications/subscriptions/acknowledged',
  params: { _meta: SUBSCRIPTION, notifications },
});
const changed = (list: string) => ({
  jsonrpc: '2.0',
  method: `notifications/${list}/list_changed`,
  params: { _meta: SUBSCRIPTION },
});

async function start(t: Test, options: McpFixtureOptions = {}): Promise<McpFixture> {
  return closeAfter(t, await startMcp(options));
}

interface Listener {
  readonly status: number;
  readonly type: string | null;
  /** The next message; a comment is `:`, the end undefined. */
  next(): Promise<unknown>;
  leave(): void;
}

async function listen(
  mcp: McpFixture,
  notifications: unknown,
  { token = TOKENS.McpVerified as string, path = '/mcp' } = {},
): Promise<Listener> {
  const stop = new AbortController();
  const answer = await fetch(`${mcp.http.url}${path}`, {
    method: 'POST',
    signal: stop.signal,
    headers: {
      'content-type': 'application/json',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'subscriptions/listen',
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 'a1',
      method: 'subscriptions/listen',
      params: { _meta: META, notifications },
    }),
  });
  const reader = answer.body?.getReader();
  let text = '';
  return {
    status: answer.status,
    type: answer.headers.get('content-type'),
    async next() {
      while (!text.includes('\n\n') && text[0] !== '{') {
        const read = await reader?.read();
        if (read === undefined || read.done) return undefined;
        text += Buffer.from(read.value).toString('utf8');
      }
      if (text[0] === '{') return JSON.parse(text);
      const [frame = ''] = text.split('\n\n');
      text = text.slice(frame.length + 2);
      return frame === ':' ? frame : JSON.parse(frame.replace('event: message\ndata: ', ''));
    },
    leave: () => stop.abort(),
  };
}

function reload(mcp: McpFixture, rows: ConfiguredRows): void {
  const result = loadCatalog(BUILT_IN, rows, new Map([['wallet', mcp.backendUrl]]), { personalReads: true });
  t.strictSame(mcp.catalog.reload(result), []);
}

t.test('subscriptions/listen: acknowledges what is served, then tells of a changed list once', async (t) => {
  const mcp = await start(t);
  const stream = await listen(mcp, {
    toolsListChanged: true,
    resourceSubscriptions: ['gatehouse://wallet/balance'],
  });
  t.strictSame([stream.status, stream.type], [200, 'text/event-stream']);
  t.strictSame(await stream.next(), acknowledged({ toolsListChanged: true }));
  reload(mcp, { tools: { added: TOOL }, resources: {} });
  t.strictSame(await stream.next(), changed('tools'));
  reload(mcp, { tools: { added: TOOL }, resources: {} });
  const resource = { endpoint: 'http://127.0.0.1:1/y', name: 'y' };
  reload(mcp, { tools: { added: TOOL }, resources: { 'test://y': resource } });
  await mcp.listChanges.drain();
  t.strictSame(await stream.next(), COMPLETE, 'the same list and another one cause no message');
  t.equal(await stream.next(), undefined);
});

t.test(
  'subscriptions/listen: prompts and templates of another server have the messages of their lists',
  async (t) => {
    const mcp = await start(t);
    const filter = { promptsListChanged: true, resourcesListChanged: true };
    const stream = await listen(mcp, filter);
    t.strictSame(await stream.next(), acknowledged(filter));
    const server: UpstreamServer = {
      name: 'other',
      title: 'other',
      url: { origin: 'http://127.0.0.1:1', pathname: '/mcp', search: '' },
      headers: {},
      pipe: undefined,
      session: undefined,
      renewed: async () => undefined,
      noteCall: () => undefined,
    };
    const configuration = resolveMcpServer('other', { url: 'http://127.0.0.1:1/mcp' }, {});
    const offered = (kind: OfferKind, item: object) => readOffers(server, configuration, kind, [item]).offers;
    const prompts = offered('prompts', { name: 'greet' });
    reload(mcp, { tools: {}, resources: {}, offers: prompts });
    t.strictSame(await stream.next(), changed('prompts'));
    const templates = offered('resourceTemplates', { uriTemplate: 'memo://{id}', name: 'By id' });
    reload(mcp, { tools: {}, resources: {}, offers: [...prompts, ...templates] });
    t.strictSame(await stream.next(), changed('resources'));
    await mcp.listChanges.drain();
    t.strictSame(await stream.next(), COMPLETE);
  },
);

t.test('subscriptions/listen: each stream is notified of the list of its caller and address', async (t) => {
  const profiles = { shop: { tools: ['wallet'] } };
  const mcp = await start(t, { configured: () => ({ tools: {}, resources: {}, profiles }) });
  const both = { toolsListChanged: true, resourcesListChanged: true };
  const whole = await listen(mcp, both);
  const shop = await listen(mcp, both, { path: '/mcp/p/shop' });
  const basic = await listen(mcp, both, { token: TOKENS.McpBasic });
  for (const stream of [whole, shop, basic]) t.strictSame(await stream.next(), acknowledged(both));
  reload(mcp, { tools: { added: { ...TOOL, restricted: ['McpBasic'] } }, resources: {}, profiles });
  t.strictSame(await whole.next(), changed('tools'));
  reload(mcp, { tools: {}, resources: {}, profiles: {} });
  t.strictSame(await shop.next(), COMPLETE, 'the profile is gone');
  await mcp.listChanges.drain();
  t.strictSame(await basic.next(), COMPLETE);
});

t.test('subscriptions/listen: with nothing that can change it is complete at once', async (t) => {
  const mcp = await start(t);
  const stream = await listen(mcp, { resourceSubscriptions: ['gatehouse://wallet/balance'] });
  t.strictSame(await stream.next(), acknowledged({}));
  t.strictSame(await stream.next(), COMPLETE);
  t.equal(mcp.listChanges.size, 0);
});

// covers S73
t.test('subscriptions/listen: ends with its session, its lifetime and its client', async (t) => {
  const bounds = freshBounds();
  const mcp = await start(t, { pipeline: { bounds } });
  const filter = { toolsListChanged: true };
  const first = await listen(mcp, filter);
  t.strictSame(await first.next(), acknowledged(filter));
  mcp.http.time.nowMs += 20_000;
  mcp.runTimers();
  t.equal(await first.next(), ':', 'a heartbeat');
  mcp.closedSessions.add(sessionOf('McpVerified').id);
  mcp.http.time.nowMs += 20_000;
  mcp.runTimers();
  t.strictSame(await first.next(), COMPLETE, 'the session was closed');
  mcp.closedSessions.clear();
  const second = await listen(mcp, filter);
  t.strictSame(await second.next(), acknowledged(filter));
  mcp.http.time.nowMs += 600_000;
  mcp.runTimers();
  t.strictSame(await second.next(), COMPLETE, 'the lifetime is over');
  t.equal(bounds.of('eventStreams').counters().held, 0);
});

t.test(
  'subscriptions/listen: the streams of an ended session are complete at once, others stay',
  async (t) => {
    const bounds = freshBounds();
    const mcp = await start(t, { pipeline: { bounds } });
    const filter = { toolsListChanged: true };
    const own = [await listen(mcp, filter), await listen(mcp, filter)];
    const other = await listen(mcp, filter, { token: TOKENS.other });
    for (const stream of [...own, other]) t.strictSame(await stream.next(), acknowledged(filter));
    mcp.listChanges.sessionEnded('unknown');
    t.equal(mcp.listChanges.size, 3);
    mcp.listChanges.sessionEnded(sessionOf('McpVerified').id);
    for (const stream of own) {
      t.strictSame(await stream.next(), COMPLETE);
      t.equal(await stream.next(), undefined);
    }
    t.equal(mcp.listChanges.size, 1);
    t.equal(bounds.of('eventStreams').counters().held, 1);
    mcp.http.time.nowMs += 20_000;
    mcp.runTimers();
    t.equal(await other.next(), ':', 'its own session lives');
  },
);

// covers S73
t.test('subscriptions/listen: refusals without a filter, a session, a good bearer or room', async (t) => {
  const mcp = await start(t, { pipeline: { bounds: freshBounds({ eventStreams: 4 }) } });
  const filter = { toolsListChanged: true };
  const codeOf = async (stream: Listener) =>
    [stream.status, ((await stream.next()) as { error: { code: number } }).error.code] as const;
  t.strictSame(await codeOf(await listen(mcp, undefined)), [200, -32602]);
  t.strictSame(await codeOf(await listen(mcp, filter, { token: '' })), [200, -32001]);
  t.strictSame(await codeOf(await listen(mcp, filter, { token: 'closed' })), [200, -32001]);
  const open = await listen(mcp, filter);
  await open.next();
  t.strictSame(
    await codeOf(await listen(mcp, filter)),
    [429, 1002],
    'a quarter of the bound is the share of a user',
  );
  await mcp.listChanges.drain();
  t.strictSame(await codeOf(await listen(mcp, filter)), [200, -32000], 'a gateway that stops');
});

t.test('client 2: is notified of a changed list and survives the end of the stream', async (t) => {
  const mcp = await start(t);
  const { promise: hearing, resolve: heard } = promiseOf();
  const client = new Client(
    { name: 'test', version: '2.0.0' },
    {
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      listChanged: { tools: { onChanged: () => heard() } },
    },
  );
  t.teardown(() => client.close());
  const headers = { Authorization: `Bearer ${TOKENS.McpVerified}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${mcp.http.url}/mcp`), { requestInit: { headers } }),
  );
  reload(mcp, { tools: { added: TOOL }, resources: {} });
  await hearing;
  await mcp.listChanges.drain();
  t.ok((await client.listTools()).tools.some(({ name }) => name === 'added'));
});
