/**
 * Accounts from the outside: all account routes over the pipeline, real actors over the memory journal, real
 * signatures, one clock for all of it; and people and agents with keys who use them.
 */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Test } from 'tap';
import { NO_LIMITS } from '../../kit/launch.ts';
import { keyOwner } from '../../src/actors/accounts/owners.ts';
import { user } from '../../src/actors/accounts/user.ts';
import { KINDS } from '../../src/actors/kinds.ts';
import { defineActor } from '../../src/actors/runtime/actor.ts';
import type { AccountEventPort, CodePort, Ports, WebhookPort } from '../../src/actors/runtime/ports.ts';
import type { Protocol } from '../../src/actors/runtime/protocol.ts';
import { SharedBounds } from '../../src/domain/limits/shared-bounds.ts';
import type { Role } from '../../src/domain/roles.ts';
import { authMethods } from '../../src/domain/sessions.ts';
import { LiveSettings, type SettingName, type SettingValue } from '../../src/domain/settings/settings.ts';
import type { Site } from '../../src/domain/site.ts';
import type { Challenges } from '../../src/io/accounts/challenges.ts';
import { createSessionLookup } from '../../src/io/http/checks/session-lookup.ts';
import type { AnyRoute, SessionLookup } from '../../src/io/http/table/route.ts';
import { type AccountDeps, createAccountRoutes } from '../../src/io/routes/account.ts';
import { createAuthRoutes, type LoginDeps } from '../../src/io/routes/auth.ts';
import { loginEmail, loginPhone } from '../../src/io/routes/codes.ts';
import { createKeyRoutes } from '../../src/io/routes/keys.ts';
import { mcpLogin } from '../../src/io/routes/mcp-login.ts';
import { endSessions, loginLog, logout, sessions } from '../../src/io/routes/sessions.ts';
import { copyRange, hashRange, writeBuffer } from '../../src/workers/crc32.ts';
import { checkEd25519Key, verifyEd25519 } from '../../src/workers/ed25519.ts';
import { verifyAuthentication, verifyRegistration } from '../../src/workers/fido2.ts';
import { makePart, publishPart } from '../../src/workers/part-files.ts';
import { sha256Range } from '../../src/workers/sha256.ts';
import type { TaskName } from '../../src/workers/tasks.ts';
import { createTestActors, START_MS, type TestActors } from './actors/actors.ts';
import { connectRaw, type HttpFixture, makeChallenges, requestText, startHttp } from './http.ts';

function accountRoutes(deps: LoginDeps, account: AccountDeps): AnyRoute[] {
  return [
    ...createAuthRoutes(deps),
    loginPhone,
    loginEmail,
    ...createKeyRoutes(deps),
    mcpLogin,
    ...createAccountRoutes(account),
    endSessions,
    loginLog,
    logout,
    sessions,
  ];
}

export interface Key {
  /** base64url. */
  readonly publicKey: string;
  readonly secret: KeyObject;
}

export function makeKey(): Key {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { publicKey: String(publicKey.export({ format: 'jwk' }).x), secret: privateKey };
}

export function signText(key: Key, text: string): string {
  return sign(null, Buffer.from(text), key.secret).toString('base64url');
}

/** Headers of McpVerified at `unixSeconds`, the start of the clock unless given. */
export function mcpProof(key: Key, unixSeconds: number = START_MS / 1_000): Record<string, string> {
  const message = Buffer.alloc(8);
  message.writeBigInt64LE(BigInt(unixSeconds));
  return {
    'X-PublicKey': key.publicKey,
    'X-Timestamp': String(unixSeconds),
    'X-Signature': sign(null, message, key.secret).toString('base64url'),
  };
}

/** Real verification on this thread. `gate`, where set, is awaited before each task: a test can hold it open. */
export function inlineWorkers(gate: { wait?: () => Promise<void> } = {}): Ports {
  const tasks: { readonly [N in TaskName]: (input: never) => unknown } = {
    verifyEd25519,
    checkEd25519Key,
    verifyRegistration,
    verifyAuthentication,
    writeBuffer,
    hashRange,
    copyRange,
    sha256Range,
    makePart,
    publishPart,
  };
  return {
    workers: {
      async run(name, input) {
        await gate.wait?.();
        return { ok: true, value: (await tasks[name](input as never)) as never };
      },
    },
  };
}

