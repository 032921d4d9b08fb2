/**
 * Sessions and grants of an application: they live while the entry that they came in by stays, whatever the clocks of the
 * nodes say that made their ids. Accounts of version 6 kept no entry and are judged by the order of ids.
 */

import t from 'tap';
import { sessionOwner } from '../../../src/actors/accounts/owners.ts';
import { user } from '../../../src/actors/accounts/user.ts';
import { evolveUser, initialUser } from '../../../src/actors/accounts/user-state.ts';
import type { HostGrant, SessionRecord, UserEvent } from '../../../src/actors/accounts/user-types.ts';
import { app } from '../../../src/actors/apps/app.ts';
import { formatIndexEntry } from '../../../src/actors/apps/app-access-index.ts';
import type { AppEvent, AppFlags } from '../../../src/actors/apps/app-state.ts';
import { deliveryLog } from '../../../src/actors/apps/delivery-log.ts';
import type { Operation } from '../../../src/actors/runtime/journal/port.ts';
import { hashToken, makeToken } from '../../../src/domain/ids.ts';
import { KeyFlag, type UserKey } from '../../../src/domain/keys.ts';
import { createSessionLookup, indexEntryOf } from '../../../src/io/http/checks/session-lookup.ts';
import { createTestActors, START_MS } from '../../support/actors/actors.ts';
import { commitRows } from '../../support/actors/commit-rows.ts';

const APP_ID = '70';
const OWNER = { userId: '7', keyId: '12', publicKey: 'A'.repeat(43) };
const HELPER = { userId: '8', keyId: '13', publicKey: `${'A'.repeat(42)}E` };
type Person = typeof OWNER;
const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };
/** Ids of the same moment, by a clock that is slow and by one that is fast. */
const SLOW = String(BigInt(START_MS - 600_000) << 20n);
const FAST = String(BigInt(START_MS + 600_000) << 20n);
const CLIENT = { address: '', userAgent: '' };
const SHOP = { name: 'Shop', url: 'https://shop.example' };
const PLACED: UserEvent = { type: 'appPlaced', entry: { appId: APP_ID, ...SHOP }, utcMs: 1 };
const OPEN: AppFlags = {
  approved: true,
  mcpEnabled: true,
  disabled: false,
  mcpPublicKey: HELPER.publicKey,
};

function keyOf({ userId, keyId, publicKey }: Person): UserKey {
  const flags = KeyFlag.UserKey | KeyFlag.McpAccess;
  return { id: keyId, ownerId: userId, publicKey, signatureCounter: 0, flags, createdMs: 1, proven: true };
}

function tokenOf({ userId }: Person, byte: number): string {
  return makeToken(userId, new Uint8Array(32).fill(byte));
}

/** A session in the form of version 6. */
function sessionOf({ keyId }: Person, id: string, token: string, grantId?: string): SessionRecord {
  return {
    id,
    kind: 'mcp',
    loginType: grantId === undefined ? 'McpApp' : 'McpVerified',
    keyId,
    appId: grantId === undefined ? APP_ID : null,
    ...(grantId === undefined ? {} : { grantId }),
    hash: hashToken(token) ?? '',
    createdMs: START_MS,
    lastSeenMs: START_MS,
    expiresMs: START_MS + 3_600_000,
    ip: ORIGIN.ip,
    userAgent: ORIGIN.userAgent,
  };
}

function grantOf({ keyId }: Person, id: string): HostGrant {
  return {
    id,
    clientKey: 'c',
    kind: 'document',
    name: 'Host',
    host: 'host.example',
    appId: APP_ID,
    audience: '/connect/mcp',
    scopes: ['tools'],
    keyId,
    codeId: 1,
    createdMs: START_MS,
    rotatedMs: START_MS,
    refreshHash: 'r',
    formers: [],
  };
}

interface Given {
  /** Ticks of the application. */
  readonly openedTick: string;
  readonly keyTick?: string;
  /** Version of the rows of accounts: 6 unless given. */
  readonly version?: number;
  readonly sessions?: readonly (readonly [Person, SessionRecord])[];
  readonly grants?: readonly (readonly [Person, HostGrant])[];
  readonly snapshot?: boolean;
}

