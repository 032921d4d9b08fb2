/** Rows that earlier versions wrote, taken from their own code (test/fixtures/rows-1.json), open in the present form. */

import { readFileSync } from 'node:fs';
import t from 'tap';
import { user } from '../../../src/actors/accounts/user.ts';
import { initialUser } from '../../../src/actors/accounts/user-state.ts';
import { app } from '../../../src/actors/apps/app.ts';
import { type AppState, initialApp } from '../../../src/actors/apps/app-state.ts';
import { upcastApp } from '../../../src/actors/apps/app-upcast.ts';
import { deliveryLog } from '../../../src/actors/apps/delivery-log.ts';
import type { Operation } from '../../../src/actors/runtime/journal/port.ts';
import { sentKeyOf } from '../../../src/domain/apps.ts';
import { KeyFlag } from '../../../src/domain/keys.ts';
import { browserMessage } from '../../../src/domain/proofs.ts';
import { DAY_MS } from '../../../src/domain/time.ts';
import { inlineWorkers, makeKey, signText } from '../../support/account.ts';
import { createTestActors, type TestActors } from '../../support/actors/actors.ts';
import { commitRows } from '../../support/actors/commit-rows.ts';

interface Written {
  readonly events: readonly unknown[];
  readonly state: unknown;
}
const GOLDEN = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/rows-1.json', import.meta.url), 'utf8'),
) as { readonly user: readonly Written[]; readonly app: readonly Written[] };

/** An actor as an earlier version left it: a snapshot, or its events one by one. */
async function planted(
  kind: string,
  id: string,
  { events, state }: Written,
  snapshot: boolean,
  version = 1,
): Promise<TestActors> {
  const actors = createTestActors({ kinds: [app, deliveryLog, user] });
  await actors.settle();
  const { journal } = actors;
  const rows: Operation[] = snapshot
    ? [{ op: 'snapshot', kind, id, seq: 9, fromSeq: 1, row: journal.pack([version, 9, state, [], []]) }]
    : events.map((event, index) => ({
        op: 'append',
        kind,
        id,
        seq: index + 1,
        row: journal.pack([version, [event], [], []]),
      }));
  await commitRows(journal, rows);
  return actors;
}

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };

t.test(
  'accounts of version 1: every shape it had opens, from snapshots and from events, and continues',
  async (t) => {
    for (const [index, written] of GOLDEN.user.entries()) {
      for (const snapshot of [true, false]) {
        const note = `shape ${index + 1}, ${snapshot ? 'snapshot' : 'events'}`;
        const actors = await planted('user', '7', written, snapshot);
        const account = await actors.system.query(user, '7', { type: 'account' });
        const apps = index === 3 ? [{ appId: '70', name: 'Shop', url: 'https://shop.example' }] : [];
        const access = index === 3 ? [{ appId: '70', source: 'registration', revokedMs: null }] : [];
        t.match(
          account,
          { exists: true, blocked: false, keys: [{ id: '12' }], apps, appAccess: access },
          note,
        );
        actors.clock.nowMs = 8;
        const sessions = await actors.system.query(user, '7', { type: 'sessions' });
        t.same(
          sessions.map(({ id }) => id),
          ['99', '100'],
          `${note}: in the order of their opening`,
        );
        const command = { type: 'setBlocked' as const, blocked: true, origin: ORIGIN };
        await actors.system.ask(user, '7', command);
        await actors.restart();
        t.match(
          await actors.system.query(user, '7', { type: 'account' }),
          { blocked: true, apps },
          `${note}: both versions in one journal`,
        );
        t.same(actors.bugs, []);
      }
    }
  },
);

// covers R28 R55
t.test('accounts of version 1: a contact that was linked is kept', async (t) => {
  for (const snapshot of [true, false]) {
    const written = GOLDEN.user[2];
    if (written === undefined) throw new Error('no third shape');
    const actors = await planted('user', '7', written, snapshot);
    await actors.system.query(user, '7', { type: 'account' });
    // A user with a contact may remove the last key although the setting protects it.
    actors.settings.set('LastKeyProtection', 1);
    actors.clock.nowMs = 8;
    const command = { type: 'removeKey' as const, keyId: '12', sessionId: '100', origin: ORIGIN };
    t.match(await actors.system.ask(user, '7', command), { keyId: '12' });
  }
});