/** An answer of a route, its envelope opened. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly result: unknown;
  readonly error: { readonly code: number; readonly message: string } | undefined;
}

export interface Challenge {
  readonly challengeId: number;
  readonly code: string;
  readonly challenge: string;
  readonly expiresUtc: string;
  readonly signPrefix: string;
}

export interface Account {
  readonly sid: string;
  readonly userId: string;
  readonly keyId: string;
  readonly key: Key;
}

export interface KeyItem {
  readonly id: string;
  readonly publicKey: string;
  readonly keyType: string;
  readonly utcCreate: string;
  readonly current: boolean;
  readonly mcpAccess: boolean;
  readonly cardDavAccess: boolean;
  readonly browserLogin: boolean;
  readonly proven: boolean;
  readonly name?: string;
}

export interface Registered {
  readonly key: KeyItem;
  readonly userId: string;
  readonly newAccount: boolean;
  readonly replaced: string[];
  readonly expiresUtc: string;
}

interface SessionItem {
  readonly id: string;
  readonly kind: string;
  readonly keyId: string;
  readonly current: boolean;
}

export type AccountFixture = ReturnType<typeof startAccounts>;

export interface AccountFixtureOptions {
  readonly settings?: Partial<Record<SettingName, SettingValue>>;
  readonly site?: Partial<Site>;
  /** With `127.0.0.1` the header `X-Forwarded-For` says where a request comes from. */
  readonly trustedProxies?: readonly string[];
  /** Served beside the account routes. */
  readonly routes?: (
    actors: TestActors,
    bounds: SharedBounds,
    sessions: SessionLookup,
  ) => readonly AnyRoute[];
  /** Port that delivers one-time codes; without it no module does. */
  readonly codes?: CodePort;
  /** Dependencies of the routes of the account; without it there are no staff and no modules. */
  readonly account?: Partial<AccountDeps>;
  /** Disk and chat module of uploads; without them there is no file transport. */
  readonly files?: Required<Pick<Ports, 'files' | 'chatFiles'>>;
  /** Port that is notified of removed accounts. */
  readonly accountEvents?: AccountEventPort;
  /** Port that is notified of changed applications. */
  readonly webhookPort?: WebhookPort;
  /** Roles beside those of keys. */
  readonly staff?: { roleOf(userId: string): Role | undefined };
  /** Seed of randomness: another one than that of rows that are planted. */
  readonly seed?: number;
}

/** A key in the index whose account is not there, as a journal that lost a part would have it. */
export async function plantOrphan({ system }: TestActors, key: Key): Promise<void> {
  const owner = keyOwner({ userId: '7', keyId: '8', proven: true });
  await system.ask(planter, 'one', { type: 'plant', key: key.publicKey, owner });
}

interface PlantKey {
  readonly type: 'plant';
  readonly key: string;
  readonly owner: string;
}

interface Crash {
  readonly type: 'crash';
}

/** Plants a key; its other command fails each time, and any number of times in a row is a quarantine. */
export const planter = defineActor<
  null,
  Protocol<PlantKey | Crash, { readonly plant: null; readonly crash: null }>,
  never
>({
  kind: 'planter',
  version: 1,
  limits: { mailbox: 8, snapshotEvery: 200, idleMs: 60_000 },
  initial: () => null,
  evolve: () => null,
  decide: {
    plant: (_state, { key, owner }) => ({
      claims: [{ index: 'publicKey', key, owner, onConflict: 'KeyAlreadyRegistered' }],
      reply: null,
    }),
    crash() {
      throw new Error('planted');
    },
  },
});

