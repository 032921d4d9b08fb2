/** Applications on the program: registered, approved, used by an agent, closed; over kill -9, with their secrets. */
import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import {
  callTool,
  expectOk,
  type Json,
  newKey,
  type Person,
  request,
  rpc,
  signUp,
  signUpAgent,
} from '../../kit/agent.ts';
import { HIGH_LIMITS, launch, type RunningGateway } from '../../kit/launch.ts';

function written({ dataPath, output }: RunningGateway): Buffer[] {
  const files = readdirSync(dataPath, { recursive: true }).map((name) => join(dataPath, String(name)));
  const texts = files.filter((file) => statSync(file).isFile()).map((file) => readFileSync(file));
  return [...texts, Buffer.from(output().stdout), Buffer.from(output().stderr)];
}

t.test(
  'apps: an application is approved, used by an agent and closed, over kill -9; its API key is nowhere in clear text',
  async (t) => {
    const adminKey = newKey();
    const configuration = { Settings: HIGH_LIMITS, Admin: { publicKeys: [adminKey.publicKey] } };
    const options = { configuration, args: ['--sandbox'] };
    let gateway = await launch(options);
    const restart = async () => {
      await gateway.kill();
      gateway = await launch({ ...options, dataPath: gateway.dataPath });
    };
    const send = async (person: Person, path: string, body?: unknown): Promise<Json> => {
      const headers = { Cookie: person.cookie };
      const answer = await request(`${gateway.url}${path}`, { headers, body });
      return expectOk(path, answer).json['result'] as Json;
    };
    const admin = await signUp(gateway.url, adminKey);
    const owner = await signUpAgent(gateway.url);

    const registration = { name: 'Shop', url: 'https://shop.example', webhookUrl: 'http://127.0.0.1:9/hook' };
    const created = await send(owner, '/auth/v1/app/upsert_usr_app', registration);
    const appId = String(created['id']);
    const rotated = await send(owner, '/auth/v1/app/rotate_key', { id: appId });
    const secrets = [created['apiKey'], rotated['apiKey']].map(String);
    const login = () =>
      request(`${gateway.url}/auth/v1/mcp_login`, {
        method: 'POST',
        headers: { 'X-PublicKey': owner.key.publicKey, 'X-App-Id': appId },
      });
    t.match(await login(), { status: 401, json: { error: { message: 'Access denied' } } }, 'not approved');
    await send(admin, '/ProxyAdmin/api/apps/update', { appId, approved: true, mcpEnabled: true });
    await restart();

    const session = expectOk('mcp_login', await login()).json['result'] as Json;
    t.match(session, { loginType: 'McpApp', appId });
    const bearer = String(session['sessionId']);
    const balance = await callTool(gateway.url, bearer, 'wallet_get_balance');
    t.match(balance.text, /1000\.00/);
    t.match((await callTool(gateway.url, bearer, 'sessions')).json, { error: { code: -32001 } });
    await send(admin, '/ProxyAdmin/api/apps/update', { appId, disabled: true });
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    t.match((await rpc(gateway.url, bearer, list)).json, { error: { code: -32001 } }, 'closed at once');
    await restart();
    t.match((await rpc(gateway.url, bearer, list)).json, { error: { code: -32001 } });
    t.equal((await login()).status, 401);

    t.match(await send(owner, '/auth/v1/app/list'), [
      { ...registration, id: appId, disabled: true, approved: true },
    ]);
    const texts = written(gateway);
    t.ok(
      texts.some((text) => text.includes('https://shop.example')),
      'the registered address is in the files',
    );
    for (const secret of secrets) {
      t.match(secret, /^ghk_[A-Za-z0-9_-]{43}$/);
      t.notOk(texts.some((text) => text.includes(secret.slice(4))));
    }
    await gateway.stop();
    rmSync(gateway.dataPath, { recursive: true });
  },
);