/** An open application with an explicit key, its owner, and the account of that key, as version 6 left them. */
async function start(given: Given) {
  const actors = createTestActors({ kinds: [app, deliveryLog, user] });
  const { openedTick, keyTick = '1', version = 6, sessions = [], grants = [], snapshot = false } = given;
  await actors.settle();
  const { journal, clock } = actors;
  const rows: Operation[] = [];
  const planted = (kind: string, id: string, version: number, events: readonly unknown[]) =>
    events.forEach((event, index) => {
      rows.push({ op: 'append', kind, id, seq: index + 1, row: journal.pack([version, [event], [], []]) });
    });
  const key = { keyId: 'k', sealed: 's' };
  const appEvents: AppEvent[] = [
    { type: 'registered', ownerId: OWNER.userId, ...SHOP, key, utcMs: 1 },
    { type: 'joined', userId: HELPER.userId },
    { type: 'administered', flags: OPEN, openedTick, keyTick },
  ];
  planted('app', APP_ID, 4, appEvents);
  const entry = { ownerId: OWNER.userId, openedTick, keyTick, mcpPublicKey: HELPER.publicKey };
  rows.push({ op: 'index', index: 'appId', key: APP_ID, owner: formatIndexEntry(entry) });
  for (const person of [OWNER, HELPER]) {
    const { userId } = person;
    const own = sessions.flatMap(([who, session]) => (who === person ? [session] : []));
    const granted = grants.flatMap(([who, grant]) => (who === person ? [grant] : []));
    const events: UserEvent[] = [
      { type: 'accountCreated', utcMs: 1, handle: 'h' },
      { type: 'keyAdded', key: keyOf(person) },
      ...(person === OWNER ? [PLACED] : []),
      ...granted.map((grant): UserEvent => ({ type: 'grantOpened', grant })),
      ...own.map((session): UserEvent => ({ type: 'sessionOpened', session, as: 'login' })),
    ];
    if (snapshot) {
      const row = journal.pack([version, 4, events.reduce(evolveUser, initialUser(userId)), [], []]);
      rows.push({ op: 'snapshot', kind: 'user', id: userId, seq: 4, fromSeq: 1, row });
    } else planted('user', userId, version, events);
    for (const { id, hash } of own) {
      const owner = sessionOwner({ userId, sessionId: id });
      rows.push({ op: 'index', index: 'sessionHash', key: hash, owner });
    }
  }
  await commitRows(journal, rows);
  const lookup = createSessionLookup({
    actors: actors.system,
    clock: clock.read,
    adminPublicKeys: new Set(),
    onTouchFailed: () => undefined,
  });
  return {
    actors,
    enters: (token: string, audience: string | null = null) =>
      lookup.authenticate(token, 'mcp', undefined, CLIENT, { audience }) !== undefined,
    login: async ({ userId, keyId, publicKey }: Person) => {
      const indexEntry = indexEntryOf(actors.system, APP_ID);
      if (indexEntry === undefined) throw new Error('no application');
      const login = { type: 'mcpLogin', loginType: 'McpApp', keyId, publicKey, appId: APP_ID } as const;
      return (await actors.system.ask(user, userId, { ...login, indexEntry, origin: ORIGIN })).token;
    },
    administer: async (...steps: readonly Partial<AppFlags>[]) => {
      for (const flags of steps) {
        const command = { type: 'administer', flags, by: '1', address: ORIGIN.ip } as const;
        await actors.system.ask(app, APP_ID, command);
      }
    },
    listed: async ({ userId }: Person) => {
      const sessions = await actors.system.query(user, userId, { type: 'sessions' });
      return sessions.map(({ id }) => id);
    },
  };
}

// covers C10
t.test('McpApp: a session that is older than the opening by another clock is valid', async (t) => {
  const { login, enters, actors } = await start({ openedTick: FAST, keyTick: FAST });
  const tokens = [await login(OWNER), await login(HELPER)];
  t.same(
    tokens.map((token) => enters(token)),
    [true, true],
  );
  await actors.restart();
  t.same(
    tokens.map((token) => enters(token)),
    [true, true],
    'after a restart',
  );
  t.same(actors.bugs, []);
});

