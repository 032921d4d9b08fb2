/** The modules of examples/ behind the real program: two tools, a REST call, an event, and the caller's identity. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { parse } from 'jsonc-parser';
import t, { type Test } from 'tap';
import { bearerOf, callTool, expectOk, type Json, request, signUp, updateKey } from '../../kit/agent.ts';
import { pickPort } from '../../kit/free-port.ts';
import { launchFor, plainEnvironment } from '../../kit/launch.ts';
import { lacking } from '../support/programs/tools.ts';

t.setTimeout(120_000);

const CONFIGURATION = parse(readFileSync('examples/gatehouse.jsonc', 'utf8'));

/** Ends the module when standard input ends, so that it does not outlive this process; ends with the module. */
const TIED_TO_STDIN = 'exec 3<&0; "$0" "$@" & module=$!; (read -r _ <&3; kill $module) & wait $module';
/** An event that has not arrived by then is lost. */
const EVENT_TIMEOUT_MS = 30_000;

async function startModule(
  t: Test,
  command: readonly string[],
  environment: Record<string, string>,
): Promise<void> {
  const child = spawn('/bin/sh', ['-c', TIED_TO_STDIN, ...command], {
    env: plainEnvironment(environment),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.stdin.end();
    await exited;
  });
  const [line] = await Promise.race([once(createInterface(child.stdout), 'line'), exited]);
  t.equal(line, `module at http://127.0.0.1:${environment['PORT']}`);
}

/** The first event of a stream whose type is `type`. */
async function nextEvent(response: Response, type: string): Promise<Json> {
  let text = '';
  for await (const bytes of response.body ?? []) {
    text += Buffer.from(bytes).toString();
    const [, data] = new RegExp(`^event: ${type}\\ndata: (.+)\\n`, 'm').exec(text) ?? [];
    if (data !== undefined) return JSON.parse(data);
  }
  throw new Error(`the stream ended without ${type}: ${text}`);
}

async function callBothTools(t: Test): Promise<void> {
  const person = await signUp(gateway.url);
  const cookie = { Cookie: person.cookie };
  expectOk('update_key', await updateKey(gateway.url, person, { mcpAccess: true }));
  const bearer = await bearerOf(gateway.url, person.key);
  const signal = AbortSignal.timeout(EVENT_TIMEOUT_MS);
  const stream = await fetch(`${gateway.url}/auth/v1/events`, { headers: cookie, signal });
  const call = async (name: string, values: object) => {
    const answer = expectOk(name, await callTool(gateway.url, bearer, name, values));
    return JSON.parse(String(answer.json['result']?.['content']?.['0']?.['text']));
  };
  const order = { id: '1', userId: person.userId, item: 'tea', amount: 2, by: 'McpVerified' };
  t.same(await call('orders_create', { item: 'tea', amount: 2 }), { result: order }, 'identity by headers');
  t.same(await call('orders_find', { item: 'te' }), { result: { orders: [order] } });
  t.same(await call('orders_find', { item: 'coffee' }), { result: { orders: [] } });
  const event = await nextEvent(stream, 'OrderCreated');
  t.match(event, { module: 'core', type: 'OrderCreated', data: order });
  await stream.body?.cancel().catch(() => undefined);
  const headers = { ...cookie, 'X-Crm': '1' };
  const rest = expectOk('REST', await request(`${gateway.url}/core/v1/orders/find`, { headers }));
  t.same(rest.json, { result: { orders: [order] } }, 'a client cannot name another user');
  const other = await signUp(gateway.url);
  const none = await request(`${gateway.url}/core/v1/orders/find`, { headers: { Cookie: other.cookie } });
  t.same(none.json, { result: { orders: [] } }, 'another user has no order');
}

const port = await pickPort();
const Modules = { core: { ...CONFIGURATION.Modules.core, url: `http://127.0.0.1:${port}` } };
/** In front of one module after the other, on the same port. */
const gateway = await launchFor(t, { configuration: { ...CONFIGURATION, Modules } });

async function serve(t: Test, command: readonly string[]): Promise<void> {
  const { key } = CONFIGURATION.Modules.core;
  await startModule(t, command, { PORT: String(port), MODULE_KEY: key, GATEWAY: gateway.internal });
  await callBothTools(t);
}

t.test('examples: module.mjs serves two tools, pushes an event and reads who calls', async (t) => {
  await serve(t, [process.execPath, 'examples/module.mjs']);
});

t.test(
  'examples: module.py serves two tools, pushes an event and reads who calls',
  { skip: lacking('Python') },
  async (t) => {
    await serve(t, ['python3', 'examples/module.py']);
  },
);
