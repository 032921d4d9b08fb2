/**
 * Environment of a check: one running gateway with the sandbox modules, a `core` module and a webhook receiver of the
 * test, an admin, and the requests of the contract.
 */
import { type LaunchOptions, launch, type RunningGateway } from '../../kit/launch.ts';
import { Backend } from './backend.ts';
import { type Answer, type Headers, type Sending, send } from './client.ts';
import { customRows } from './custom-rows.ts';
import { expectOk, logIn, newKey, type Person, pushEvents, signed, signUp } from './unshown.ts';

export const MODULE_KEY = 'contract-module-key-0123456789';
export const PROJECT = 'contract';

/** Limits are raised for the tests, never bypassed; the checks of chapter 8 use the defaults. */
const RAISED = {
  ApiRPSLimit: 1_000,
  IpRPSLimit: 1_000,
  SessionApiRPSLimit: 1_000,
  PubKeyApiRPSLimit: 1_000,
  McpApiRPSLimit: 1_000,
  UserApiRPSLimit: 1_000,
  EventReorderMilliseconds: 0,
};

export interface WorldOptions {
  /** Additional configuration keys, in place of the custom tools and resources; may use the address of the core module. */
  readonly configuration?: (core: string) => Record<string, unknown>;
  /** Settings; by default the limits are raised. */
  readonly settings?: Record<string, unknown>;
  readonly launch?: LaunchOptions;
}

export interface McpAgent {
  readonly person: Person;
  readonly login: Answer;
  /** The header with the bearer. */
  readonly auth: Headers;
}

export interface AppAgent extends McpAgent {
  readonly appId: string;
}

export function bearerOf(login: Answer): Headers {
  return { Authorization: `Bearer ${login.textAt('result.sessionId')}` };
}

/** Headers of a McpVerified login: the 8-byte little-endian timestamp is signed (5.1). */
export function verifiedHeaders(key: Person['key'], seconds = Math.floor(Date.now() / 1_000)): Headers {
  const message = Buffer.alloc(8);
  message.writeBigInt64LE(BigInt(seconds));
  return {
    'X-PublicKey': key.publicKey,
    'X-Timestamp': String(seconds),
    'X-Signature': signed(key, message),
  };
}

export class World {
  readonly gateway: RunningGateway;
  readonly core: Backend;
  readonly hook: Backend;
  readonly #adminKey: Person['key'];
  #admin: Promise<Person> | undefined;
  readonly #agents = new Map<string, Promise<McpAgent>>();
  #appAgent: Promise<AppAgent> | undefined;

  private constructor(gateway: RunningGateway, core: Backend, hook: Backend, adminKey: Person['key']) {
    this.gateway = gateway;
    this.core = core;
    this.hook = hook;
    this.#adminKey = adminKey;
  }

  static async start(options: WorldOptions = {}): Promise<World> {
    const [core, hook] = await Promise.all([Backend.start(), Backend.start()]);
    const adminKey = newKey();
    const configuration = {
      Project: PROJECT,
      Settings: options.settings ?? RAISED,
      Admin: { publicKeys: [adminKey.publicKey] },
      Modules: { core: { url: core.url, key: MODULE_KEY } },
      ...(options.configuration ?? customRows)(core.url),
    };
    try {
      const gateway = await launch({ args: ['--sandbox'], configuration, ...options.launch });
      return new World(gateway, core, hook, adminKey);
    } catch (error) {
      await Promise.all([core.close(), hook.close()]);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.gateway.stop();
    await Promise.all([this.core.close(), this.hook.close()]);
  }

  get(path: string, headers: Headers = {}, sending: Sending = {}): Promise<Answer> {
    return send('GET', this.gateway.url + path, { headers, ...sending });
  }

  /** A POST with a JSON body; without `json` the body is empty. */
  post(path: string, headers: Headers = {}, json?: unknown, sending: Sending = {}): Promise<Answer> {
    return send('POST', this.gateway.url + path, { headers, json, ...sending });
  }

  send(method: string, path: string, sending: Sending = {}): Promise<Answer> {
    return send(method, this.gateway.url + path, sending);
  }

  /** Creates an account with a browser session. */
  person(): Promise<Person> {
    return signUp(this.gateway.url);
  }

  /** The admin of this gateway. */
  admin(): Promise<Person> {
    this.#admin ??= signUp(this.gateway.url, this.#adminKey);
    return this.#admin;
  }

  /** Opens another browser session of a person. */
  loginAgain(person: Person): Promise<Answer> {
    return logIn(this.gateway.url, person.key);
  }

  async updateKey(person: Person, flags: object): Promise<Answer> {
    return await this.post('/auth/v1/keys/update_key', person.auth, { keyId: person.keyId, ...flags });
  }

  /** Creates a person whose key has mcpAccess. */
  async mcpPerson(): Promise<Person> {
    const person = await this.person();
    expectOk('update_key', await this.updateKey(person, { mcpAccess: true }));
    return person;
  }

  mcpLogin(headers: Headers, sending: Sending = {}): Promise<Answer> {
    return this.post('/auth/v1/mcp_login', headers, undefined, sending);
  }

  /** A McpVerified session, or a McpBasic one. Without a person all checks share the session. */
  agent(type: 'McpVerified' | 'McpBasic' = 'McpVerified', person?: Person): Promise<McpAgent> {
    if (person !== undefined) return this.#login(type, person);
    const known = this.#agents.get(type) ?? this.mcpPerson().then((made) => this.#login(type, made));
    this.#agents.set(type, known);
    return known;
  }

  /** An approved application with mcpEnabled and its McpApp session, shared by all checks. */
  appAgent(): Promise<AppAgent> {
    this.#appAgent ??= this.#makeAppAgent();
    return this.#appAgent;
  }

  async #login(type: 'McpVerified' | 'McpBasic', person: Person): Promise<McpAgent> {
    const headers =
      type === 'McpBasic' ? { 'X-PublicKey': person.key.publicKey } : verifiedHeaders(person.key);
    const login = expectOk('mcp_login', await this.mcpLogin(headers));
    return { person, login, auth: bearerOf(login) };
  }

