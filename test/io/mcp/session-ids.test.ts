/** `Mcp-Session-Id` (spec 4.1): given by `initialize`, ended by DELETE of the same account, over from then on. */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { protectedEndpoint } from '../../../src/io/connect/mcp-endpoint.ts';
import { NodeSignals } from '../../../src/io/mcp/node-signals.ts';
import { EndedSessions, McpSessionIds } from '../../../src/io/mcp/session-ids.ts';
import { type McpFixture, SESSION_IDS, sessionOf, startMcp, TOKENS } from '../../support/mcp.ts';

const INITIALIZE = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}';
const PING = '{"jsonrpc":"2.0","id":2,"method":"ping"}';

function bearer(token: string | undefined): Record<string, string> {
  return token === undefined ? {} : { authorization: `Bearer ${token}` };
}

async function open(mcp: McpFixture, token?: string): Promise<string> {
  return String((await mcp.post(INITIALIZE, bearer(token))).headers.get('mcp-session-id'));
}

async function end({ http }: McpFixture, id: string, token?: string, path = '/mcp'): Promise<Response> {
  const headers = { 'mcp-session-id': id, ...bearer(token) };
  return fetch(`${http.url}${path}`, { method: 'DELETE', headers });
}

// covers R38
t.test('Mcp-Session-Id: one that its client ended is 404 from then on, others are served', async (t) => {
  const mcp = closeAfter(t, await startMcp());
  const [ended, other] = [await open(mcp), await open(mcp)];
  t.equal((await end(mcp, ended)).status, 204);
  t.equal((await end(mcp, ended)).status, 204, 'twice is no harm');
  const refused = await mcp.post(PING, { 'mcp-session-id': ended });
  t.equal(refused.status, 404);
  t.match(JSON.parse(refused.text), { jsonrpc: '2.0', error: { code: -32000, message: /initialize again/ } });
  t.equal((await mcp.post(PING, { 'mcp-session-id': other })).status, 200);
  t.equal((await mcp.post(PING, { 'mcp-session-id': 'made up' })).status, 200);
  t.equal((await mcp.post(PING)).status, 200);
});

// covers R38 S74
t.test('Mcp-Session-Id: DELETE by another account is 404 and ends nothing', async (t) => {
  const mcp = closeAfter(t, await startMcp());
  const [owner, other] = [TOKENS.McpVerified, TOKENS.other];
  const id = await open(mcp, owner);
  for (const token of [other, TOKENS.McpBasic, 'unknown', undefined]) {
    const answer = await end(mcp, id, token);
    t.equal(answer.status, 404, String(token));
    t.match(await answer.json(), { error: { code: 1004 } });
  }
  t.equal((await mcp.post(PING, { 'mcp-session-id': id })).status, 200);
  t.equal((await end(mcp, id, TOKENS['McpBasic:proven'])).status, 204, 'a later login of the account');
  t.equal((await mcp.post(PING, { 'mcp-session-id': id })).status, 404);
  const unproven = await open(mcp, TOKENS.McpBasic);
  t.equal((await end(mcp, unproven, TOKENS.McpBasic)).status, 204, 'its own');
  const ofNone = await open(mcp);
  t.equal((await end(mcp, ofNone, owner)).status, 204, 'initialized before the login');
  const ofBatch = await mcp.post(`[${INITIALIZE}]`, { authorization: `Bearer ${owner}` });
  const batchId = String(ofBatch.headers.get('mcp-session-id'));
  t.strictSame(
    [(await end(mcp, batchId, other)).status, (await end(mcp, batchId, owner)).status],
    [404, 204],
  );
});

