/** The account against a reference that knows nothing of events, indexes or commits: any history, the same answers. */
import fc from 'fast-check';
import t from 'tap';
import { parseKeyOwner } from '../../../src/actors/accounts/owners.ts';
import { type UserProtocol, user } from '../../../src/actors/accounts/user.ts';
import type { SessionRecord, UsedChallenge } from '../../../src/actors/accounts/user-types.ts';
import { KINDS } from '../../../src/actors/kinds.ts';
import type { Asked, TypeIn } from '../../../src/actors/runtime/protocol.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { hasFlag, KeyFlag, keyTypeOf } from '../../../src/domain/keys.ts';
import { browserMessage, mcpLoginMessage } from '../../../src/domain/proofs.ts';
import { CONTACT_SYNC_TOKENS_MAX, type SessionKind } from '../../../src/domain/sessions.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { SECOND_MS } from '../../../src/domain/time.ts';
import { createSessionLookup } from '../../../src/io/http/checks/session-lookup.ts';
import { inlineWorkers, type Key, makeKey, mcpProof, signText } from '../../support/account.ts';
import { createTestActors, START_MS, type TestActors } from '../../support/actors/actors.ts';
import { count, runs } from '../../support/depth.ts';
import { type StepOf, step } from '../../support/steps.ts';

const ORIGIN = { ip: '192.0.2.1', userAgent: 'model' };
const USERS = ['101', '102'] as const;
const PREFIX = 'prefix\n';
const KEYS: readonly Key[] = Array.from({ length: 5 }, makeKey);
const ACTIVE_KEYS_MAX = 3;
const RUNS = 150;
/** One challenge ends after the other, so long apart. */
const CHALLENGE_APART_MS = 100 * SECOND_MS;

interface ModelKey {
  readonly id: string;
  readonly userId: string;
  readonly material: Key;
  proven: boolean;
  readonly password: boolean;
  mcpAccess: boolean;
  cardDavAccess: boolean;
  active: boolean;
}

interface ModelSession {
  readonly id: string;
  readonly userId: string;
  readonly token: string;
  readonly kind: SessionKind;
  key: ModelKey;
  live: boolean;
}

const nat = fc.nat({ max: 30 });
const who = fc.nat({ max: USERS.length - 1 });
const which = fc.nat({ max: KEYS.length - 1 });
const flag = fc.boolean();
/** Challenges that are open at the same time: so few that a used one comes up again. */
const open = fc.nat({ max: 5 });
const anyStep = fc.oneof(
  step(5, 'add', { user: who, session: nat, key: which, proof: flag, pass: flag, challenge: open }),
  // `admin`: without a session of the account.
  step(3, 'update', { user: who, session: nat, key: nat, admin: flag }, { mcp: flag, card: flag }),
  step(2, 'remove', { user: who, session: nat, key: nat, admin: flag }),
  step(4, 'login', { key: which, good: flag, challenge: open }),
  step(3, 'mcpLogin', { key: which, verified: flag }),
  // A contact sync token.
  step(3, 'addToken', { user: who, session: nat, key: nat }),
  step(1, 'removeToken', { user: who, token: nat }),
  step(1, 'closeOthers', { user: who, session: nat }),
  step(1, 'block', { user: who, blocked: flag }),
  step(1, 'wait'),
  step(1, 'restart'),
);
type Step = StepOf<typeof anyStep>;

/** Reference model of the account rules, in the simplest form. */
class Model {
  readonly keys: ModelKey[] = [];
  readonly sessions: ModelSession[] = [];
  readonly blocked = new Set<string>();
  /** `<user> <challenge>` of those that opened something. */
  readonly used = new Set<string>();

  get logins(): ModelSession[] {
    return this.sessions.filter(({ kind }) => kind !== 'contactSync');
  }

  get tokens(): ModelSession[] {
    return this.sessions.filter(({ kind }) => kind === 'contactSync');
  }

  holder(material: Key): ModelKey | undefined {
    return this.keys.find((key) => key.active && key.material === material);
  }

