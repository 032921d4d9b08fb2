/** A call without credentials of its person, for clients that ask the person by an address: what they get, and how a call waits. */
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { CallToken, CallTokens } from '../../../src/io/mcp/credentials/credentials.ts';
import { CAPABILITIES_KEY } from '../../../src/io/mcp/request-headers.ts';
import { VERSION_KEY } from '../../../src/io/mcp/revisions.ts';
import { createTestActors } from '../../support/actors/actors.ts';
import { TOKENS } from '../../support/mcp.ts';
import { configurationOf, OPEN, startGateway } from '../../support/upstreams/gateway.ts';
import { json, resultOf, startUpstream } from '../../support/upstreams/server.ts';

const LOOK_MS = 500;
const VERSION = '2026-07-28';
const ASKED = {
  result: {
    resultType: 'input_required',
    _meta: { 'io.modelcontextprotocol/serverInfo': {} },
    inputRequests: { login: { method: 'elicitation/create', params: { mode: 'url', message: /Notes/ } } },
  },
};
const TEXT = { error: { code: -32000, message: /connect Notes at/ } };
const ANSWERED = { result: { resultType: 'complete', messages: [{ content: { text: 'hers' } }] } };
const ACCEPTED = { inputResponses: { login: { action: 'accept' } } };

/** `login`: of the person, as the account has it now. */
async function start(t: Test) {
  const upstream = closeAfter(t, await startUpstream([]));
  upstream.lists = { 'prompts/list': { prompts: [] } };
  upstream.respond = ({ id }, response) =>
    json(response, resultOf(id, '{"messages":[{"role":"user","content":{"type":"text","text":"hers"}}]}'));
  const account: { login: CallToken | undefined; fault?: GatewayError | undefined; isLive: boolean } = {
    login: undefined,
    isLive: true,
  };
  const missing = () => {
    throw new GatewayError('UpstreamLoginRequired');
  };
  const tokens: CallTokens = {
    connectedMs() {
      if (account.fault !== undefined) throw account.fault;
      return account.login?.connectedMs;
    },
    find: () => account.login ?? missing(),
    renew: async () => missing(),
  };
  const { url } = upstream;
  const login = { url, networks: [], client: null };
  const given = { title: 'Notes', login, promptAccess: OPEN };
  const servers = { notes: configurationOf(upstream, given) };
  const actors = createTestActors({ kinds: [] });
  const gateway = await startGateway(t, servers, { now: () => account.isLive as never }, actors, tokens);
  const { mcp, timers, until } = gateway;
  const ask = (more: object = {}, capabilities: object = { elicitation: { url: {} } }, name = 'up_any') => {
    const _meta = { [VERSION_KEY]: VERSION, [CAPABILITIES_KEY]: capabilities };
    const head = { 'mcp-protocol-version': VERSION, 'mcp-method': 'prompts/get', 'mcp-name': name };
    return mcp.rpc('prompts/get', { name, _meta, ...more }, TOKENS.McpVerified, head);
  };
  const waits = () => timers.filter(({ delayMs }) => delayMs === LOOK_MS);
  return {
    ...gateway,
    account,
    upstream,
    ask,
    waits,
    /** `count` calls wait. */
    untilWaiting: (count: number) => until(() => waits().length === count),
    look() {
      for (const wait of waits()) {
        timers.splice(timers.indexOf(wait), 1);
        wait.run();
      }
    },
  };
}

const loginOf = (connectedMs: number): CallToken => ({
  token: `token-${connectedMs}`,
  keyId: String(connectedMs),
  connectedMs,
});

t.test('login by address: asked once a request, again for an answer that cannot be read', async (t) => {
  const { ask, account } = await start(t);
  t.match(await ask(), ASKED);
  const unread = [
    {},
    null,
    { login: null },
    { login: { action: 7 } },
    { other: { action: 'accept' } },
    'login',
  ];
  for (const inputResponses of unread)
    t.match(await ask({ inputResponses }), ASKED, JSON.stringify(inputResponses));
  for (const action of ['decline', 'cancel', 'later'])
    t.match(await ask({ inputResponses: { login: { action } } }), TEXT, action);
  for (const capabilities of [
    {},
    { elicitation: {} },
    { elicitation: { form: {} } },
    { elicitation: { url: 1 } },
  ])
    t.match(await ask({}, capabilities), TEXT, JSON.stringify(capabilities));
  t.match(await ask(ACCEPTED, {}), TEXT, 'nor does such a client wait');
  account.login = loginOf(1);
  t.match(await ask(), ANSWERED);
  t.match(await ask(ACCEPTED), ANSWERED, 'the person was quicker than the client');
});

