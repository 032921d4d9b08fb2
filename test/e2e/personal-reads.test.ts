/**
 * The program in production mode: access with a public key alone, by tool, resource and REST, before and after reloads
 * of `McpBasicPersonalReads`.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  basicBearerOf,
  bearerOf,
  callTool,
  expectOk,
  newKey,
  request,
  rpc,
  signUp,
  signUpAgent,
} from '../../kit/agent.ts';
import { HIGH_LIMITS, launchFor, type RunningGateway } from '../../kit/launch.ts';

t.setTimeout(120_000);

const WARNING = /McpBasicPersonalReads is true in production mode/g;

/** True if the balance can be listed, called, read and proxied, and a file id be asked for; all must agree. */
async function balanceIsOpen({ url }: RunningGateway, bearer: string): Promise<boolean | string> {
  const message = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params });
  const listed = await rpc(url, bearer, message('tools/list'));
  const called = await callTool(url, bearer, 'wallet_get_balance');
  const read = await rpc(url, bearer, message('resources/read', { uri: 'gatehouse://wallet/balance' }));
  const headers = { Authorization: `Bearer ${bearer}` };
  const proxied = await request(`${url}/wallet/v1/balance/get`, { headers });
  const file = await request(`${url}/auth/v2/file/1`, { headers });
  const verdicts = [
    listed.text.includes('"wallet_get_balance"'),
    Number(called.json['error']?.['code'] ?? 0) !== -32001,
    Number(read.json['error']?.['code'] ?? 0) !== -32001,
    proxied.status === 200,
    file.status === 404,
  ];
  const [first] = verdicts;
  return verdicts.every((one) => one === first) ? first === true : verdicts.join();
}

// covers R1 R76 S98
t.test('production: a public key alone reads public data; a reload opens and closes the rest', async (t) => {
  const admin = newKey();
  const configuration = { Settings: HIGH_LIMITS, Production: true, Admin: { publicKeys: [admin.publicKey] } };
  const gateway = await launchFor(t, { configuration, args: ['--sandbox'] });
  const warnings = () => gateway.output().stderr.match(WARNING)?.length ?? 0;
  const person = await signUpAgent(gateway.url);
  const basic = await basicBearerOf(gateway.url, person.key);
  const verified = await bearerOf(gateway.url, person.key);
  t.equal(await balanceIsOpen(gateway, basic), false);
  t.equal(await balanceIsOpen(gateway, verified), true, 'a McpVerified session reads it');
  t.match(await callTool(gateway.url, basic, 'market_get_rates'), { json: { result: { content: Array } } });
  const rates = `${gateway.url}/markets/v1/rates/list`;
  t.equal((await request(rates, { headers: { Authorization: `Bearer ${basic}` } })).status, 200);
  t.equal(warnings(), 0);

  const file = join(gateway.dataPath, '..', 'gatehouse.json');
  const cookie = (await signUp(gateway.url, admin)).cookie;
  const reloaded = async (change: object) => {
    writeFileSync(file, JSON.stringify({ ...configuration, ...change }));
    const headers = { Cookie: cookie };
    expectOk('reload', await request(`${gateway.url}/ProxyAdmin/api/reload`, { headers, body: {} }));
    return balanceIsOpen(gateway, basic);
  };
  t.equal(await reloaded({ McpBasicPersonalReads: true }), true);
  t.equal(warnings(), 1);
  t.equal(await reloaded({ McpBasicPersonalReads: false }), false);
  t.equal(await reloaded({ Production: false }), false, 'production mode is fixed at the start');
  t.equal(warnings(), 1);
  writeFileSync(file, JSON.stringify({ ...configuration, McpBasicPersonalReads: true }));
  gateway.process.kill('SIGHUP');
  await gateway.said(/(?:McpBasicPersonalReads is true in production mode[\s\S]*){2}/);
  t.equal(await balanceIsOpen(gateway, basic), true, 'SIGHUP does the same');
});

t.test('outside production: McpBasic reads balances unless the configuration forbids it', async (t) => {
  const configuration = { Settings: HIGH_LIMITS };
  const gateway = await launchFor(t, {
    configuration: { ...configuration, McpBasicPersonalReads: false },
    args: ['--sandbox'],
  });
  const bearer = await basicBearerOf(gateway.url, (await signUpAgent(gateway.url)).key);
  t.equal(await balanceIsOpen(gateway, bearer), false);
  writeFileSync(join(gateway.dataPath, '..', 'gatehouse.json'), JSON.stringify(configuration));
  gateway.process.kill('SIGHUP');
  await gateway.said(/catalog reloaded/);
  t.equal(await balanceIsOpen(gateway, bearer), true);
  t.notMatch(gateway.output().stderr, WARNING);
});