// covers R38 S74
t.test('Mcp-Session-Id: DELETE of /connect/mcp ends ids of the account of its token alone', async (t) => {
  const mcp = closeAfter(t, await startMcp({ endpoints: [protectedEndpoint()] }));
  const own = SESSION_IDS.issue(sessionOf('McpVerified'));
  t.equal(
    (await end(mcp, SESSION_IDS.issue(sessionOf('McpVerified', '1842002')), TOKENS.connected, '/connect/mcp'))
      .status,
    404,
  );
  t.equal((await end(mcp, own, undefined, '/connect/mcp')).status, 401);
  t.equal((await end(mcp, own, TOKENS.other, '/connect/mcp')).status, 401, 'no token of this address');
  t.equal((await end(mcp, own, TOKENS.connected, '/connect/mcp')).status, 204);
});

// covers S74
t.test('Mcp-Session-Id: DELETE of one that was not issued here is 404 and is not remembered', async (t) => {
  const signals = new NodeSignals();
  const mcp = closeAfter(t, await startMcp({ signals }));
  const foreign = new McpSessionIds({ deriveKey: (_, lengthBytes) => Buffer.alloc(lengthBytes, 8) });
  const own = SESSION_IDS.issue(sessionOf('McpVerified'));
  const [first, last] = [own.at(0), own.at(-1)];
  const ids = [
    foreign.issue(sessionOf('McpVerified')),
    foreign.issue(undefined),
    `${first === 'A' ? 'B' : 'A'}${own.slice(1)}`,
    `${own.slice(0, -1)}${last === 'A' ? 'B' : 'A'}`,
    own.slice(0, -4),
    `${own}AAAA`,
    `${own}=`,
    'A'.repeat(24),
    'A'.repeat(40),
    'made up',
    'x'.repeat(400),
  ];
  for (const id of ids) t.equal((await end(mcp, id, TOKENS.McpVerified)).status, 404, id);
  t.equal(signals.ended.size, 0);
  t.equal((await end(mcp, own, TOKENS.McpVerified)).status, 204);
  t.equal(signals.ended.size, 1);
});

// covers R38
t.test('Mcp-Session-Id: the ended ones that are remembered are bounded, the oldest go first', async (t) => {
  const ended = new EndedSessions();
  const id = (number: number) => `id ${number}`;
  for (let number = 0; number <= 10_000; number += 1) ended.end(id(number));
  t.equal(ended.size, 10_000);
  t.strictSame(
    [ended.has(id(0)), ended.has(id(1)), ended.has(id(10_000)), ended.has(undefined)],
    [false, true, true, false],
  );
});

t.test(
  'Mcp-Session-Id: carries whether its client asks people by an address, for its account alone',
  async (t) => {
    const mcp = closeAfter(t, await startMcp());
    const idWith = async (capabilities: unknown, token?: string, isBatch = false) => {
      const message = { jsonrpc: '2.0', id: 1, method: 'initialize', params: { capabilities } };
      const answer = await mcp.post(JSON.stringify(isBatch ? [message] : message), bearer(token));
      return String(answer.headers.get('mcp-session-id'));
    };
    const [owner, other] = [sessionOf('McpVerified'), sessionOf('McpVerified', '1842002')];
    const url = { elicitation: { form: {}, url: {} } };
    for (const isBatch of [false, true]) {
      const id = await idWith(url, TOKENS.McpVerified, isBatch);
      t.equal(id.length, 40);
      t.equal(SESSION_IDS.asksByUrl(id, owner), true);
      t.equal(SESSION_IDS.asksByUrl(id, other), false);
      t.equal((await end(mcp, id, TOKENS.other)).status, 404);
      t.equal((await end(mcp, id, TOKENS.McpVerified)).status, 204);
    }
    t.equal(SESSION_IDS.asksByUrl(await idWith(url), owner), true, 'initialized before the login');
    for (const capabilities of [undefined, null, {}, { elicitation: {} }, { elicitation: { url: true } }])
      t.equal(SESSION_IDS.asksByUrl(await idWith(capabilities, TOKENS.McpVerified), owner), false);
    t.equal(SESSION_IDS.asksByUrl('made up', owner), false);
  },
);
