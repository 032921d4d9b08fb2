/** docs/modules.openapi.json against the sandbox and the tools: what is described is what is served and called. */
import { readFile } from 'node:fs/promises';
import t from 'tap';
import { closeAfter } from '../../kit/close-after.ts';
import { compileJsonSchema } from '../../src/domain/schema.ts';
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import { createModules } from '../../src/sandbox/modules.ts';
import { startSandbox } from '../../src/sandbox/start.ts';

type Schema = Record<string, unknown>;

interface Parameter {
  $ref?: string;
  name?: string;
  in?: string;
}

interface Operation {
  operationId?: string;
  parameters?: Parameter[];
  requestBody?: { content: Record<string, { schema: Schema }> };
  responses: { '200': { content: Record<string, { schema: Schema }> } };
}

interface Description {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema>; parameters: Record<string, Parameter> };
}

const file = new URL('../../../docs/modules.openapi.json', import.meta.url);
const description = JSON.parse(await readFile(file, 'utf8')) as Description;
const DEVICE = '6f1c2b8e-0d53-4a07-9a51-3f6a0c9d2e10';
const EVENTS = '/events?limit=10';
const JSON_TYPE = 'application/json';

/** Faults of a value by a schema of the description, whose references start at its root. */
function faultsOf(schema: Schema | undefined, value: unknown): unknown[] {
  if (schema === undefined) return ['there is no schema'];
  return compileJsonSchema({ ...schema, components: description.components }).faults(value);
}

function operation(method: string, path: string): Operation | undefined {
  return description.paths[path]?.[method.toLowerCase()];
}

/** Names of the parameters of an operation that travel in the query. */
function queryNames({ parameters = [] }: Operation = { responses: { '200': { content: {} } } }): string[] {
  const found = parameters.map(
    (one) => description.components.parameters[one.$ref?.split('/').at(-1) ?? ''] ?? one,
  );
  return found.filter((one) => one.in === 'query').map((one) => one.name ?? '');
}