t.test('login by address: a call waits until the person is back, and 45 s at most', async (t) => {
  const { ask, account, look, untilWaiting, time, mcp } = await start(t);
  const answered = ask(ACCEPTED);
  await untilWaiting(1);
  look();
  await untilWaiting(1);
  account.login = loginOf(1);
  look();
  t.match(await answered, ANSWERED);
  account.login = undefined;
  const late = ask(ACCEPTED);
  await untilWaiting(1);
  time.nowMs += 44_999;
  look();
  await untilWaiting(1);
  time.nowMs += 1;
  look();
  t.match(await late, TEXT);
  t.same(
    mcp.audit.map(({ fields }) => fields['outcome']),
    ['ok', 'denied'],
    'one record a call',
  );
});

t.test('login by address: a call whose session ends while it waits is not sent', async (t) => {
  const { ask, account, look, untilWaiting } = await start(t);
  const answered = ask(ACCEPTED);
  await untilWaiting(1);
  account.isLive = false;
  account.login = loginOf(1);
  look();
  t.match(await answered, TEXT);
});

t.test('login by address: an account that cannot be asked for a while does not end the wait', async (t) => {
  const { ask, account, look, untilWaiting } = await start(t);
  const answered = ask(ACCEPTED);
  await untilWaiting(1);
  account.fault = new GatewayError('JournalUnavailable');
  look();
  await untilWaiting(1);
  account.fault = undefined;
  account.login = loginOf(1);
  look();
  t.match(await answered, ANSWERED);
});

t.test('login by address: a token that the server refused is waited out, not taken again', async (t) => {
  const { ask, account, look, untilWaiting, upstream } = await start(t);
  account.login = loginOf(1);
  upstream.onRequest = (request, response) => {
    if (request.headers.authorization !== 'Bearer token-1') return false;
    response.writeHead(401).end();
    return true;
  };
  const answered = ask(ACCEPTED);
  await untilWaiting(1);
  look();
  await untilWaiting(1);
  account.login = loginOf(2);
  look();
  t.match(await answered, ANSWERED);
});

t.test(
  'login by address: four calls of a person wait; the next one gets the text, and is counted',
  async (t) => {
    const { ask, account, look, untilWaiting, servers } = await start(t);
    const waiting = Array.from({ length: 4 }, () => ask(ACCEPTED));
    await untilWaiting(4);
    const personal = () => servers.links[0]?.personal;
    t.equal(personal()?.refused, 0);
    t.match(await ask(ACCEPTED), TEXT);
    t.equal(personal()?.refused, 1);
    account.login = loginOf(1);
    look();
    for (const answer of await Promise.all(waiting)) t.match(answer, ANSWERED);
  },
);

t.test('login by address: a caller that leaves, and a server that is removed, end the wait', async (t) => {
  const { mcp, ask, untilWaiting, servers, waits } = await start(t);
  const stop = new AbortController();
  const params = {
    name: 'up_any',
    ...ACCEPTED,
    _meta: { [VERSION_KEY]: VERSION, [CAPABILITIES_KEY]: { elicitation: { url: {} } } },
  };
  const left = fetch(`${mcp.http.url}/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${TOKENS.McpVerified}`,
      'mcp-protocol-version': VERSION,
      'mcp-method': 'prompts/get',
      'mcp-name': 'up_any',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'prompts/get', params }),
    signal: stop.signal,
  });
  await untilWaiting(1);
  stop.abort();
  await t.rejects(left);
  while (waits().length > 0) await setImmediate();
  const other = ask(ACCEPTED);
  await untilWaiting(1);
  const { personal } = servers.links[0] ?? {};
  servers.follow({});
  t.match(await other, TEXT);
  t.equal(
    await personal?.connected('1842001', undefined, () => undefined),
    false,
    'nor does a later one wait',
  );
  t.same(waits(), []);
});
