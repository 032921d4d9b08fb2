/** Cancellations and ended sessions of /mcp between two nodes: the client sends its next message to the other one. */
import t, { type Test } from 'tap';
import { type CallOthers, NodeSignals } from '../../../src/io/mcp/node-signals.ts';
import { promiseOf } from '../../support/http.ts';
import {
  type BackendAnswer,
  type McpFixture,
  SESSION_IDS,
  sessionOf,
  startMcp,
  TOKENS,
} from '../../support/mcp.ts';

interface Pair {
  readonly at: McpFixture;
  readonly other: McpFixture;
  readonly said: string[];
}

/** Two nodes; each calls the verbs of the other. `answer`: resolves when the other node has answered. */
async function startPair(t: Test, backend: () => BackendAnswer, answer = async () => {}): Promise<Pair> {
  const said: string[] = [];
  const toOther: CallOthers = async (verb, ...args) => {
    said.push(`${verb} ${args.length}`);
    otherSignals.verbs[verb](...args);
    await answer();
  };
  const otherSignals = new NodeSignals();
  const at = await startMcp({ backend, signals: new NodeSignals(toOther) });
  const other = await startMcp({ backend, signals: otherSignals });
  t.teardown(async () => {
    await at.close();
    await other.close();
  });
  return { at, other, said };
}

const CALL = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'wallet_get_balance' } };
const OWN_ID = SESSION_IDS.issue(sessionOf('McpVerified'));

function send({ http }: McpFixture, message: object, token: string, sessionId = OWN_ID): Promise<Response> {
  const headers = {
    'Content-Type': 'application/json',
    Authorization: `Bearer ${token}`,
    'Mcp-Session-Id': sessionId,
  };
  return fetch(`${http.url}/mcp`, { method: 'POST', headers, body: JSON.stringify(message) });
}

const cancelled = (requestId: unknown) => ({
  jsonrpc: '2.0',
  method: 'notifications/cancelled',
  params: { requestId },
});

// covers C14
t.test('a cancellation that reaches another node stops the call where it runs', async (t) => {
  const { promise: arrived, resolve: reached } = promiseOf();
  const { at, other, said } = await startPair(t, () => {
    reached();
    return 'never';
  });
  let isOver = false;
  const call = send(other, CALL, TOKENS.McpVerified).then((answer) => {
    isOver = true;
    return answer;
  });
  await arrived;
  for (const [message, token, sessionId] of [
    [cancelled(7), TOKENS.other, OWN_ID],
    [cancelled(7), TOKENS.McpVerified, 'B'.repeat(40)],
    [cancelled('7'), TOKENS.McpVerified, OWN_ID],
  ] as const)
    await send(at, message, token, sessionId);
  t.equal(isOver, false, 'no one else can cancel it');
  await send(at, cancelled(7), TOKENS.McpVerified);
  await other.asked[0]?.gone;
  t.match(await (await call).json(), { error: { code: -32000, message: /cancelled/ } });
  t.strictSame(
    said,
    Array(4).fill('cancelCall 2'),
    'each was passed on, and the right one alone had an effect',
  );
});

t.test('a cancellation of a call on the same node is not passed on', async (t) => {
  const { promise: arrived, resolve: reached } = promiseOf();
  const { at, said } = await startPair(t, () => {
    reached();
    return 'never';
  });
  const call = send(at, CALL, TOKENS.McpVerified);
  await arrived;
  await send(at, cancelled(7), TOKENS.McpVerified);
  t.match(await (await call).json(), { error: { code: -32000 } });
  t.strictSame(said, []);
});

// covers C14
t.test('an Mcp-Session-Id that was ended at one node is 404 at the other before the answer', async (t) => {
  const body = '{"result":{}}';
  const { promise: answered, resolve: answer } = promiseOf();
  const { at, other, said } = await startPair(
    t,
    () => ({ body }),
    () => answered,
  );
  t.equal((await send(other, CALL, TOKENS.McpVerified)).status, 200);
  const headers = { Authorization: `Bearer ${TOKENS.McpVerified}`, 'Mcp-Session-Id': OWN_ID };
  let isAnswered = false;
  const ending = fetch(`${at.http.url}/mcp`, { method: 'DELETE', headers }).then((given) => {
    isAnswered = true;
    return given;
  });
  t.equal((await send(at, CALL, TOKENS.McpVerified, 'C'.repeat(40))).status, 200);
  t.equal(isAnswered, false, 'the answer waits for the other node');
  answer();
  t.equal((await ending).status, 204);
  for (const node of [at, other]) t.equal((await send(node, CALL, TOKENS.McpVerified)).status, 404);
  t.strictSame(said, ['endMcpSession 1']);
});

// covers S74
t.test('an id that was not issued here is ended nowhere and not passed on', async (t) => {
  const { at, said } = await startPair(t, () => ({ body: '{"result":{}}' }));
  for (const id of ['of my own', 'A'.repeat(40)]) {
    const headers = { Authorization: `Bearer ${TOKENS.McpVerified}`, 'Mcp-Session-Id': id };
    t.equal((await fetch(`${at.http.url}/mcp`, { method: 'DELETE', headers })).status, 404);
  }
  t.strictSame(said, []);
});

t.test('arguments that are no texts are refused', (t) => {
  const { verbs } = new NodeSignals();
  t.throws(() => verbs.cancelCall('scope', 7), TypeError);
  t.throws(() => verbs.endMcpSession(undefined), TypeError);
  t.end();
});