  keysOf(userId: string): ModelKey[] {
    return this.keys.filter((key) => key.active && key.userId === userId);
  }

  /** One of the user's; mostly one that is still there, sometimes one that is gone. */
  pick<T extends { userId: string; active?: boolean; live?: boolean }>(
    all: readonly T[],
    userId: string,
    index: number,
  ): T | undefined {
    const own = all.filter((each) => each.userId === userId);
    const present = own.filter((each) => each.active ?? each.live);
    const from = index % 7 === 0 || present.length === 0 ? own : present;
    return from[index % Math.max(1, from.length)];
  }

  drop(key: ModelKey, but?: ModelSession): number {
    key.active = false;
    return this.end((session) => session.key === key && session !== but);
  }

  end(which: (session: ModelSession) => boolean): number {
    const ended = this.sessions.filter((session) => session.live && which(session));
    for (const session of ended) session.live = false;
    return ended.length;
  }

  adding(userId: string, material: Key, proof: boolean, pass: boolean): string {
    const holder = this.holder(material);
    if (holder?.userId === userId) return holder.proven || !proof || pass ? 'KeyAlreadyRegistered' : 'proves';
    const active = this.keysOf(userId);
    const replaced = pass ? active.filter((key) => key.password).length : 0;
    if (active.length - replaced + 1 > ACTIVE_KEYS_MAX) return 'KeyLimitReached';
    return holder !== undefined && (holder.proven || !proof) ? 'KeyAlreadyRegistered' : 'adds';
  }
}

/** Returns the session and the origin of a change to a key: an admin has no session of the account. */
function asker(admin: boolean, session: ModelSession | undefined) {
  if (admin) return { sessionId: null, origin: { ...ORIGIN, by: '1' } };
  return { sessionId: session?.id ?? '0', origin: ORIGIN };
}

/** Created the account; over since then, so that it counts among no challenges. */
const FOUNDING: UsedChallenge = { id: -1, endsMs: 0 };

/** The model beside the real thing; each step is done to both and compared. */
class Pair {
  readonly model = new Model();
  readonly actors: TestActors;

  constructor(settings: LiveSettings) {
    this.actors = createTestActors({ kinds: KINDS, ports: inlineWorkers(), settings });
  }

  async ask<T extends TypeIn<UserProtocol['replies']>>(
    userId: string,
    command: Asked<UserProtocol, T>,
  ): Promise<UserProtocol['replies'][T] | string> {
    try {
      return await this.actors.system.ask<UserProtocol, T>(user, userId, command);
    } catch (error) {
      if (error instanceof GatewayError) return error.row;
      throw error;
    }
  }

  proofOf(material: Key) {
    const signature = Buffer.from(signText(material, PREFIX + material.publicKey), 'base64url');
    return { message: browserMessage(PREFIX, material.publicKey), signature };
  }

  async signUp(userId: string, material: Key): Promise<void> {
    const signedUp = await this.ask(userId, {
      type: 'signUp',
      publicKey: material.publicKey,
      proof: this.proofOf(material),
      passKeyFlag: false,
      handle: `handle-${userId}`,
      challenge: FOUNDING,
      origin: ORIGIN,
    });
    if (typeof signedUp === 'string') throw new Error(signedUp);
    const key = this.note(userId, signedUp.key.id, material, true, false);
    await this.noteSession(userId, signedUp.token, 'browser', key);
  }

  /** One of those that are open now. */
  challenge(index: number): UsedChallenge {
    const over = Math.floor((this.actors.clock.nowMs - START_MS) / CHALLENGE_APART_MS);
    const id = over + index;
    return { id, endsMs: START_MS + (id + 1) * CHALLENGE_APART_MS };
  }

  note(userId: string, id: string, material: Key, proven: boolean, password: boolean): ModelKey {
    const flags = { mcpAccess: false, cardDavAccess: false, active: true };
    const key: ModelKey = { id, userId, material, proven, password, ...flags };
    this.model.keys.push(key);
    return key;
  }