  async #makeAppAgent(): Promise<AppAgent> {
    const person = await this.mcpPerson();
    const app = expectOk('app', await this.app(person, { name: 'Agents', url: 'https://agents.example' }));
    const appId = app.textAt('result.id');
    await this.approve(appId);
    const login = await this.mcpLogin({ 'X-PublicKey': person.key.publicKey, 'X-App-Id': appId });
    return { person, appId, login: expectOk('mcp_login', login), auth: bearerOf(login) };
  }

  /** Registers or changes an application. */
  async app(owner: Person, body: object): Promise<Answer> {
    return await this.post('/auth/v1/app/upsert_usr_app', owner.auth, body);
  }

  async approve(appId: string, flags: object = { approved: true, mcpEnabled: true }): Promise<void> {
    const { auth } = await this.admin();
    expectOk('approve', await this.post('/ProxyAdmin/api/apps/update', auth, { appId, ...flags }));
  }

  async setting(name: string, value: string | number): Promise<void> {
    const { auth } = await this.admin();
    expectOk(name, await this.post('/ProxyAdmin/api/settings', auth, { name, value }));
  }

  rpc(headers: Headers, method: string, params?: unknown, sending: Sending = {}): Promise<Answer> {
    const message = { jsonrpc: '2.0', id: 1, method, ...(params === undefined ? {} : { params }) };
    return this.post('/mcp', headers, message, sending);
  }

  tool(headers: Headers, name: string, args: object = {}): Promise<Answer> {
    return this.rpc(headers, 'tools/call', { name, arguments: args });
  }

  /** The JSON result of a tool. Throws if the call fails. */
  async toolJson(headers: Headers, name: string, args: object = {}): Promise<unknown> {
    const answer = await this.tool(headers, name, args);
    if (answer.at('error') !== undefined || answer.at('result.isError') !== undefined)
      throw new Error(`${name}: ${answer.text}`);
    return JSON.parse(answer.textAt('result.content.0.text'));
  }

  async toolNames(headers: Headers): Promise<string[]> {
    const { listAt } = await this.lists(headers, 'tools');
    return listAt.map((tool) => String((tool as { name: string }).name));
  }

  async resourceUris(headers: Headers): Promise<string[]> {
    const { listAt } = await this.lists(headers, 'resources');
    return listAt.map((resource) => String((resource as { uri: string }).uri));
  }

  async lists(headers: Headers, what: 'tools' | 'resources'): Promise<{ listAt: unknown[] }> {
    const answer = await this.rpc(headers, `${what}/list`);
    return { listAt: expectOk(`${what}/list`, answer).listAt(`result.${what}`) };
  }

  async pushed(events: readonly object[]): Promise<void> {
    expectOk('push', await pushEvents(this.gateway.internal, MODULE_KEY, events));
  }
}