t.test(
  'modules.openapi.json: describes each endpoint of the sandbox, and none that is not there',
  async (t) => {
    const served = [...createModules().byName.values()].flatMap(({ endpoints }) =>
      endpoints.map(({ method, path }) => `${method} ${path}`),
    );
    const described = Object.entries(description.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    t.same(described.sort(), [...served, 'GET /events'].sort());
  },
);

t.test('modules.openapi.json: every tool of a module calls an endpoint that is described', async (t) => {
  const tools = Object.entries(BUILT_IN.tools).filter(([, row]) => !row.endpoint.startsWith('gateway:'));
  t.ok(tools.length > 7);
  const faults: string[] = [];
  for (const [name, { endpoint, method, inputSchema }] of tools) {
    const [, module, path] = /^([a-z]+):(.*)$/.exec(endpoint) ?? [];
    if (!path?.startsWith(`/${module}/v1/`)) faults.push(`${name}: ${endpoint} is not under its module`);
    const found = operation(method, path ?? '');
    if (found?.operationId !== name) faults.push(`${name}: its operation is ${found?.operationId}`);
    const inBody = found?.requestBody?.content[JSON_TYPE]?.schema['properties'] ?? {};
    const described = method === 'POST' ? Object.keys(inBody) : queryNames(found);
    for (const argument of Object.keys(inputSchema['properties'] as object))
      if (argument !== 'device_guid' && !described.includes(argument)) faults.push(`${name}: ${argument}`);
  }
  t.same(faults, []);
});

t.test('modules.openapi.json: the answers of the sandbox fit it, refusals too', async (t) => {
  const sandbox = closeAfter(t, await startSandbox({ dataPath: t.testdir({}) }));
  const faults: unknown[] = [];
  const call: Call = async (method, path, body, caller = '7', field = 'id') => {
    const base = path === EVENTS ? sandbox.modules.wallet : sandbox.url;
    const response = await fetch(`${base}${path}`, {
      method,
      headers: { ...callerHeaders(caller), 'content-type': JSON_TYPE },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { result?: Record<string, unknown> };
    const described = operation(method, path.replace(/\?.*/, ''));
    const requestSchema = described?.requestBody?.content[JSON_TYPE]?.schema;
    const found = [
      ...(body === undefined ? [] : faultsOf(requestSchema, body)),
      ...(response.status === 200 ? [] : [`status ${response.status}`]),
      ...faultsOf(described?.responses['200'].content[JSON_TYPE]?.schema, answer),
    ];
    if (found.length > 0) faults.push([`${method} ${path}`, ...found]);
    return answer.result?.[field];
  };
  await call('GET', '/wallet/v1/info/get', undefined, '8');
  await call('GET', '/wallet/v1/info/get');
  const transfer = { currency: 'DEMO', amount: '1.50', toUserId: '8', tag: 'a', externalId: '1' };
  const id = await call('POST', '/wallet/v1/transfers/create', transfer);
  const withdrawal = { currency: 'GATE', amount: '1', address: 'gate1outside' };
  await call('POST', '/wallet/v1/withdrawals/create', withdrawal);
  const reads = ['balance/get', 'balance/get?currency=GATE', 'addresses/list', `transactions/get?id=${id}`];
  for (const path of reads) await call('GET', `/wallet/v1/${path}`);
  for (const query of ['', '?limit=1', `?before=${id}`, `?after=${id}&currency=GATE`]) {
    await call('GET', `/wallet/v1/transactions/list${query}`);
  }
  await callChat(call);
  await call('POST', '/core/v1/notices/create', { text: 'hello', toUserId: '8' });
  await call('POST', '/core/v1/notices/create', { text: 'hello' });
  await call('GET', '/core/v1/notices/list?limit=1');
  await call('GET', '/core/v1/notices/list');
  await callMarkets(call);
  await call('GET', EVENTS, undefined, null);
  await callPayments(call);
  t.same(faults, []);
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

type Call = (
  method: string,
  path: string,
  body?: object,
  caller?: string | null,
  field?: string,
) => Promise<unknown>;

/** A user id, the scope of a code, or null for the gateway itself. */
function callerHeaders(caller: string | null): Record<string, string> {
  if (caller === null) return {};
  return caller.startsWith('Capability:')
    ? { 'x-scopes': caller, 'x-device-guid': DEVICE }
    : { 'x-crm': caller };
}

async function callPayments(call: Call): Promise<void> {
  const at = '/payments/v1';
  const payer = 'Capability:wallet';
  const open = async (currency: string): Promise<unknown> => {
    const order = { currency, amount: '5', description: 'tea', lifetimeSeconds: 60 };
    return call('POST', `${at}/orders/create`, order, '7', 'code');
  };
  const code = await open('DEMO');
  await call('GET', `${at}/capability/resolve?code=${code}`, undefined, null);
  const p2p = await call('POST', `${at}/gate/pay_p2p`, { code, terminalId: '2' }, payer);
  await call('GET', `${at}/gate/order_info?code=${code}`, undefined, payer);
  await call('POST', `${at}/gate/cancel_p2p`, { code }, payer);
  const again = await call('POST', `${at}/gate/pay_p2p`, { code }, payer);
  await call('POST', `${at}/payments/confirm`, { paymentId: again });
  const card = { cardNumber: '4242 4242 4242 4242', expiry: '09/31', cvc: '123' };
  await call('POST', `${at}/gate/pay_card`, { code: await open('DEMO'), ...card }, payer);
  const coins = await open('GATE');
  await call('POST', `${at}/gate/pay_crypto`, { code: coins }, payer);
  await call('POST', `${at}/gate/cancel_crypto`, { code: coins }, payer);
  await call('POST', `${at}/gate/pay_crypto`, { code: coins }, payer);
  await call('POST', `${at}/gate/confirm_crypto`, { code: coins, txHash: 'ab'.repeat(32) }, payer);
  await call('GET', `${at}/gate/terminals?code=${coins}`, undefined, payer);
  const small = { currency: 'DEMO', amount: '1', externalId: '3' };
  const orderId = await call('POST', `${at}/orders/create`, small);
  for (const path of [
    `orders/info?id=${orderId}`,
    'terminals/list?currency=DEMO',
    `payments/list?limit=2`,
    'payments/list?state=completed',
    `payments/get?id=${p2p}`,
  ])
    await call('GET', `${at}/${path}`);
}

async function callMarkets(call: Call): Promise<void> {
  const at = '/markets/v1';
  const swap = { from: 'DEMO', to: 'GATE', amount: '10', receiveMin: '1', externalId: '7' };
  await call('POST', `${at}/swaps/create`, swap);
  const roomId = await call('POST', `${at}/rooms/create`, { name: 'Mill', pair: 'GATE-DEMO' });
  await call('POST', `${at}/rooms/join`, { roomId }, '8');
  const order = { pair: 'GATE-DEMO', side: 'sell', price: '2.00', amount: '3' };
  const orderId = await call('POST', `${at}/orders/create`, { ...order, roomId, externalId: '9' });
  await call('POST', `${at}/orders/cancel`, { orderId });
  await call('POST', `${at}/orders/create`, order);
  await call('POST', `${at}/orders/create`, { ...order, side: 'buy', amount: '1' }, '8');
  for (const path of [
    'rates/list?pair=GATE-DEMO',
    'swaps/quote?from=DEMO&to=GATE&amount=1',
    'trades/info?pair=GATE-DEMO',
    'candles/list?pair=GATE-DEMO',
    'assets/list',
    'networks/list?currency=DEMO',
    'rooms/list?joined=true',
    `orders/list?limit=1`,
    `orders/list?roomId=${roomId}`,
  ])
    await call('GET', `${at}/${path}`);
  await call('POST', `${at}/rooms/close`, { roomId });
}

async function callChat(call: Call): Promise<void> {
  const at = '/chat/v1';
  const guest = 'Capability:chat';
  await call('GET', `${at}/chats/list`, undefined, '8');
  await call('GET', `${at}/chats/list?archived=false`);
  const chatId = await call('POST', `${at}/chats/create`, { name: 'Climbing', memberIds: ['8'] });
  await call('POST', `${at}/members/add`, { chatId, userId: '8' });
  const other = await call('POST', `${at}/chats/create_private`, { userId: '8' });
  const code = await call('POST', `${at}/invites/renew`, { chatId }, '7', 'code');
  const messageId = await call('POST', `${at}/messages/send`, { chatId, text: 'hello' });
  await call('POST', `${at}/messages/send`, { chatId, text: 'so', replyToId: messageId }, '8');
  await call('POST', `${at}/messages/edit`, { messageId, text: 'hello all' });
  await call('POST', `${at}/messages/pin`, { messageId, pinned: true });
  const personal = await call('POST', `${at}/chats/personal`, { userId: '7' }, null, 'chatId');
  const file = { userId: '7', chatId, uploadKey: 'a', name: 'notes.txt', text: 'see here', sizeBytes: 5 };
  const fileId = await call('POST', `${at}/files/create`, file, null, 'fileId');
  const complete = { fileId, sizeBytes: 5, crc32: 907_060_870, content: 'hello' };
  await call('POST', `${at}/files/complete`, complete, null);
  await call('GET', `${at}/files/describe?fileId=${fileId}&userId=8`, undefined, null);
  const lost = { userId: '7', chatId: personal, uploadKey: 'b', name: 'x', crc32: '0xcafe' };
  await call('POST', `${at}/files/create`, lost, null, 'fileId');
  await call('POST', `${at}/files/cancel`, { uploadKey: 'b' }, null);
  await call('GET', `${at}/capability/resolve?code=${code}`, undefined, null);
  const said = await call('POST', `${at}/anon/send_message`, { code, text: 'hi', name: 'Ada' }, guest);
  await call('POST', `${at}/anon/edit_message`, { code, messageId: said, text: 'hey' }, guest);
  for (const path of ['info', 'members', 'messages', 'pinned', 'files'])
    await call('GET', `${at}/anon/${path}?code=${code}`, undefined, guest);
  for (const path of ['chats/info', 'members/list', 'messages/list', 'messages/pinned', 'files/list'])
    await call('GET', `${at}/${path}?chatId=${chatId}`);
  for (const path of ['friends/list', 'invites/list', 'messages/unread', `files/info?fileId=${fileId}`])
    await call('GET', `${at}/${path}`);
  await call('GET', `${at}/files/text?fileId=${fileId}`);
  await call('POST', `${at}/messages/mark_read`, { chatId });
  await call('POST', `${at}/anon/soft_delete_message`, { code, messageId: said }, guest);
  await call('POST', `${at}/anon/leave`, { code }, guest);
  await call('POST', `${at}/messages/soft_delete`, { messageId });
  await call('POST', `${at}/messages/hard_delete`, { messageId });
  await call('POST', `${at}/chats/archive`, { chatId, archived: true });
  await call('POST', `${at}/chats/leave`, { chatId: other });
  await call('POST', `${at}/chats/hard_delete`, { chatId });
  const delivery = { channel: 'email', address: 'a@example.com', code: '12345678' };
  await call('POST', `${at}/codes/deliver`, delivery, null);
}
