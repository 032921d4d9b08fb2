/** Records of an account as memory keeps them: every field is there, and all are of one shape. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext, Script } from 'node:vm';
import { Packr } from 'msgpackr';
import t from 'tap';
import { contextOf } from '../../../src/actors/accounts/user-session-check.ts';
import { evolveUser, initialUser, restoredUser } from '../../../src/actors/accounts/user-state.ts';
import type { SessionRecord, UserEvent, UserState } from '../../../src/actors/accounts/user-types.ts';
import type { UserKey } from '../../../src/domain/keys.ts';

setFlagsFromString('--allow-natives-syntax');
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
/** Do the engine's descriptions of two objects agree? Only then does neither have room to spare. */
const alike = new Script('(a, b) => %HaveSameMap(a, b)').runInThisContext() as (
  a: object,
  b: object,
) => boolean;

const KEY: UserKey = {
  id: '11',
  ownerId: '1',
  publicKey: 'A'.repeat(43),
  signatureCounter: 0,
  flags: 10,
  createdMs: 1_800_000_000_000,
  proven: true,
};

const SESSION: SessionRecord = {
  id: '12',
  kind: 'browser',
  loginType: 'McpVerified',
  keyId: '11',
  appId: null,
  hash: 'h'.repeat(43),
  createdMs: 1_800_000_000_001,
  lastSeenMs: 1_800_000_000_002,
  expiresMs: 1_800_086_400_000,
  ip: '192.0.2.7',
  userAgent: 'agent/1.0',
};

/** Rebuilds a record like a decoder: fields added one by one, in an order of its own. */
function decoded<T extends object>(record: T, turned: boolean): T {
  const fields = Object.entries(record);
  if (turned) fields.reverse();
  const made: Record<string, unknown> = {};
  for (const [name, value] of fields) made[name] = value;
  return made as T;
}

function after(events: readonly UserEvent[]): UserState {
  return events.reduce(evolveUser, initialUser('1'));
}

function account(turned: boolean, key: UserKey = KEY): UserState {
  return after([
    { type: 'accountCreated', utcMs: 1, handle: 'handle' },
    { type: 'keyAdded', key: decoded(key, turned) },
    { type: 'sessionOpened', session: decoded(SESSION, turned), as: 'login' },
  ]);
}

t.test('account: keys, sessions and log hold every field, however the row gave them', (t) => {
  for (const turned of [false, true]) {
    const { keys, sessions, log } = account(turned);
    t.strictSame(keys, [{ ...KEY, lastUsedMs: SESSION.createdMs }]);
    t.strictSame(sessions, [SESSION]);
    const { id, createdMs, kind, loginType, keyId, appId, ip, userAgent } = SESSION;
    const session = { kind, loginType, keyId, appId, ip, userAgent };
    t.strictSame(log, [{ id, utcMs: createdMs, event: 'login', ok: true, error: null, ...session }]);
  }
  t.end();
});

t.test('account: a passkey with a name keeps what only passkeys have, through a login and a change', (t) => {
  const passkey: UserKey = {
    ...KEY,
    flags: 4,
    fido2PublicKey: new Uint8Array([1, 2, 3]),
    userVerified: true,
    backedUp: false,
    transports: ['usb'],
    counterReported: 7,
    name: 'blue one',
  };
  const used: UserEvent = { type: 'credentialUsed', keyId: '11', counter: 8, backedUp: true };
  const { keys } = evolveUser(account(true, passkey), used);
  t.strictSame(keys, [{ ...passkey, lastUsedMs: SESSION.createdMs, counterReported: 8, backedUp: true }]);
  t.end();
});

t.test('account: a session without a key, and one whose key is not there, keep what they say', (t) => {
  for (const keyId of [null, '99']) {
    const state = after([
      { type: 'sessionOpened', session: { ...SESSION, keyId, loginType: null }, as: 'sign_up' },
    ]);
    t.equal(state.sessions[0]?.keyId, keyId);
    t.equal(state.sessions[0]?.loginType, null);
  }
  t.end();
});

// covers S99
t.test(
  'account: a session keeps that it was signed; one from before that was written proved nothing',
  (t) => {
    const app: SessionRecord = { ...SESSION, kind: 'mcp', loginType: 'McpApp', appId: '70' };
    const records = [app, { ...app, id: '13', signed: true as const }];
    const opened = records.map((session): UserEvent => ({ type: 'sessionOpened', session, as: 'login' }));
    const touched: UserEvent = { type: 'sessionTouched', sessionId: '13', utcMs: SESSION.lastSeenMs };
    const state = after([{ type: 'keyAdded', key: KEY }, ...opened, touched]);
    t.strictSame(state.sessions, records);
    const restored = restoredUser(new Packr().unpack(new Packr().pack(state)) as UserState, '1');
    t.strictSame(restored.sessions, records);
    const noAdmins = { adminPublicKeys: new Set<string>() };
    const proven = [...restored.sessions, SESSION].map((one) => contextOf(state, one, noAdmins)?.proven);
    t.strictSame(proven, [false, true, true], 'a McpVerified session says it by its type');
    t.end();
  },
);

t.test('account: records are of one shape, fresh or decoded, used or not', (t) => {
  const fresh = account(false);
  const touched: UserEvent = { type: 'sessionTouched', sessionId: '12', utcMs: SESSION.lastSeenMs + 60_000 };
  const others = [
    account(true),
    evolveUser(account(true), touched),
    evolveUser(fresh, { type: 'keyProven', keyId: '11' }),
  ];
  for (const [place, other] of others.entries()) {
    for (const list of ['keys', 'sessions', 'log'] as const) {
      const [first, second] = [fresh[list][0], other[list][0]];
      t.ok(first !== undefined && second !== undefined && alike(first, second), `${list} of ${place}`);
    }
  }
  t.notOk(alike(decoded(SESSION, true), fresh.sessions[0] ?? {}), 'a decoded one would be of another');
  t.end();
});

t.test('account of a snapshot: the same, and what others remember of it does not keep the row', (t) => {
  const opened = Array.from({ length: 100 }, (_, place): UserEvent => {
    const session = {
      ...SESSION,
      id: String(1_000_000_000_000_000 + place),
      hash: `${place}`.padStart(43, 'h'),
    };
    return { type: 'sessionOpened', session, as: 'login' };
  });
  const state = opened.reduce(evolveUser, account(false));
  const row = new Packr().pack(state) as Buffer;
  const remembered: unknown[] = [];
  const restore = () => restoredUser(new Packr().unpack(row) as UserState, '1');
  t.strictSame(restore(), state);
  const remember = () => {
    const { userId, keys, sessions } = restore();
    const [key, session] = [keys[0], sessions.at(-1)];
    remembered.push([userId, key?.id, key?.publicKey, session?.id, session?.hash, session?.keyId]);
    // A use is an event: its user agent goes to the table that all accounts share.
    const touched: UserEvent = { type: 'sessionTouched', sessionId: session?.id ?? '', utcMs: 1 };
    evolveUser(restore(), touched);
  };
  for (let each = 0; each < 100; each += 1) remember();
  collect();
  const before = process.memoryUsage().heapUsed;
  for (let each = 0; each < 500; each += 1) remember();
  collect();
  const kept = (process.memoryUsage().heapUsed - before) / 500;
  t.ok(kept < row.length / 10, `${kept.toFixed(0)} bytes of an account whose row has ${row.length}`);
  t.equal(remembered.length, 600);
  t.end();
});