t.test('accounts of version 2: keys that stood by their id are found, and change, as a list', async (t) => {
  const actors = createTestActors({ kinds: [app, deliveryLog, user] });
  await actors.settle();
  const key = (id: string, flags: number) => ({
    id,
    ownerId: '7',
    publicKey: id.padStart(43, 'A'),
    signatureCounter: 0,
    flags,
    createdMs: 1,
    proven: true,
  });
  const state = {
    ...initialUser('7'),
    createdMs: 1,
    handle: 'h',
    keys: { '12': key('12', KeyFlag.UserKey), '9': key('9', KeyFlag.UserKey | KeyFlag.Deleted) },
  };
  const removal = { type: 'keyRemoved', keyId: '12' };
  const rows: Operation[] = [
    {
      op: 'snapshot',
      kind: 'user',
      id: '7',
      seq: 9,
      fromSeq: 1,
      row: actors.journal.pack([2, 9, state, [], []]),
    },
    {
      op: 'append',
      kind: 'user',
      id: '7',
      seq: 10,
      row: actors.journal.pack([2, [{ type: 'keyAdded', key: key('13', KeyFlag.UserKey) }], [], []]),
    },
  ];
  const commit = (operations: readonly Operation[]) => commitRows(actors.journal, operations);
  await commit(rows);
  const idsOf = async () => (await actors.system.query(user, '7', { type: 'keys' })).map(({ id }) => id);
  t.same(await idsOf(), ['12', '13'], 'the removed one is kept and not shown');
  await actors.restart();
  await commit([
    { op: 'append', kind: 'user', id: '7', seq: 11, row: actors.journal.pack([2, [removal], [], []]) },
  ]);
  t.same(await idsOf(), ['13'], 'an event of that version finds its key');
  t.same(actors.bugs, []);
});

t.test('accounts of version 3: knew no used challenges, and keep them from now on', async (t) => {
  const { usedChallenges: _, ...before } = { ...initialUser('7'), createdMs: 1, handle: 'h' };
  for (const [note, events, state] of [
    ['snapshot', [], before],
    ['events', [{ type: 'accountCreated', utcMs: 1, handle: 'h' }], undefined],
  ] as const) {
    const actors = createTestActors({ kinds: [app, deliveryLog, user], ports: inlineWorkers() });
    await actors.settle();
    const { journal, clock, system } = actors;
    const key = makeKey();
    const owned = {
      id: '12',
      ownerId: '7',
      publicKey: key.publicKey,
      signatureCounter: 0,
      flags: KeyFlag.UserKey,
      createdMs: 1,
      proven: true,
    };
    const added = { type: 'keyAdded', key: owned };
    const rows: Operation[] = [
      ...(state === undefined
        ? []
        : [
            {
              op: 'snapshot',
              kind: 'user',
              id: '7',
              seq: 1,
              fromSeq: 1,
              row: journal.pack([3, 1, state, [], []]),
            } as const,
          ]),
      ...[...events, added].map((event, index): Operation => {
        const seq = index + (state === undefined ? 1 : 2);
        return { op: 'append', kind: 'user', id: '7', seq, row: journal.pack([3, [event], [], []]) };
      }),
    ];
    await commitRows(journal, rows);
    const signature = Buffer.from(signText(key, `p\n${key.publicKey}`), 'base64url');
    const login = (challengeId: number) =>
      actors.system.ask(user, '7', {
        type: 'login',
        keyId: '12',
        publicKey: key.publicKey,
        proof: { message: browserMessage('p\n', key.publicKey), signature },
        challenge: { id: challengeId, endsMs: clock.nowMs + 1_000 },
        origin: ORIGIN,
      });
    t.equal((await system.query(user, '7', { type: 'account' })).createdMs, 1, note);
    t.ok((await login(5)).token, note);
    await actors.restart();
    await t.rejects(login(5), { message: 'Challenge expired' }, note);
    t.ok((await login(6)).token, note);
    t.same(actors.bugs, []);
  }
});

// covers R14 R63
t.test('accounts of version 4: registrations have no Idempotency-Key, new ones keep theirs', async (t) => {
  const entry = { appId: '70', name: 'Shop', url: 'https://shop.example' };
  const state = { ...initialUser('7'), createdMs: 1, handle: 'h', apps: [entry], appsPlaced: 1 };
  const created = { type: 'accountCreated', utcMs: 1, handle: 'h' };
  const written = { events: [created, { type: 'appPlaced', entry, utcMs: 1 }], state };
  for (const snapshot of [true, false]) {
    const note = snapshot ? 'snapshot' : 'events';
    const actors = await planted('user', '7', written, snapshot, 4);
    const { system } = actors;
    const key = { keyId: 'k', sealed: 's' };
    const patch = { name: 'Other', url: 'https://other.example' };
    const request = { key: 'once', fingerprint: 'f' };
    const issued = () => actors.system.query(user, '7', { type: 'issuedKey', key: 'once' });
    t.equal(await issued(), undefined, note);
    await system.ask(user, '7', { type: 'upsertApp', patch, key, request, origin: ORIGIN });
    await actors.restart();
    t.same(await issued(), key, `${note}: both versions in one journal`);
    const { apps } = await actors.system.query(user, '7', { type: 'account' });
    t.match(apps, [entry, { ...patch, request: { ...request, apiKey: key } }], note);
    t.same(actors.bugs, []);
  }
});