  async noteSession(userId: string, token: string, kind: 'browser' | 'mcp', key: ModelKey): Promise<void> {
    const known = new Set(this.model.sessions.map((session) => session.id));
    const fresh = (await this.sessionsOf(userId)).filter(({ id }) => !known.has(id));
    const [session] = fresh;
    if (fresh.length !== 1 || session === undefined) throw new Error('one login, one session');
    this.model.sessions.push({ id: session.id, userId, token, kind, key, live: true });
  }

  sessionsOf(userId: string): Promise<readonly SessionRecord[]> {
    return Promise.resolve(this.actors.system.query(user, userId, { type: 'sessions' }));
  }

  /** The difference from the model, or '' where there is none. */
  async take(next: Step): Promise<void> {
    switch (next.do) {
      case 'add':
        return this.add(next);
      case 'update':
        return this.update(next);
      case 'remove':
        return this.remove(next);
      case 'login':
      case 'mcpLogin':
        return this.logIn(next);
      case 'addToken':
        return this.addToken(next);
      case 'removeToken':
        return this.removeToken(next);
      case 'closeOthers':
        return this.closeOthers(next);
      case 'block': {
        const userId = USERS[next.user] ?? '';
        await this.ask(userId, { type: 'setBlocked', blocked: next.blocked, origin: ORIGIN });
        if (next.blocked) {
          this.model.blocked.add(userId);
          this.model.end((session) => session.userId === userId);
        } else this.model.blocked.delete(userId);
        return;
      }
      case 'wait':
        return this.actors.advance(CHALLENGE_APART_MS * 0.7);
      case 'restart':
        await this.actors.settle();
        return this.actors.restart();
    }
  }

  async add(next: Extract<Step, { do: 'add' }>): Promise<void> {
    const { model } = this;
    const userId = USERS[next.user] ?? '';
    const material = KEYS[next.key] as Key;
    const session = model.pick(model.logins, userId, next.session);
    const owner = this.actors.system.lookup('publicKey', material.publicKey);
    const challenge = this.challenge(next.challenge);
    const used = `${userId} ${challenge.id}`;
    const added = await this.ask(userId, {
      type: 'addKey',
      publicKey: material.publicKey,
      passKeyFlag: next.pass,
      sessionId: session?.id ?? '0',
      challenge,
      origin: ORIGIN,
      ...(next.proof ? { proof: this.proofOf(material) } : {}),
      ...(owner === undefined ? {} : { holder: parseKeyOwner(owner) }),
    });
    const expected = !session?.live
      ? 'SessionNotFound'
      : model.used.has(used)
        ? 'ChallengeExpired'
        : model.adding(userId, material, next.proof, next.pass);
    if (expected !== 'adds' && expected !== 'proves') {
      same(added, expected);
      return;
    }
    if (typeof added === 'string' || session === undefined) throw new Error(`added: ${String(added)}`);
    model.used.add(used);
    const holder = model.holder(material);
    if (expected === 'proves' && holder !== undefined) {
      holder.proven = true;
      same(added.replaced, []);
      return;
    }
    if (holder !== undefined) model.drop(holder);
    const replaced = next.pass ? model.keysOf(userId).filter((key) => key.password) : [];
    const key = this.note(userId, added.key.id, material, next.proof, next.pass);
    for (const old of replaced) model.drop(old, session);
    if (replaced.includes(session.key)) session.key = key;
    same(
      added.replaced,
      replaced.map((old) => old.id),
    );
    await this.actors.settle();
  }

  async update(next: Extract<Step, { do: 'update' }>): Promise<void> {
    const { model } = this;
    const userId = USERS[next.user] ?? '';
    const session = model.pick(model.logins, userId, next.session);
    const key = model.pick(model.keys, userId, next.key);
    const answer = await this.ask(userId, {
      type: 'updateKey',
      keyId: key?.id ?? '0',
      ...asker(next.admin, session),
      ...(next.mcp === undefined ? {} : { mcpAccess: next.mcp }),
      ...(next.card === undefined ? {} : { cardDavAccess: next.card }),
    });
    if (!next.admin && !session?.live) same(answer, 'SessionNotFound');
    else if (!key?.active) same(answer, 'KeyNotFound');
    else {
      if (next.mcp === false) model.end((each) => each.key === key && each.kind === 'mcp');
      if (next.card === false) model.end((each) => each.key === key && each.kind === 'contactSync');
      key.mcpAccess = next.mcp ?? key.mcpAccess;
      key.cardDavAccess = next.card ?? key.cardDavAccess;
    }
  }

