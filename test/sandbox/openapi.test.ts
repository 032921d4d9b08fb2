/** docs/modules.openapi.json against the sandbox and the tools: what is described is what is served and called. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { compileJsonSchema } from '../../src/domain/schema.ts';
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import { createChat } from '../../src/sandbox/chat.ts';
import { startSandbox } from '../../src/sandbox/start.ts';
import { createWallet } from '../../src/sandbox/wallet.ts';

type Schema = Record<string, unknown>;

interface Operation {
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: { '200': { content: Record<string, { schema: Schema }> } };
}

interface Description {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

const file = new URL('../../../docs/modules.openapi.json', import.meta.url);
const description = JSON.parse(await readFile(file, 'utf8')) as Description;
const JSON_TYPE = 'application/json';

/** Faults of a value by a schema of the description, whose references start at its root. */
function faultsOf(schema: Schema | undefined, value: unknown): unknown[] {
  if (schema === undefined) return ['there is no schema'];
  return compileJsonSchema({ ...schema, components: description.components }).faults(value);
}

function operation(method: string, path: string): Operation | undefined {
  return description.paths[path]?.[method.toLowerCase()];
}

t.test(
  'modules.openapi.json: describes each endpoint of the sandbox, and none that is not there',
  async (t) => {
    const served = [createWallet(), createChat()].flatMap(({ endpoints }) =>
      endpoints.map(({ method, path }) => `${method} ${path}`),
    );
    const described = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    t.same(described.sort(), [...served, 'GET /events'].sort());
  },
);

t.test('modules.openapi.json: every wallet tool calls an endpoint that is described', async (t) => {
  const tools = Object.entries(BUILT_IN.tools).filter(([, row]) => row.endpoint?.startsWith('wallet:'));
  t.equal(tools.length, 7);
  for (const [name, { endpoint, method }] of tools) {
    const found = operation(method ?? 'GET', (endpoint ?? '').slice('wallet:'.length));
    t.match(found, { operationId: name });
  }
});

t.test('modules.openapi.json: the answers of the sandbox fit it, refusals too', async (t) => {
  const dataPath = await mkdtemp(join(tmpdir(), 'sandbox-'));
  const sandbox = await startSandbox({ dataPath });
  t.teardown(async () => {
    await sandbox.close();
    await rm(dataPath, { recursive: true, force: true });
  });
  const call = async (
    method: string,
    path: string,
    body?: object,
    crm: string | null = '7',
  ): Promise<unknown> => {
    const response = await fetch(`${sandbox.modules[path.startsWith('/chat') ? 'chat' : 'wallet']}${path}`, {
      method,
      headers: { ...(crm === null ? {} : { 'x-crm': crm }), 'content-type': JSON_TYPE },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { result?: { id?: string } };
    const described = operation(method, path.replace(/\?.*/, ''));
    if (body !== undefined)
      t.same(faultsOf(described?.requestBody?.content[JSON_TYPE]?.schema, body), [], `${path} request`);
    t.equal(response.status, 200, path);
    t.same(faultsOf(described?.responses['200'].content[JSON_TYPE]?.schema, answer), [], path);
    return answer.result?.id;
  };
  await call('GET', '/wallet/v1/info/get', undefined, '8');
  await call('GET', '/wallet/v1/info/get');
  const transfer = { currency: 'DEMO', amount: '1.50', toUserId: '8', tag: 'a', externalId: '1' };
  const id = await call('POST', '/wallet/v1/transfers/create', transfer);
  await call('POST', '/wallet/v1/withdrawals/create', {
    currency: 'GATE',
    amount: '1',
    address: 'gate1outside',
  });
  for (const path of [
    'balance/get',
    'balance/get?currency=GATE',
    'addresses/list',
    `transactions/get?id=${id}`,
  ]) {
    await call('GET', `/wallet/v1/${path}`);
  }
  for (const query of ['', '?limit=1', `?before=${id}`, `?after=${id}&currency=GATE`]) {
    await call('GET', `/wallet/v1/transactions/list${query}`);
  }
  await call('GET', '/chat/v1/chats/list');
  await call('POST', '/chat/v1/messages/send', { chatId: '1', text: 'hello' });
  await call('GET', '/chat/v1/chats/list');
  await call('GET', '/chat/v1/messages/list?chatId=1');
  await call('GET', '/chat/v1/members/list?chatId=1');
  await call(
    'POST',
    '/chat/v1/codes/deliver',
    { channel: 'email', address: 'a@example.com', code: '123456' },
    null,
  );
  await call('GET', '/events?limit=10', undefined, null);
  const refusal = await fetch(`${sandbox.url}/wallet/v1/info/get`);
  t.same(faultsOf(description.components.schemas['Error'], await refusal.json()), []);
  const entry = { currency: 'DEMO', balance: '12,5', available: '1.00', locked: '0.00', precision: 2 };
  const wrong = { result: { balances: [entry] } };
  const balances = operation('GET', '/wallet/v1/balance/get')?.responses['200'].content[JSON_TYPE]?.schema;
  t.match(
    faultsOf(balances, wrong),
    [{ path: '/result/balances/0/balance' }],
    'and the check finds what is wrong',
  );
});
