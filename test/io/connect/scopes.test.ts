/**
 * Scopes that a person gives a host, narrower or wider than it asked; and the way in which a host learns of a wider
 * scope.
 */
import t, { type Test } from 'tap';
import { type Answer, request } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { MINUTE_MS } from '../../../src/domain/time.ts';
import { type ConnectFixture, startConnect } from '../../support/connect.ts';
import {
  authorizeQuery,
  connectHost,
  consent,
  decideRequest,
  exchange,
  listTools,
  refreshTokens,
  registerHost,
  sendMcp,
  tokensOf,
} from '../../support/hosts.ts';

async function start(t: Test): Promise<ConnectFixture> {
  return stopAfter(t, await startConnect());
}

/** The access token of a host that asks for `asked`, where the person chooses `chosen`. */
async function tokenOf(fixture: ConnectFixture, asked: string, chosen?: string, resource?: string) {
  const cookie = fixture.cookieOf(fixture.owner);
  const { tokens } = await connectHost(fixture.url, cookie, { scope: asked, resource }, chosen);
  return tokens.access;
}

const call = (name: string, id = 1) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });

// covers R45
t.test('consent: the choice of the person counts, and the answer names what was given', async (t) => {
  const fixture = await start(t);
  const cookie = fixture.cookieOf(fixture.owner);
  const rows = [
    ['tools', undefined, 'tools'],
    ['tools', 'read', 'read'],
    ['tools offline_access', 'read', 'read offline_access'],
    ['read tools', 'read', 'read'],
    ['read', 'full', 'read full'],
    ['full', 'tools', 'tools'],
    ['full', 'full', 'full'],
  ] as const;
  for (const [asked, chosen, given] of rows) {
    const note = `${asked}, chosen: ${chosen}`;
    const host = await registerHost(fixture.url);
    const code = await consent(fixture.url, cookie, authorizeQuery(host, { scope: asked }), chosen);
    const answer = await exchange(fixture.url, host, code);
    t.equal(String(answer.json['scope']), given, note);
    const again = await refreshTokens(fixture.url, host, tokensOf(answer).refresh);
    t.equal(String(again.json['scope']), given, `${note}: refreshed`);
    const wider = await refreshTokens(fixture.url, host, tokensOf(again).refresh, { scope: 'full' });
    t.equal(wider.status, given.includes('full') ? 200 : 400, `${note}: never wider by a refresh`);
  }
});

t.test('consent: a choice opens what it says, whatever was asked', async (t) => {
  const fixture = await start(t);
  const read = await listTools(fixture.url, await tokenOf(fixture, 'full', 'read'));
  t.notOk(read.includes('payorder_create'));
  const tools = await listTools(fixture.url, await tokenOf(fixture, 'read', 'tools'));
  t.strictSame([tools.includes('payorder_create'), tools.includes('sessions')], [true, false]);
  const full = await listTools(fixture.url, await tokenOf(fixture, 'read', 'full'));
  t.ok(full.includes('sessions'));
});

// covers S107
t.test(
  'consent: full access needs a login of 15 minutes by what is chosen, not by what is asked',
  async (t) => {
    const fixture = await start(t);
    const cookie = fixture.cookieOf(fixture.owner);
    const decide = async (asked: string, chosen: string, allow = true) => {
      const host = await registerHost(fixture.url);
      return decideRequest(fixture.url, cookie, authorizeQuery(host, { scope: asked }), allow, chosen);
    };
    fixture.actors.clock.nowMs += 15 * MINUTE_MS;
    t.equal((await decide('tools', 'full')).status, 200);
    fixture.actors.clock.nowMs += MINUTE_MS;
    t.equal((await decide('full', 'tools')).status, 200);
    const stale = await decide('tools', 'full');
    t.equal(stale.status, 403);
    t.match(stale.json, { error: { code: 1110 } });
    t.equal((await decide('full', 'full', false)).status, 200, 'a refusal needs none');
    t.equal((await decide('tools', 'admin')).status, 400, 'no such choice');
  },
);

const MORE = /insufficient_scope/;

/** Returns the field with the address at which the host finds the authorization server. */
const metadataOf = ({ url }: ConnectFixture, path: string) =>
  `resource_metadata="${url}/.well-known/oauth-protected-resource${path}"`;

