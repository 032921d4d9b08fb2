/**
 * An account of a faulty cluster and its only client, which knows what the account must hold: each acknowledged write is
 * remembered, and read back at once at a random node.
 */
import { randomUUID } from 'node:crypto';
import {
  type Answer,
  cookieOf,
  newKey,
  type SoftwareKey,
  signText,
  verifiedHeaders,
} from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';
import { BrokenPromise, type Expected, type NodeCalls, type NodeRequest } from './calls.ts';
import type { Contest } from './contest.ts';
import { entryOf, type HeldSession, judgeSession } from './sessions.ts';

/** An account answers 64 challenges in their life; then another one continues. */
const CHALLENGES_MAX = 48;
const KEYS_MAX = 10;
const APPS_MAX = 6;
/** Sessions that are looked at after an end of many. */
const LOOKED_AT_MAX = 4;
const UNAUTHORIZED = 401;
const CONFLICT = 409;
const KEYS_PATH = '/auth/v1/keys';

interface HeldKey {
  readonly id: string;
  readonly key: SoftwareKey;
  readonly mcpAccess: boolean;
  /** Others tried to get it: it stays. */
  readonly contested?: true;
}

export interface AccountTools {
  readonly calls: NodeCalls;
  readonly random: () => number;
  /** Contest of accounts that try to get the same keys. */
  readonly contest?: Contest;
}

export class AccountClient {
  readonly #calls: NodeCalls;
  readonly #random: () => number;
  readonly #contest: Contest | undefined;
  /** Names the account in reports: the start of its first key. */
  readonly who: string;
  readonly first: SoftwareKey;
  readonly keys = new Map<string, HeldKey>();
  readonly removedKeys: SoftwareKey[] = [];
  readonly sessions: HeldSession[] = [];
  /** Id and name. */
  readonly apps = new Map<string, string>();
  userId = '';
  #home: HeldSession | undefined;
  #challenges = 0;

  /** Signs up. A sign-up whose answer was lost is found by its key. */
  static async create(tools: AccountTools): Promise<AccountClient> {
    const client = new AccountClient(tools, newKey());
    await client.#signUp();
    return client;
  }

  private constructor({ calls, random, contest }: AccountTools, first: SoftwareKey) {
    this.#contest = contest;
    this.#calls = calls;
    this.#random = random;
    this.first = first;
    this.who = first.publicKey.slice(0, 8);
  }

  /** Another account is to continue. */
  get isFull(): boolean {
    return this.#challenges >= CHALLENGES_MAX;
  }