  async remove(next: Extract<Step, { do: 'remove' }>): Promise<void> {
    const { model } = this;
    const userId = USERS[next.user] ?? '';
    const session = model.pick(model.logins, userId, next.session);
    const key = model.pick(model.keys, userId, next.key);
    const answer = await this.ask(userId, {
      type: 'removeKey',
      keyId: key?.id ?? '0',
      ...asker(next.admin, session),
    });
    if (!next.admin && !session?.live) same(answer, 'SessionNotFound');
    else if (!key?.active) same(answer, 'KeyNotFound');
    else if (typeof answer === 'string') throw new Error(answer);
    else same(answer.sessionsClosed, model.drop(key));
  }

  async logIn(next: Extract<Step, { do: 'login' | 'mcpLogin' }>): Promise<void> {
    const { model } = this;
    const material = KEYS[next.key] as Key;
    const owner = this.actors.system.lookup('publicKey', material.publicKey);
    const holder = model.holder(material);
    same(owner === undefined ? undefined : parseKeyOwner(owner).keyId, holder?.id);
    if (holder === undefined) return;
    const { id: keyId, userId } = holder;
    const challenge = next.do === 'login' ? this.challenge(next.challenge) : undefined;
    const used = `${userId} ${challenge?.id}`;
    const answer = await this.ask(userId, this.loginOf(next, keyId, material));
    const mayLogIn = next.do === 'mcpLogin' ? holder.mcpAccess : holder.proven;
    const denied = model.blocked.has(userId) || !mayLogIn;
    if (model.used.has(used)) same(answer, 'ChallengeExpired');
    else if (denied) same(answer, 'AccessDenied');
    else if (next.do === 'login' && !next.good) same(answer, 'InvalidSignature');
    else if (typeof answer === 'string') throw new Error(answer);
    else {
      if (challenge !== undefined) model.used.add(used);
      await this.noteSession(userId, answer.token, next.do === 'login' ? 'browser' : 'mcp', holder);
    }
  }

  loginOf(
    next: Extract<Step, { do: 'login' | 'mcpLogin' }>,
    keyId: string,
    material: Key,
  ): Asked<UserProtocol, 'login' | 'mcpLogin'> {
    const common = { keyId, publicKey: material.publicKey, origin: ORIGIN };
    if (next.do === 'login') {
      const { message, signature } = this.proofOf(material);
      const proof = { message: next.good ? message : Buffer.from('other'), signature };
      return { type: 'login', ...common, proof, challenge: this.challenge(next.challenge) };
    }
    const login = { type: 'mcpLogin', ...common, appId: null } as const;
    if (!next.verified) return { ...login, loginType: 'McpBasic' };
    const signature = Buffer.from(mcpProof(material, 7)['X-Signature'] ?? '', 'base64url');
    return { ...login, loginType: 'McpVerified', proof: { message: mcpLoginMessage(7n), signature } };
  }

  async addToken(next: Extract<Step, { do: 'addToken' }>): Promise<void> {
    const { model } = this;
    const userId = USERS[next.user] ?? '';
    const session = model.pick(model.logins, userId, next.session);
    const key = model.pick(model.keys, userId, next.key);
    const added = await this.ask(userId, {
      type: 'addContactSync',
      keyId: key?.id ?? '0',
      name: 'device',
      sessionId: session?.id ?? '0',
      origin: ORIGIN,
    });
    const tokens = model.tokens.filter((token) => token.live && token.key === key);
    if (!session?.live) same(added, 'SessionNotFound');
    else if (!key?.active) same(added, 'KeyNotFound');
    else if (!key.cardDavAccess) same(added, 'Forbidden');
    else if (tokens.length >= CONTACT_SYNC_TOKENS_MAX) same(added, 'ContactSyncLimitReached');
    else if (typeof added === 'string') throw new Error(added);
    else {
      const { token, record } = added;
      model.sessions.push({ id: record.id, userId, token, kind: 'contactSync', key, live: true });
    }
  }