function isTooNarrow(t: Test, answer: Answer, scope: string, metadata: string): void {
  t.equal(answer.status, 403);
  t.equal(
    answer.headers.get('www-authenticate'),
    `Bearer error="insufficient_scope", scope="${scope}", ${metadata}`,
  );
  t.match(answer.json, { jsonrpc: '2.0', id: 1, error: { code: -32001 } });
}

// covers R45
t.test(
  'call beyond the scope: 403 names the narrowest scope that opens it, and asking again opens it',
  async (t) => {
    const fixture = await start(t);
    const metadata = metadataOf(fixture, '/connect/mcp');
    const read = await tokenOf(fixture, 'read');
    isTooNarrow(t, await sendMcp(fixture.url, read, call('payorder_create')), 'tools', metadata);
    isTooNarrow(t, await sendMcp(fixture.url, read, call('sessions')), 'full', metadata);
    const tools = await tokenOf(fixture, 'tools');
    isTooNarrow(t, await sendMcp(fixture.url, tools, call('sessions')), 'full', metadata);
    const full = await tokenOf(fixture, 'full');
    const opened = await sendMcp(fixture.url, full, call('sessions'));
    t.equal(opened.status, 200);
    t.match(opened.json, { result: { content: [{ type: 'text' }] } });
    t.equal((await sendMcp(fixture.url, tools, { method: 'ping' })).status, 200, 'the narrow one lives on');
  },
);

// covers R45
t.test('call beyond the scope: in a batch it is the error of its message', async (t) => {
  const fixture = await start(t);
  const headers = { authorization: `Bearer ${await tokenOf(fixture, 'tools')}` };
  const body = [call('sessions', 1), { jsonrpc: '2.0', id: 2, method: 'ping' }];
  const answer = await request(`${fixture.url}/connect/mcp`, { headers, body });
  t.equal(answer.status, 200);
  t.equal(answer.headers.get('www-authenticate'), null);
  t.match(answer.json, [
    { id: 1, error: { code: -32001, message: /needs the scope full/ } },
    { id: 2, result: {} },
  ]);
});

t.test('call beyond the scope: revision 2026-07-28 gets the same 403', async (t) => {
  const fixture = await start(t);
  const headers = {
    authorization: `Bearer ${await tokenOf(fixture, 'tools')}`,
    'MCP-Protocol-Version': '2026-07-28',
    'Mcp-Method': 'tools/call',
    'Mcp-Name': 'sessions',
  };
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
    'io.modelcontextprotocol/clientInfo': { name: 'host', version: '1' },
  };
  const body = { ...call('sessions'), params: { name: 'sessions', _meta: meta } };
  const answer = await request(`${fixture.url}/connect/mcp`, { headers, body });
  isTooNarrow(t, answer, 'full', metadataOf(fixture, '/connect/mcp'));
});

t.test('call beyond the scope: what no consent opens there stays HTTP 200', async (t) => {
  const fixture = await start(t);
  const path = '/connect/p/one/mcp';
  const token = await tokenOf(fixture, 'tools', undefined, `${fixture.url}${path}`);
  const send = (name: string) => sendMcp(fixture.url, token, call(name), path);
  isTooNarrow(t, await send('user_keys'), 'full', metadataOf(fixture, path));
  const outside = await send('sessions');
  t.equal(outside.status, 200, 'a tool that the profile does not list');
  t.match(outside.json, { error: { code: -32001 } });
  const unknown = await send('no_such_tool');
  t.equal(unknown.status, 200);
  t.match(unknown.json, { error: { code: -32602 } });
});

// covers R45
t.test(
  'instructions: a connection with a narrow scope reads that more exists, by number of tools',
  async (t) => {
    const fixture = await start(t);
    const of = async (scope: string) => {
      const token = await tokenOf(fixture, scope);
      const { json } = await sendMcp(fixture.url, token, { method: 'initialize' });
      const text = String(json['result']?.['instructions']);
      return { text, count: (await listTools(fixture.url, token)).length };
    };
    const [read, tools, full] = [await of('read'), await of('tools'), await of('full')];
    const more = (wide: { count: number }, narrow: { count: number }) =>
      `(${wide.count - narrow.count} more)`;
    t.match(read.text, `scope: tools ${more(tools, read)}, full ${more(full, read)}.`);
    t.match(tools.text, `the scope tools. More tools exist in a wider scope: full ${more(full, tools)}.`);
    t.match(tools.text, MORE);
    t.notMatch(full.text, MORE);
    for (const { text } of [read, tools, full]) t.ok(text.length <= 800, `${text.length}`);
  },
);