  /** The session that makes the changes; it lives as long as the account. */
  get home(): HeldSession {
    if (this.#home === undefined) throw new Error('the account has no session yet');
    return this.#home;
  }

  /** One change by chance, with its read-backs. */
  async step(): Promise<void> {
    const steps: readonly (readonly [weight: number, run: () => Promise<void>])[] = [
      [this.keys.size < KEYS_MAX ? 25 : 0, () => this.#registerKey()],
      [this.keys.size < KEYS_MAX && this.#contest !== undefined ? 10 : 0, () => this.#contendKey()],
      [this.#spareKeys().length > 0 ? 15 : 0, () => this.#removeKey()],
      [20, () => this.#logIn(this.#anyKey())],
      [this.#mcpKeys().length > 0 ? 15 : 0, () => this.#logInForMcp()],
      [this.#live().length > 2 ? 8 : 0, () => this.#closeOthers()],
      [this.#live('browser').length > 1 ? 8 : 0, () => this.#logOut()],
      [12, () => this.#changeApp()],
    ];
    let ticket = this.#random() * steps.reduce((sum, [weight]) => sum + weight, 0);
    for (const [weight, run] of steps) {
      ticket -= weight;
      if (ticket < 0) return run();
    }
  }

  /** Checks at a node that the account holds what it must. */
  async verify(node: NodeProcess): Promise<void> {
    await this.#readKeys(node);
    await this.#readApps(node);
    await Promise.all(this.sessions.map((session) => this.readSession(session, node)));
    for (const key of this.removedKeys) await this.#readRemoved(key, node);
  }

  async readSession(session: HeldSession, node: NodeProcess, timeoutMs?: number): Promise<void> {
    const asked = { ...entryOf(session), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    await this.#calls.readBack(this.who, node, asked, judgeSession(session));
  }

  async #signUp(): Promise<void> {
    const { key, userId, cookie } = await this.#calls.until(this.who, this.#random, async (node) => {
      const body = await this.#challengeBody('register', this.first, node);
      if (body === undefined) return undefined;
      const answer = await this.#calls.call(this.who, this.#node(), {
        path: `${KEYS_PATH}/register_key`,
        body,
      });
      if (answer?.status === 200) return signedUp(answer);
      if (answer === undefined) return undefined;
      // Only an attempt of its own can have taken the key.
      if (answer.status !== CONFLICT) throw this.#broken('sign-up', answer);
      return await this.#foundAgain();
    });
    this.#calls.counts.acknowledged += 1;
    this.userId = userId;
    this.keys.set(key, { id: key, key: this.first, mcpAccess: false });
    this.#home = this.#opened('browser', cookie, key);
    await this.readSession(this.home, this.#node());
  }

  async #foundAgain(): Promise<{ key: string; userId: string; cookie: string } | undefined> {
    const body = await this.#challengeBody('login', this.first, this.#node());
    if (body === undefined) return undefined;
    const answer = await this.#calls.call(this.who, this.#node(), { path: '/auth/v1/login', body });
    if (answer === undefined) return undefined;
    if (answer.status !== 200) throw this.#broken('log-in after a sign-up', answer);
    const result = answer.json['result'];
    return { key: String(result?.['keyId']), userId: String(result?.['userId']), cookie: cookieOf(answer) };
  }

  async #registerKey(): Promise<void> {
    const key = newKey();
    const body = await this.#calls.until(this.who, this.#random, (node) =>
      this.#challengeBody('register', key, node, this.home.token),
    );
    const answer = await this.#write(`${KEYS_PATH}/register_key`, body);
    const made = answer.json['result']?.['key'];
    const id = String(made?.['id']);
    if (String(made?.['publicKey']) !== key.publicKey || this.keys.has(id))
      throw this.#broken('register_key', answer);
    this.keys.set(id, { id, key, mcpAccess: false });
    await this.#readKeys(this.#node());
    if (this.#random() < 0.5) {
      await this.#write(`${KEYS_PATH}/update_key`, { keyId: id, mcpAccess: true });
      this.keys.set(id, { id, key, mcpAccess: true });
    }
  }

  async #contendKey(): Promise<void> {
    const key = this.#contest?.next() ?? newKey();
    const answer = await this.#contend(key);
    if (answer.status === CONFLICT) {
      this.#contest?.lost(key);
      return;
    }
    this.#contest?.won(key, this.who);
    const id = String(answer.json['result']?.['key']?.['id']);
    this.keys.set(id, { id, key, mcpAccess: false, contested: true });
    await this.#readKeys(this.#node());
  }

  /** A refusal is not kept: where its answer is lost, the repeat finds its challenge used, and a new one brings the verdict. */
  async #contend(key: SoftwareKey): Promise<Answer> {
    for (;;) {
      const body = await this.#calls.until(this.who, this.#random, (node) =>
        this.#challengeBody('register', key, node, this.home.token),
      );
      const expected = { statuses: [200, CONFLICT], afterLost: [UNAUTHORIZED] };
      const answer = await this.#write(`${KEYS_PATH}/register_key`, body, expected);
      if (answer.status !== UNAUTHORIZED) return answer;
    }
  }