// covers C10
t.test('McpApp: a session that is younger than the closing by another clock is over at once', async (t) => {
  const token = tokenOf(OWNER, 1);
  const entry = { openedTick: SLOW, keyTick: '1' };
  // Its node's clock is ten minutes ahead of the node that closes the application.
  const before = { ...sessionOf(OWNER, FAST, token), entry };
  const given = { openedTick: SLOW, version: 7, sessions: [[OWNER, before]] } as const;
  const { login, enters, administer, listed, actors } = await start(given);
  t.equal(enters(token), true);
  await administer({ disabled: true });
  t.equal(enters(token), false, 'closed');
  await administer({ disabled: false });
  t.equal(enters(token), false, 'opened again');
  const after = await login(OWNER);
  await actors.settle();
  t.equal(enters(after), true, 'opened since');
  const left = await listed(OWNER);
  t.same([left.length, left.includes(FAST)], [1, false], 'the former one left the list');
  t.same(actors.bugs, []);
});

t.test('McpApp: another explicit key, and the first one back, end sessions by the key alone', async (t) => {
  const { login, enters, administer, listed, actors } = await start({ openedTick: FAST, keyTick: FAST });
  const tokens = [await login(OWNER), await login(HELPER)];
  await administer({ mcpPublicKey: OWNER.publicKey }, { mcpPublicKey: HELPER.publicKey });
  t.same(
    tokens.map((token) => enters(token)),
    [true, false],
  );
  const again = await login(HELPER);
  await actors.settle();
  t.equal(enters(again), true);
  t.same([(await listed(OWNER)).length, (await listed(HELPER)).length], [1, 1]);
});

t.test('appClosed: ends what came in by the named opening or key, other sessions by the tick', async (t) => {
  const old = sessionOf(OWNER, SLOW, tokenOf(OWNER, 1));
  const openedTick = String(BigInt(SLOW) - 1n);
  const { login, listed, actors } = await start({ openedTick, sessions: [[OWNER, old]] });
  await login(OWNER);
  const [, opened = ''] = await listed(OWNER);
  const closed = (over: { openedTick?: string; keyTick?: string } | undefined, tick: string) =>
    actors.system.tell(user, OWNER.userId, {
      type: 'appClosed',
      appId: APP_ID,
      tick,
      ...(over === undefined ? {} : { over }),
    });
  const left = async () => {
    await actors.settle();
    return listed(OWNER);
  };
  await closed({ openedTick: '5' }, SLOW);
  t.same(await left(), [old.id, opened], 'another opening, and no older session');
  await closed({ keyTick: '5' }, FAST);
  t.same(await left(), [opened], 'a session without an entry is older than the tick');
  await closed({ openedTick }, '2');
  t.same(await left(), [], 'the opening that it came in by');
  await login(OWNER);
  t.equal((await left()).length, 1);
  await closed(undefined, FAST);
  t.same(await left(), [], 'a message of an earlier version: the tick decides');
});

// covers C10
t.test(
  'accounts of version 6: McpApp sessions and grants are served, and end, by the order of ids',
  async (t) => {
    const younger = [tokenOf(OWNER, 1), tokenOf(HELPER, 1)] as const;
    const older = [tokenOf(OWNER, 2), tokenOf(HELPER, 2)] as const;
    const hosted = tokenOf(HELPER, 3);
    const after = String(BigInt(SLOW) + 5n);
    const before = String(BigInt(SLOW) - 5n);
    for (const snapshot of [true, false]) {
      const note = snapshot ? 'snapshot' : 'events';
      const { enters, administer, login, actors } = await start({
        openedTick: SLOW,
        keyTick: SLOW,
        snapshot,
        grants: [[HELPER, grantOf(HELPER, after)]],
        sessions: [
          [OWNER, sessionOf(OWNER, before, older[0])],
          [OWNER, sessionOf(OWNER, after, younger[0])],
          [HELPER, sessionOf(HELPER, before, older[1])],
          [HELPER, sessionOf(HELPER, after, younger[1])],
          [HELPER, sessionOf(HELPER, String(BigInt(after) + 1n), hosted, after)],
        ],
      });
      t.same(
        [...younger, ...older].map((token) => enters(token)),
        [true, true, false, false],
        note,
      );
      t.equal(enters(hosted, '/connect/mcp'), true, `${note}: of a connected host`);
      const fresh = await login(OWNER);
      await actors.restart();
      t.same(
        [younger[0], fresh].map((token) => enters(token)),
        [true, true],
        `${note}: both versions`,
      );
      await administer({ disabled: true }, { disabled: false });
      t.same(
        [...younger, fresh].map((token) => enters(token)),
        [false, false, false],
        `${note}: closed`,
      );
      t.equal(enters(hosted, '/connect/mcp'), false, `${note}: the host with it`);
      t.same(actors.bugs, []);
    }
  },
);
