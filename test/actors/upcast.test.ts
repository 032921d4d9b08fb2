/** Rows that earlier versions wrote, taken from their own code (test/fixtures/rows-1.json), open in the present form. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { app } from '../../src/actors/app.ts';
import type { AppState } from '../../src/actors/app-state.ts';
import { deliveryLog } from '../../src/actors/delivery-log.ts';
import type { Operation } from '../../src/actors/runtime/journal-port.ts';
import { user } from '../../src/actors/user.ts';
import type { SessionRecord } from '../../src/actors/user-state.ts';
import { initialUser } from '../../src/actors/user-state.ts';
import type { AppView } from '../../src/domain/apps.ts';
import { KeyFlag, type UserKey } from '../../src/domain/keys.ts';
import { createTestActors, type TestActors } from '../support/actors.ts';

interface Written {
  readonly events: readonly unknown[];
  readonly state: unknown;
}
const GOLDEN = JSON.parse(
  readFileSync(new URL('../../../test/fixtures/rows-1.json', import.meta.url), 'utf8'),
) as { readonly user: readonly Written[]; readonly app: readonly Written[] };

/** An actor as version 1 left it: a snapshot, or its events one by one. */
async function planted(
  kind: string,
  id: string,
  { events, state }: Written,
  snapshot: boolean,
): Promise<TestActors> {
  const actors = createTestActors({ kinds: [app, deliveryLog, user] });
  await actors.settle();
  const { journal } = actors;
  const rows: Operation[] = snapshot
    ? [{ op: 'snapshot', kind, id, seq: 9, fromSeq: 1, row: journal.pack([1, 9, state, [], []]) }]
    : events.map((event, index) => ({
        op: 'append',
        kind,
        id,
        seq: index + 1,
        row: journal.pack([1, [event], [], []]),
      }));
  await new Promise<void>((resolve, reject) =>
    journal.commit(rows, (error) => (error === undefined ? resolve() : reject(error))),
  );
  return actors;
}

const ORIGIN = { ip: '192.0.2.1', userAgent: 'test' };

t.test(
  'accounts of version 1: every shape it had opens, from snapshots and from events, and goes on',
  async (t) => {
    for (const [index, written] of GOLDEN.user.entries()) {
      for (const snapshot of [true, false]) {
        const note = `shape ${index + 1}, ${snapshot ? 'snapshot' : 'events'}`;
        const actors = await planted('user', '7', written, snapshot);
        const query = <T>(body: object) => actors.system.query<T>(user, '7', body);
        const account = await query<object>({ type: 'account' });
        const apps = index === 3 ? [{ appId: '70', name: 'Shop', url: 'https://shop.example' }] : [];
        const access = index === 3 ? [{ appId: '70', source: 'registration', revokedMs: null }] : [];
        t.match(
          account,
          { exists: true, blocked: false, keys: [{ id: '12' }], apps, appAccess: access },
          note,
        );
        const { settings } = actors;
        const sessions = await query<SessionRecord[]>({ type: 'sessions', nowMs: 8, settings });
        t.same(
          sessions.map(({ id }) => id),
          ['99', '100'],
          `${note}: in the order of their opening`,
        );
        const command = { type: 'setBlocked', blocked: true, origin: ORIGIN };
        await actors.system.ask(user, '7', command);
        await actors.restart();
        t.match(
          await query({ type: 'account' }),
          { blocked: true, apps },
          `${note}: both versions in one journal`,
        );
        t.same(actors.bugs, []);
      }
    }
  },
);

t.test('accounts of version 1: a contact that was linked is kept', async (t) => {
  for (const snapshot of [true, false]) {
    const written = GOLDEN.user[2];
    if (written === undefined) throw new Error('no third shape');
    const actors = await planted('user', '7', written, snapshot);
    await actors.system.query(user, '7', { type: 'account' });
    // Whoever has a contact may remove the last key although the setting protects it.
    actors.settings.set('LastKeyProtection', 1);
    actors.clock.nowMs = 8;
    const command = { type: 'removeKey', keyId: '12', sessionId: '100', origin: ORIGIN };
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
  const commit = (operations: readonly Operation[]) =>
    new Promise<void>((resolve, reject) =>
      actors.journal.commit(operations, (error) => (error === undefined ? resolve() : reject(error))),
    );
  await commit(rows);
  const idsOf = async () =>
    (await actors.system.query<UserKey[]>(user, '7', { type: 'keys' })).map(({ id }) => id);
  t.same(await idsOf(), ['12', '13'], 'the removed one is kept and not shown');
  await actors.restart();
  await commit([
    { op: 'append', kind: 'user', id: '7', seq: 11, row: actors.journal.pack([2, [removal], [], []]) },
  ]);
  t.same(await idsOf(), ['13'], 'an event of that version finds its key');
  t.same(actors.bugs, []);
});

t.test('applications of version 1: they have a webhook that begins with their registration', async (t) => {
  for (const written of GOLDEN.app) {
    for (const snapshot of [true, false]) {
      const actors = await planted('app', '70', written, snapshot);
      const view = await actors.system.query<AppView>(app, '70', { type: 'view' });
      t.match(view, {
        ownerId: '7',
        webhookUrl: 'https://shop.example/hook',
        maxBatch: 100,
        webhook: { state: 'active', failures: 0, parked: [] },
      });
      t.match(await actors.system.query<AppState>(app, '70', { type: 'webhook' }), {
        sinceMs: 9,
        cursor: null,
        behind: true,
        currencies: ['EUR'],
      });
      t.same(actors.bugs, []);
    }
  }
});