  async #removeKey(): Promise<void> {
    const removed = this.#choose(this.#spareKeys());
    const ended = this.#live().filter((session) => session.keyId === removed.id);
    this.#change(ended, 'closing');
    await this.#write(`${KEYS_PATH}/remove_key`, { keyId: removed.id });
    this.keys.delete(removed.id);
    this.removedKeys.push(removed.key);
    this.#change(ended, 'closed');
    await Promise.all([
      this.#readRemoved(removed.key, this.#node()),
      this.#readKeys(this.#node()),
      ...this.#readSome(ended),
    ]);
  }

  async #logIn(held: HeldKey): Promise<void> {
    const cookie = await this.#calls.until(this.who, this.#random, async (node) => {
      const body = await this.#challengeBody('login', held.key, this.#node());
      if (body === undefined) return undefined;
      const answer = await this.#calls.call(this.who, node, { path: '/auth/v1/login', body });
      return this.#admitted(node, 'a registered key is refused', answer) ? cookieOf(answer) : undefined;
    });
    this.#calls.counts.acknowledged += 1;
    const session = this.#opened('browser', cookie, held.id);
    await Promise.all([this.readSession(session, this.#node()), this.readSession(session, this.#node())]);
  }

  async #logInForMcp(): Promise<void> {
    const held = this.#choose(this.#mcpKeys());
    const token = await this.#calls.until(this.who, this.#random, async (node) => {
      const answer = await this.#calls.call(this.who, node, mcpLoginOf(held.key));
      const isAdmitted = this.#admitted(node, 'a registered key is refused', answer);
      return isAdmitted ? String(answer.json['result']?.['sessionId']) : undefined;
    });
    this.#calls.counts.acknowledged += 1;
    const session = this.#opened('mcp', token, held.id);
    await Promise.all([this.readSession(session, this.#node()), this.readSession(session, this.#node())]);
  }

  async #closeOthers(): Promise<void> {
    const ended = this.#live().filter((session) => session !== this.home);
    this.#change(ended, 'closing');
    await this.#write('/auth/v1/close_sessions', { others: true });
    this.#change(ended, 'closed');
    await Promise.all(this.#readSome(ended));
  }

  /** A repeat after a lost answer finds the session gone. */
  async #logOut(): Promise<void> {
    const session = this.#choose(this.#live('browser').filter((each) => each !== this.home));
    this.#change([session], 'closing');
    const asked = { path: '/auth/v1/logout', method: 'POST', headers: { Cookie: session.token } };
    let isRepeated = false;
    await this.#calls.until(this.who, this.#random, async (node) => {
      const answer = await this.#calls.call(this.who, node, asked);
      const isOver = answer?.status === 200 || (isRepeated && answer?.status === 401);
      if (answer !== undefined && !isOver) throw this.#broken('logout', answer);
      isRepeated = true;
      return answer;
    });
    this.#calls.counts.acknowledged += 1;
    this.#change([session], 'closed');
    await Promise.all(this.#readSome([session]));
  }

  async #changeApp(): Promise<void> {
    const name = `app ${Math.floor(this.#random() * 1e9)}`;
    const isNew = this.apps.size < APPS_MAX && (this.apps.size === 0 || this.#random() < 0.5);
    const place = isNew
      ? { url: `https://${randomUUID()}.example` }
      : { appId: this.#choose([...this.apps.keys()]) };
    const answer = await this.#write('/auth/v1/app/upsert_usr_app', { name, ...place });
    this.apps.set(String(answer.json['result']?.['id']), name);
    await this.#readApps(this.#node());
  }

  #write(path: string, body: object, expected?: Expected): Promise<Answer> {
    const headers = { Cookie: this.home.token, 'Idempotency-Key': randomUUID() };
    return this.#calls.write(this.who, this.#random, { path, headers, body }, expected);
  }

  /** The answer to a fresh challenge; undefined where the node gives none. */
  async #challengeBody(
    kind: 'register' | 'login',
    key: SoftwareKey,
    node: NodeProcess,
    cookie?: string,
  ): Promise<object | undefined> {
    const headers = cookie === undefined ? {} : { Cookie: cookie };
    const answer = await this.#calls.call(this.who, node, { path: `/auth/v1/${kind}_options`, headers });
    if (!this.#admitted(node, 'a live session is refused', answer)) return undefined;
    this.#challenges += 1;
    const { challengeId, signPrefix } = answer.json['result'] as unknown as {
      challengeId: string;
      signPrefix: string;
    };
    return { challengeId, publicKey: key.publicKey, code: signText(key, signPrefix + key.publicKey) };
  }

  /** False without a verdict. Anything but 200 breaks a promise. */
  #admitted(node: NodeProcess, otherwise: string, answer: Answer | undefined): answer is Answer {
    if (answer === undefined) return false;
    if (answer.status === 200) return true;
    if (answer.status !== 401) throw this.#broken(otherwise, answer);
    throw this.#calls.stale(this.who, node, otherwise, answer);
  }

  async #readKeys(node: NodeProcess): Promise<void> {
    await this.#calls.readBack(this.who, node, entryOf(this.home), (answer) => {
      if (answer.status !== 200) return 'a live session is refused';
      const rows = answer.json['result'] as unknown as { id: string; publicKey: string }[];
      const found = rows.map(({ id, publicKey }) => `${id} ${publicKey}`).sort();
      const held = [...this.keys.values()].map(({ id, key }) => `${id} ${key.publicKey}`).sort();
      return difference('keys', found, held);
    });
  }

  async #readApps(node: NodeProcess): Promise<void> {
    const asked = { path: '/auth/v1/app/list', headers: { Cookie: this.home.token } };
    await this.#calls.readBack(this.who, node, asked, (answer) => {
      if (answer.status !== 200) return 'a live session is refused';
      const rows = answer.json['result'] as unknown as { id: string; name: string }[];
      const held = [...this.apps].map(([id, name]) => `${id} ${name}`).sort();
      return difference('applications', rows.map(({ id, name }) => `${id} ${name}`).sort(), held);
    });
  }

  async #readRemoved(key: SoftwareKey, node: NodeProcess): Promise<void> {
    await this.#calls.readBack(this.who, node, mcpLoginOf(key), ({ status }) =>
      status === 401 ? undefined : 'a removed key is admitted',
    );
  }

  #readSome(sessions: readonly HeldSession[]): Promise<void>[] {
    return sessions.slice(-LOOKED_AT_MAX).map((session) => this.readSession(session, this.#node()));
  }

  #opened(kind: HeldSession['kind'], token: string, keyId: string): HeldSession {
    const session: HeldSession = { kind, token, keyId, state: 'live', sinceMs: performance.now() };
    this.sessions.push(session);
    return session;
  }

  #change(sessions: readonly HeldSession[], state: HeldSession['state']): void {
    for (const session of sessions) Object.assign(session, { state, sinceMs: performance.now() });
  }

  #live(kind?: HeldSession['kind']): readonly HeldSession[] {
    return this.sessions.filter((each) => each.state === 'live' && (kind ?? each.kind) === each.kind);
  }

  #spareKeys(): readonly HeldKey[] {
    return [...this.keys.values()].filter(({ key, contested }) => key !== this.first && contested !== true);
  }

  #mcpKeys(): readonly HeldKey[] {
    return [...this.keys.values()].filter(({ mcpAccess }) => mcpAccess);
  }

  #anyKey(): HeldKey {
    return this.#choose([...this.keys.values()]);
  }

  #node(): NodeProcess {
    return this.#calls.pick(this.#random);
  }

  #choose<Item>(items: readonly Item[]): Item {
    const item = items[Math.floor(this.#random() * items.length)];
    if (item === undefined) throw new Error('nothing to choose from');
    return item;
  }

  #broken(what: string, { status, text }: Answer): BrokenPromise {
    return new BrokenPromise(this.who, `${what}: ${status} ${text}`);
  }
}

function signedUp(answer: Answer): { key: string; userId: string; cookie: string } {
  const result = answer.json['result'];
  return {
    key: String(result?.['key']?.['id']),
    userId: String(result?.['userId']),
    cookie: cookieOf(answer),
  };
}

function mcpLoginOf(key: SoftwareKey): NodeRequest {
  const headers = verifiedHeaders(key, Math.floor(Date.now() / 1_000));
  return { path: '/auth/v1/mcp_login', method: 'POST', headers };
}

function difference(what: string, found: readonly string[], held: readonly string[]): string | undefined {
  if (found.join() === held.join()) return undefined;
  const missing = held.filter((each) => !found.includes(each));
  const extra = found.filter((each) => !held.includes(each));
  return `${what}: missing ${missing.join() || 'none'}, not acknowledged or doubled ${extra.join() || found.join()}`;
}