  async removeToken(next: Extract<Step, { do: 'removeToken' }>): Promise<void> {
    const userId = USERS[next.user] ?? '';
    const token = this.model.pick(this.model.tokens, userId, next.token);
    const removed = await this.ask(userId, {
      type: 'removeContactSync',
      id: token?.id ?? '0',
      origin: ORIGIN,
    });
    same(removed, token?.live ? null : 'NotFound');
    if (token !== undefined) token.live = false;
  }

  async closeOthers(next: Extract<Step, { do: 'closeOthers' }>): Promise<void> {
    const userId = USERS[next.user] ?? '';
    const current = this.model.pick(this.model.logins, userId, next.session);
    if (!current?.live) return;
    const closed = await this.ask(userId, {
      type: 'closeSessions',
      currentSessionId: current.id,
      others: true,
      origin: ORIGIN,
    });
    const { logins } = this.model;
    const expected = this.model.end(
      (session) => session.userId === userId && session !== current && logins.includes(session),
    );
    same(closed, { sessionsClosed: expected, currentClosed: false });
  }

  /** Everything that can be seen of both accounts. */
  async compare(): Promise<void> {
    const { system, clock } = this.actors;
    for (const userId of USERS) {
      const keys = await system.query(user, userId, { type: 'keys' });
      const seen = keys.map((key) => ({
        id: key.id,
        publicKey: key.publicKey,
        proven: key.proven,
        password: keyTypeOf(key.flags) === 'PasswordKey',
        mcpAccess: hasFlag(key.flags, KeyFlag.McpAccess),
        cardDavAccess: hasFlag(key.flags, KeyFlag.CardDav),
      }));
      const expected = this.model.keysOf(userId).map(({ material, userId: _, active: __, ...key }) => ({
        ...key,
        publicKey: material.publicKey,
      }));
      same(byId(seen), byId(expected));
    }
    const gate = createSessionLookup({
      actors: system,
      clock: clock.read,
      adminPublicKeys: new Set(),
      onTouchFailed: (error) => {
        throw error;
      },
    });
    for (const session of this.model.sessions) {
      const { token, kind, userId } = session;
      const client = { address: '', userAgent: '' };
      const entered = gate.authenticate(token, kind, undefined, client, { username: userId });
      same(entered?.session.keyId, session.live ? session.key.id : undefined);
      const wrong = kind === 'browser' ? 'mcp' : kind === 'mcp' ? 'contactSync' : 'browser';
      same(gate.authenticate(token, wrong, undefined, client, { username: userId }), undefined);
      if (kind === 'contactSync')
        same(gate.authenticate(token, kind, undefined, client, { username: '103' }), undefined);
    }
  }
}

function byId<T extends { id: string }>(items: readonly T[]): T[] {
  return [...items].sort((a, b) => (a.id < b.id ? -1 : 1));
}

function same(actual: unknown, expected: unknown): void {
  const ordered = (value: unknown) =>
    JSON.stringify(value, (_name, item) =>
      item !== null && typeof item === 'object' && !Array.isArray(item)
        ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
        : item,
    );
  if (ordered(actual) !== ordered(expected))
    throw new Error(`${ordered(actual)} is not ${ordered(expected)}`);
}

// covers S164
t.test('account: any history of keys, logins, blocks and restarts ends as in the reference', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 25, maxLength: 60 }), async (steps) => {
      const pair = new Pair(new LiveSettings({ ActiveKeysLimit: ACTIVE_KEYS_MAX }));
      for (const [index, userId] of USERS.entries()) await pair.signUp(userId, KEYS[index] as Key);
      for (const next of steps) {
        await pair.take(next);
        await pair.compare();
      }
      same(pair.actors.bugs, []);
    }),
    runs(RUNS),
  );
  t.pass(`${count(RUNS)} histories`);
});
