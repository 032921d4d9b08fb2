/** A gateway with people at work, as the pictures show it: accounts with names, agents, hosts, applications, files, load. */
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import {
  bearerOf,
  callTool,
  expectOk,
  newKey,
  type Person,
  request,
  signUp,
  updateKey,
} from '../../kit/agent.ts';
import { connectHost, registerClient } from '../../kit/consent.ts';
import { launch, NO_FILE_LIMITS, type RunningGateway } from '../../kit/launch.ts';
import { initUpload, type Uploader, uploadPart } from '../../kit/upload-client.ts';

const NAMES = ['Ada Brandt', 'Mara Lindqvist', 'Marek Havel', 'Noor Haddad', 'Tomás Rey', 'Ines Okafor'];
const TOOLS = ['sessions', 'user_keys', 'wallet_get_balance', 'market_get_rates', 'login_log'];
/** Between calls of one agent. */
const PAUSE_MS = 12;
const EVENTS = 12;

export interface Stage {
  readonly gateway: RunningGateway;
  /** Public address with the host that passkeys need. */
  readonly home: string;
  readonly admin: Person;
  /** The account whose page is shown. */
  readonly person: Person;
  /** The query with which a host asks for access. */
  readonly ask: string;
  /** Ends load and gateway. */
  stop(): Promise<void>;
}

export async function openStage(): Promise<Stage> {
  const adminKey = newKey();
  const gateway = await launch({
    configuration: { Project: 'shop', Admin: { publicKeys: [adminKey.publicKey] }, Settings: NO_FILE_LIMITS },
    args: ['--sandbox'],
  });
  const home = gateway.url.replace('127.0.0.1', 'localhost');
  const receiver = await startReceiver();
  const people: Person[] = [];
  for (const [at, name] of NAMES.entries()) {
    const person = await signUp(gateway.url, at === 0 ? adminKey : newKey());
    await post(gateway.url, person, '/auth/v1/account', { nickname: name });
    people.push(person);
  }
  const [admin, person] = people as [Person, Person];
  const agents = await Promise.all(people.map((each) => agentOf(gateway.url, each)));
  await furnish(gateway, admin, person, `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`);
  await initUpload({ url: gateway.url, cookie: admin.cookie }, randomBytes(1_000_000), {
    FileName: 'plan.pdf',
  });
  const ask = await askOf(home);
  const ended = new AbortController();
  const work = agents.map((agent, at) => keepCalling(gateway.url, agent, at, ended.signal));
  return {
    gateway,
    home,
    admin,
    person,
    ask,
    async stop() {
      ended.abort();
      await Promise.all(work);
      receiver.close();
      await gateway.stop();
    },
  };
}

function post(url: string, { cookie }: Person, path: string, body: object) {
  return request(url + path, { headers: { Cookie: cookie }, body });
}

/** No person is sent to it: the page is only looked at. */
const HOST = 'https://claude.ai/api/mcp/auth_callback';

async function askOf(home: string): Promise<string> {
  return new URLSearchParams({
    client_id: await registerClient(home, 'Claude', HOST),
    redirect_uri: HOST,
    response_type: 'code',
    code_challenge: createHash('sha256').update(randomBytes(32)).digest('base64url'),
    code_challenge_method: 'S256',
    scope: 'tools',
    resource: `${home}/connect/mcp`,
  }).toString();
}

/** The session of an agent with a key of the account. */
async function agentOf(url: string, person: Person): Promise<string> {
  expectOk('update_key', await updateKey(url, person, { mcpAccess: true }));
  return await bearerOf(url, person.key);
}

/** Makes the rows that the page of an account lists: keys, hosts, applications, deliveries, files. */
async function furnish(
  gateway: RunningGateway,
  admin: Person,
  person: Person,
  webhookUrl: string,
): Promise<void> {
  const { url } = gateway;
  await connectHost(url, person);
  for (const name of ['Invoice agent', 'Build server']) {
    const claim = {
      userId: person.userId,
      publicKey: newKey().publicKey,
      name,
      mcpAccess: true,
      browserLogin: false,
    };
    expectOk('add', await post(url, admin, '/ProxyAdmin/api/user_keys/add', claim));
  }
  const shop = { name: 'Ledger sync', url: 'https://ledger.example', webhookUrl };
  expectOk('app', await post(url, person, '/auth/v1/app/upsert_usr_app', shop));
  const events = Array.from({ length: EVENTS }, (_, at) => ({
    module: 'core',
    tick: String(Date.now() + at),
    type: 'OrderCreated',
    crmId: person.userId,
    data: { id: at },
  }));
  const key = readFileSync(join(gateway.dataPath, 'sandbox/module-key'), 'utf8').trim();
  const headers = { 'X-Module-Key': key };
  expectOk('events', await request(`${gateway.internal}/internal/v1/events`, { headers, body: { events } }));
  for (const name of ['invoice-0412.pdf', 'terms.pdf', 'logo.svg'])
    await upload({ url, cookie: person.cookie }, name, randomBytes(40_000 + 1_000 * name.length));
}

async function upload(uploader: Uploader, name: string, bytes: Buffer): Promise<void> {
  expectOk('init_upload', await initUpload(uploader, bytes, { FileName: name }));
  expectOk('upload_part', await uploadPart(uploader, bytes, 0));
}

async function startReceiver(): Promise<Server> {
  const server = createServer((incoming, answer) => {
    incoming.resume();
    answer.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

/** The load that the overview shows: one call after the other, with a rest that differs from agent to agent. */
async function keepCalling(url: string, bearer: string, at: number, ended: AbortSignal): Promise<void> {
  for (let count = at; !ended.aborted; count += 1) {
    const tool = TOOLS[count % TOOLS.length] ?? '';
    await callTool(url, bearer, tool);
    await wait(PAUSE_MS * (1 + ((at + Math.floor(count / TOOLS.length)) % 5)));
  }
}