export function startAccounts(options: AccountFixtureOptions = {}) {
  const settings = new LiveSettings({ ...NO_LIMITS, ...options.settings });
  /** Awaited before every verification. */
  const gate: { wait?: () => Promise<void> } = {};
  const { accountEvents, codes, files, webhookPort } = options;
  const ports: Ports = {
    ...inlineWorkers(gate),
    ...files,
    ...(codes === undefined ? {} : { codes }),
    ...(accountEvents === undefined ? {} : { accountEvents }),
    ...(webhookPort === undefined ? {} : { webhooks: webhookPort }),
  };
  const actors = createTestActors({ kinds: [...KINDS, planter], ports, settings, seed: options.seed ?? 1 });
  const touchFailures: unknown[] = [];
  const adminPublicKeys = options.site?.adminPublicKeys ?? new Set<string>();
  const system = currentSystem(actors);
  const bounds = new SharedBounds(settings);
  const sessionLookup = createSessionLookup({
    actors: system,
    clock: actors.clock.read,
    adminPublicKeys,
    staff: options.staff,
    onTouchFailed: (error) => touchFailures.push(error),
  });
  const login = {
    challenges: currentChallenges(actors),
    openBound: bounds.of('challenges'),
    onSignedUp: () => undefined,
  };
  const accounts = accountRoutes(login, {
    staff: { leave: async () => undefined },
    modules: { call: async () => ({ ok: false, error: 'ModuleUnavailable', reason: 'test', elapsedMs: 0 }) },
    moduleAddresses: new Map(),
    onBug: (error) => http.bugs.push(error),
    ...options.account,
  });
  const http = startHttp({
    routes: [...accounts, ...(options.routes?.(actors, bounds, sessionLookup) ?? [])],
    pipeline: {
      bounds,
      trustedProxies: options.trustedProxies ?? [],
    },
    settings,
    actors: system,
    site: { authMethods: authMethods(codes !== undefined), ...options.site },
    gate: sessionLookup,
    time: actors.clock,
  });
  const calls = createCalls(http);
  return {
    actors,
    http,
    settings,
    gate,
    touchFailures,
    ...calls,
    ...createPeople(calls, actors),
    /** Holds the next verification open. */
    hold: () => hold(gate),
    /** Rejects when anything failed that is no row of the error table. */
    async close() {
      await http.close();
      const bugs = [...http.bugs, ...actors.bugs, ...touchFailures];
      if (bugs.length > 0) throw new AggregateError(bugs, `bugs: ${bugs.map(String).join(', ')}`);
    },
  };
}

/** The system of the moment: `restart` puts another in its place. */
function currentSystem(actors: TestActors): TestActors['system'] {
  return new Proxy({} as TestActors['system'], {
    get(_target, name) {
      const { system } = actors;
      const value: unknown = Reflect.get(system, name);
      return typeof value === 'function' ? value.bind(system) : value;
    },
  });
}

/** Those of the moment: a restart leaves nothing of them but their key. */
function currentChallenges(actors: TestActors): Challenges {
  const ofSystem = new WeakMap<object, Challenges>();
  return new Proxy({} as Challenges, {
    get(_target, name) {
      const challenges = ofSystem.get(actors.system) ?? makeChallenges();
      ofSystem.set(actors.system, challenges);
      const value: unknown = Reflect.get(challenges, name);
      return typeof value === 'function' ? value.bind(challenges) : value;
    },
  });
}

type Calls = ReturnType<typeof createCalls>;

function createCalls(http: HttpFixture) {
  const send = async (text: string): Promise<Answer> => {
    const connection = connectRaw(http.port);
    connection.send(text);
    try {
      const { status, headers, body } = await connection.answer();
      const parsed = JSON.parse(body) as { result: unknown; error?: { code: number; message: string } };
      return { status, headers, result: parsed.result, error: parsed.error };
    } finally {
      connection.close();
    }
  };
  return {
    get: (path: string, headers: Record<string, string> = {}) => send(requestText('GET', path, headers)),
    post: (path: string, body?: unknown, headers: Record<string, string> = {}) =>
      body === undefined
        ? send(requestText('POST', path, { 'Content-Length': '0', ...headers }))
        : send(
            requestText(
              'POST',
              path,
              { 'Content-Type': 'application/json', ...headers },
              JSON.stringify(body),
            ),
          ),
  };
}

export function cookie(sid: string | undefined): Record<string, string> {
  return sid === undefined ? {} : { Cookie: `sid=${sid}` };
}

/** The secret of `Set-Cookie`; '' when the cookie was taken back, undefined when none was set. */
export function sidOf({ headers }: Answer): string | undefined {
  return /^sid=([^;]*);/.exec(headers['set-cookie'] ?? '')?.[1];
}