// covers R64 R85
t.test('applications of version 2: the new key of a rotation stays the one that is sent', async (t) => {
  const [written] = GOLDEN.app;
  if (written === undefined) throw new Error('no application');
  const rotation = { type: 'keyRotated', key: { keyId: 'k2', sealed: 's2' }, utcMs: 20 };
  const [k1] = (written.state as AppState).keys;
  const k2 = { keyId: 'k2', sealed: 's2', createdMs: 20, expiresMs: null };
  const keys = [k2, { ...k1, expiresMs: 20 + DAY_MS }];
  const { delivery, maxBatch } = initialApp('70');
  const state = { ...(written.state as object), keys, delivery, maxBatch };
  const rotated = { events: [...written.events, rotation], state };
  for (const snapshot of [true, false]) {
    const actors = await planted('app', '70', rotated, snapshot, 2);
    const keysAt = async (nowMs: number) => {
      actors.clock.nowMs = nowMs;
      const valid = await actors.system.query(app, '70', { type: 'keys' });
      return { valid: valid.map(({ keyId }) => keyId), sent: sentKeyOf(valid)?.keyId };
    };
    const note = snapshot ? 'snapshot' : 'events';
    t.same(await keysAt(21), { valid: ['k2', 'k'], sent: 'k2' }, note);
    t.same(await keysAt(20 + DAY_MS), { valid: ['k2'], sent: 'k2' }, note);
    actors.clock.nowMs = 30;
    const key = { keyId: 'k3', sealed: 's3' };
    await actors.system.ask(app, '70', { type: 'rotateKey', userId: '7', key, origin: ORIGIN });
    await actors.restart();
    t.same(await keysAt(31), { valid: ['k3', 'k2'], sent: 'k2' }, `${note}: both versions in one journal`);
    t.same(actors.bugs, []);
  }
});

t.test('applications of version 1: they have a webhook that begins with their registration', async (t) => {
  for (const written of GOLDEN.app) {
    for (const snapshot of [true, false]) {
      const actors = await planted('app', '70', written, snapshot);
      const view = await actors.system.query(app, '70', { type: 'view' });
      t.match(view, {
        ownerId: '7',
        webhookUrl: 'https://shop.example/hook',
        maxBatch: 100,
        webhook: { state: 'active', failures: 0, parked: [] },
      });
      t.match(await actors.system.query(app, '70', { type: 'webhook' }), {
        sinceMs: 9,
        cursor: null,
        behind: true,
        currencies: ['EUR'],
      });
      t.same(actors.bugs, []);
    }
  }
});

t.test('applications before version 4: they have no redirect URIs', async (t) => {
  for (const written of GOLDEN.app) {
    for (const snapshot of [true, false]) {
      const actors = await planted('app', '70', written, snapshot);
      const view = await actors.system.query(app, '70', { type: 'view' });
      t.strictSame(view?.redirectUris, []);
    }
  }
  const { redirectUris: _, ...earlier } = initialApp('70');
  for (const version of [2, 3]) t.strictSame(upcastApp({ version, state: earlier }).state, initialApp('70'));
});

t.test(
  'accounts of version 9: have no credentials for other servers, and keep them from now on',
  async (t) => {
    const credential = {
      server: 'notion',
      url: 'https://mcp.example/mcp',
      kind: 'token',
      sealed: { keyId: 'k1', sealed: 'sealed' },
      connectedMs: 2,
      expiresMs: null,
      canRefresh: false,
      refreshing: null,
    };
    const { upstreams: _, ...before } = { ...initialUser('7'), createdMs: 1, handle: 'h' };
    const created = { type: 'accountCreated', utcMs: 1, handle: 'h' };
    for (const [form, version, written] of [
      ['snapshot', 9, { events: [], state: before }],
      ['events', 9, { events: [created], state: undefined }],
      ['snapshot', 10, { events: [], state: { ...before, upstreams: null } }],
      [
        'snapshot',
        10,
        { events: [], state: { ...before, upstreams: { credentials: [credential], logins: [] } } },
      ],
    ] as const) {
      const note = `${form} of version ${version}`;
      const actors = await planted('user', '7', written, form === 'snapshot', version);
      const list = () => actors.system.query(user, '7', { type: 'upstreams' });
      const had = (written.state as { upstreams?: object | null } | undefined)?.upstreams;
      t.strictSame(await list(), had ? [credential] : [], note);
      await actors.restart();
      const row = actors.journal.pack([10, [{ type: 'upstreamConnected', credential }], [], []]);
      const seq = form === 'snapshot' ? 10 : 2;
      await commitRows(actors.journal, [{ op: 'append', kind: 'user', id: '7', seq, row }]);
      t.strictSame(await list(), [credential], `${note}, and an event of version 10`);
      t.same(actors.bugs, []);
    }
  },
);
