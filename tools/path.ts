/** The steps of the tour: what a person and an agent send, and what must come back. */
import { fetchByCode, files, type KeptFile } from './files.ts';
import { everyGroup } from './groups.ts';
import { type Guide, StepFailed } from './guide.ts';
import {
  allowMcp,
  balanceOf,
  CURRENCY,
  callTool,
  centsOf,
  keysOf,
  listOf,
  logInAgent,
  type Person,
  rpc,
  signUp,
  text,
  toolJson,
} from './steps.ts';

/** Credentials with which the path continues after a restart. */
export interface Agent {
  readonly cookie: string;
  readonly bearer: string;
  readonly userId: string;
  /** Balance after the transfer, decimal. */
  readonly balance: string;
  readonly file: KeptFile;
}

const AMOUNT = '12.50';

export async function pathOfAnAgent(guide: Guide): Promise<Agent> {
  await lookAround(guide);
  guide.title('Sign up: a new Ed25519 key signs the challenge, and becomes the account');
  const person = await signUp(guide);
  guide.title('The keys of the account: the new one may not be used for MCP yet');
  await keysOf(guide, person, false);
  guide.title('Allow the key for MCP');
  await allowMcp(guide, person);
  guide.title('The agent logs in: the key signs the time, 8 bytes little-endian');
  const bearer = await logInAgent(guide, person.key);
  await meet(guide, bearer);
  guide.title('What is in the wallet?');
  const before = await balanceOf(guide, bearer);
  guide.title('A second person, in the same way');
  const other = await signUp(guide);
  await allowMcp(guide, other);
  const otherBearer = await logInAgent(guide, other.key);
  await balanceOf(guide, otherBearer);
  guide.title(`Send ${AMOUNT} ${CURRENCY} to the second person`);
  const balance = await transfer(guide, bearer, other, before);
  guide.title('It arrived');
  const received = await balanceOf(guide, otherBearer);
  guide.good(`the second person has ${received} ${CURRENCY}`);
  await resources(guide, bearer);
  await everyGroup(guide, otherBearer);
  const file = await files(guide, person);
  await refusals(guide, bearer, other);
  return { cookie: person.cookie, bearer, userId: person.userId, balance, file };
}

/** The same cookie, the same bearer and the same money after kill -9. */
export async function afterRestart(guide: Guide, agent: Agent): Promise<void> {
  guide.title('The same bearer still works, and the balance is unchanged');
  const balance = await balanceOf(guide, agent.bearer);
  if (balance !== agent.balance) throw new StepFailed(`the balance was ${agent.balance} and is ${balance}`);
  guide.good(`still ${balance} ${CURRENCY}`);
  guide.title('So does the browser session');
  await guide.ask({ path: '/auth/v1/keys/user_keys', headers: { Cookie: agent.cookie } }, (answer, fail) => {
    const [key] = listOf(answer.json['result']);
    if (text(key, 'mcpAccess') !== 'true' || text(key, 'current') !== 'true')
      fail('the key is not as it was');
  });
  guide.title('And so does the code of the file');
  await fetchByCode(guide, agent.file);
}

async function lookAround(guide: Guide): Promise<void> {
  guide.title('Is it well?');
  await guide.ask({ path: '/health' }, (answer, fail) => {
    if (text(answer.json, 'status') !== 'healthy') fail('it does not say "healthy"');
  });
  guide.title('What is it?');
  await guide.ask({ path: '/auth/v1/get_info' }, (answer, fail) => {
    if (!/^\d+\.\d+\.\d+/.test(text(answer.json, 'result', 'version'))) fail('no version');
  });
}

async function meet(guide: Guide, bearer: string): Promise<void> {
  guide.title('MCP: initialize');
  const clientInfo = { name: 'tour', version: '1.0.0' };
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo };
  const hello = await rpc(guide, bearer, 'initialize', params, (answer, fail) => {
    if (text(answer.json, 'result', 'protocolVersion') !== '2024-11-05') fail('another protocol version');
    if (answer.headers.get('mcp-session-id') === null) fail('no Mcp-Session-Id');
  });
  guide.good(
    `this is ${text(hello.json, 'result', 'serverInfo', 'name')} ${text(hello.json, 'result', 'serverInfo', 'version')}`,
  );
  const headers = { Authorization: `Bearer ${bearer}` };
  const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
  await guide.ask({ path: '/mcp', headers, body: initialized }, (answer, fail) => {
    if (answer.text !== '') fail('a notification was answered with a body');
  });
  guide.title('MCP: tools/list');
  const list = await rpc(guide, bearer, 'tools/list', {}, (answer, fail) => {
    const names = listOf(answer.json['result']?.['tools']).map((tool) => text(tool, 'name'));
    for (const name of ['wallet_get_balance', 'wallet_internal_transfer'])
      if (!names.includes(name)) fail(`${name} is not in the list`);
  });
  const names = listOf(list.json['result']?.['tools']).map((tool) => text(tool, 'name'));
  guide.good(`${names.length} tools: ${names.join(', ')}`);
}

async function transfer(guide: Guide, bearer: string, to: Person, before: string): Promise<string> {
  const left = centsOf(before) - centsOf(AMOUNT);
  let balance = '';
  const values = { currency: CURRENCY, amount: AMOUNT, toUserId: to.userId, tag: 'from the tour' };
  await callTool(guide, bearer, 'wallet_internal_transfer', values, (answer, fail) => {
    if (answer.json['result']?.['isError'] !== undefined) fail('the tool says isError');
    balance = text(toolJson(answer), 'result', 'balance');
    if (balance === '' || centsOf(balance) !== left) fail(`${before} less ${AMOUNT} cannot be "${balance}"`);
  });
  guide.good(`${balance} ${CURRENCY} are left`);
  return balance;
}

async function resources(guide: Guide, bearer: string): Promise<void> {
  guide.title('MCP: resources/list, and the first of them');
  const answer = await rpc(guide, bearer, 'resources/list', {}, (given, fail) => {
    if (!Array.isArray(given.json['result']?.['resources'])) fail('no list of resources');
  });
  const [first] = listOf(answer.json['result']?.['resources']);
  if (first === undefined) return guide.note('this gateway has none for this session');
  const uri = text(first, 'uri');
  await rpc(guide, bearer, 'resources/read', { uri }, (given, fail) => {
    const [item] = listOf(given.json['result']?.['contents']);
    if (text(item, 'uri') !== uri) fail('the contents do not carry the uri');
  });
}

/** Calls that must be refused. */
async function refusals(guide: Guide, bearer: string, to: Person): Promise<void> {
  guide.title('Without a session the same call is refused');
  const params = { name: 'wallet_get_balance', arguments: {} };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  await guide.ask({ path: '/mcp', body: call }, (answer, fail) => {
    if (text(answer.json, 'error', 'code') !== '-32001') fail('the error is not -32001');
  });
  guide.title('More than there is cannot be sent: the module refuses, and the agent can read why');
  const values = { currency: CURRENCY, amount: '1000000', toUserId: to.userId };
  await callTool(guide, bearer, 'wallet_internal_transfer', values, (answer, fail) => {
    if (answer.json['result']?.['isError']?.toString() !== 'true') fail('no isError');
  });
}