/** A refusal sets no cookie. `what`: the code, the message, or what the error contains as JSON. */
export function refused(
  t: Test,
  { status, error, headers }: Answer,
  expected: number,
  what: number | string | RegExp,
  note = `refusal ${what}`,
): void {
  t.strictSame([status, headers['set-cookie']], [expected, undefined], `${note}: status, no cookie`);
  if (typeof what === 'object') t.match(JSON.stringify(error), what, note);
  else t.equal(typeof what === 'number' ? error?.code : error?.message, what, note);
}

export function refusal({ status, error }: Answer): string {
  return `${status}/${error?.code} ${error?.message}`;
}

function hold(gate: { wait?: () => Promise<void> }): { reached: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const reached = new Promise<void>((resolve) => {
    gate.wait = () => {
      delete gate.wait;
      resolve();
      return opened;
    };
  });
  return { reached, open };
}

const REGISTER = '/auth/v1/keys/register_key';

/** People and agents with keys; what they read is of the session `sid`. */
function createPeople({ get, post }: Calls, actors: TestActors) {
  const challenge = async (kind: 'register' | 'login', sid?: string) =>
    (await get(`/auth/v1/${kind}_options`, cookie(sid))).result as Challenge;
  /** The body of a registration or login that is signed with the key. */
  const signed = async (key: Key, kind: 'register' | 'login' = 'register', sid?: string) => {
    const { challengeId, signPrefix } = await challenge(kind, sid);
    return { challengeId, code: signText(key, signPrefix + key.publicKey), publicKey: key.publicKey };
  };
  /** Adds a key with a session: by signature, or by the echo of the handle. */
  const addKey = async (sid: string | undefined, key: Key, how: 'proof' | 'claim', more: object = {}) => {
    const { challengeId, code, signPrefix } = await challenge('register', sid);
    const answer = how === 'proof' ? signText(key, signPrefix + key.publicKey) : code;
    return post(REGISTER, { challengeId, code: answer, publicKey: key.publicKey, ...more }, cookie(sid));
  };
  const changeKey = (what: 'update_key' | 'remove_key', sid: string, body: object, headers = {}) =>
    post(`/auth/v1/keys/${what}`, body, { ...cookie(sid), ...headers });
  const read = async (path: string, sid: string) => (await get(`/auth/v1/${path}`, cookie(sid))).result;
  return {
    challenge,
    signed,
    addKey,
    changeKey,
    async signUp(key = makeKey(), passKeyFlag = false): Promise<Account> {
      const answer = await post(REGISTER, { ...(await signed(key)), passKeyFlag });
      const sid = sidOf(answer);
      if (answer.status !== 200 || sid === undefined) throw new Error(`sign-up: ${JSON.stringify(answer)}`);
      const { userId, key: item } = answer.result as Registered;
      return { sid, userId, keyId: item.id, key };
    },
    login: async (key: Key, headers: Record<string, string> = {}) =>
      post('/auth/v1/login', await signed(key, 'login'), headers),
    /** Registers an agent's key by claim and allows it for MCP; its key id. */
    async allowAgent({ sid }: Account, key: Key): Promise<string> {
      const added = await addKey(sid, key, 'claim');
      if (added.status !== 200) throw new Error(`register_key: ${JSON.stringify(added)}`);
      const keyId = (added.result as Registered).key.id;
      const allowed = await changeKey('update_key', sid, { keyId, mcpAccess: true });
      if (allowed.status !== 200) throw new Error(`update_key: ${JSON.stringify(allowed)}`);
      await actors.settle();
      return keyId;
    },
    mcpLogin: (headers: Record<string, string>) => post('/auth/v1/mcp_login', undefined, headers),
    keys: async (sid: string) => (await read('keys/user_keys', sid)) as KeyItem[],
    sessions: async (sid: string) => (await read('sessions', sid)) as SessionItem[],
    loginLog: (sid: string) => read('login_log', sid),
    alive: async (sid: string | undefined) => (await get('/auth/v1/sessions', cookie(sid))).status === 200,
    setBlocked: (userId: string, blocked = true): Promise<unknown> =>
      actors.system.ask(user, userId, { type: 'setBlocked', blocked, origin: { ip: '', userAgent: '' } }),
  };
}
