/** Rows of a journal on disk that are not what was written: each kind of row, and what a reader gets in its place. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from 'lmdb';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import { openEventLog } from '../../../../src/actors/events/log.ts';
import type { Damage } from '../../../../src/actors/runtime/journal/damage-report.ts';
import { type DiskJournal, openJournal } from '../../../../src/actors/runtime/journal/lmdb.ts';
import type { Operation } from '../../../../src/actors/runtime/journal/port.ts';
import type { Part } from '../../../../src/actors/runtime/journal/reader.ts';
import { nodeSchedule } from '../../../../src/actors/runtime/runtime-context.ts';
import type { BugReport } from '../../../../src/actors/runtime/supervision.ts';
import { createActorSystem, type RunningSystem } from '../../../../src/actors/runtime/system.ts';
import { GatewayError } from '../../../../src/domain/errors.ts';
import { LiveSettings } from '../../../../src/domain/settings/settings.ts';
import { searchAudit } from '../../../../src/io/admin/audit.ts';
import { account } from '../../../support/actors/account-kind.ts';
import { seededBytes } from '../../../support/actors/actors.ts';
import { commitRows } from '../../../support/actors/commit-rows.ts';

const STEP_BYTES = 1024 * 1024;
const DAY_MS = 86_400_000;

interface Opened {
  readonly journal: DiskJournal;
  readonly found: Damage[];
}

function scratch(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-rot-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function openIn(directory: string): Promise<Opened> {
  const found: Damage[] = [];
  const journal = await openJournal({
    directory,
    stepBytes: STEP_BYTES,
    onDamage: (row) => found.push(row),
  });
  return { journal, found };
}

/** Journals that their system closes. */
const served = new WeakSet<DiskJournal>();

type Change = (row: Buffer) => Buffer;

const flipped =
  (byte: number, bit = 0): Change =>
  (row) => {
    row[byte] = (row[byte] ?? 0) ^ (1 << bit);
    return row;
  };
const zeroed: Change = (row) => Buffer.alloc(row.length);

/** Changes a row of a closed journal as a bad disk would, past everything that writes checksums. */
async function change(directory: string, table: string, key: Part[] | Part, how: Change): Promise<void> {
  const root = open({ path: directory, noSubdir: false, maxDbs: 32 });
  const rows = root.openDB(table, { encoding: 'binary' });
  const row = rows.get(key) as Buffer | undefined;
  if (row === undefined) throw new Error(`${table} has no row ${String(key)}`);
  await rows.put(key, how(Buffer.from(row)));
  await root.close();
}

/** Writes a group, damages one of its rows, and opens the journal again. */
async function damaged(
  t: Test,
  group: (journal: DiskJournal) => readonly Operation[],
  table: string,
  key: Part[] | Part,
  how: Change = zeroed,
): Promise<Opened & { directory: string }> {
  const directory = scratch(t);
  const before = await openIn(directory);
  await commitRows(before.journal, group(before.journal));
  await before.journal.close();
  await change(directory, table, key, how);
  const opened = await openIn(directory);
  t.teardown(async () => {
    if (!served.has(opened.journal)) await opened.journal.close();
  });
  return { ...opened, directory };
}

/** A system over the journal; it closes the journal at the end of the test. */
function systemOver(t: Test, journal: DiskJournal, bugs: BugReport[] = []): RunningSystem {
  const system = createActorSystem({
    kinds: [account],
    journal,
    ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
    settings: new LiveSettings(),
    clock: Date.now,
    randomBytes: seededBytes(1),
    schedule: nodeSchedule,
    onFatal: (error) => {
      throw error;
    },
    onBug: (report) => bugs.push(report),
  });
  served.add(journal);
  t.teardown(() => system.close());
  return system;
}

function until(condition: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => (condition() ? resolve() : setImmediate(look));
    look();
  });
}

const turn = (journal: DiskJournal, id: string, seq: number): Operation => ({
  op: 'append',
  kind: 'account',
  id,
  seq,
  row: journal.pack([1, [{ type: 'deposited', amount: seq }], [], []]),
});
const mail = (journal: DiskJournal, seq: number): Operation => ({
  op: 'mail',
  key: { toKind: 'account', toId: 'a', seq, fromKind: '', fromId: '' },
  row: journal.pack({ type: 'deposit', amount: 10 ** seq }),
});
const timer = (journal: DiskJournal): Operation => ({
  op: 'timer',
  key: { dueMs: 1, kind: 'account', id: 'a', name: 'n' },
  row: journal.pack({ type: 'reminded', name: 'n' }),
});
const event = (journal: DiskJournal, sequence: number, acceptedMs = Date.now()): Operation => ({
  op: 'eventPublish',
  row: journal.pack(['m', String(sequence), 'x', null, null, null, null, '{}', acceptedMs, `id-${sequence}`]),
});
const record = (journal: DiskJournal, utcMs: number): Operation => ({
  op: 'audit',
  ring: 'calls',
  row: journal.pack({ utcMs, event: 'mcp.tool', userId: null, fields: {} }),
});

// covers S144
t.test('row: any flipped bit of a turn is found, wherever in the row it is', async (t) => {
  const directory = scratch(t);
  const { journal } = await openIn(directory);
  const written = turn(journal, 'a', 1) as { row: Uint8Array };
  const bits = written.row.length * 8;
  const copies = Array.from({ length: bits }, (_, bit) => turn(journal, `bit-${bit}`, 1));
  await commitRows(journal, copies);
  await journal.close();
  for (let bit = 0; bit < bits; bit += 1)
    await change(directory, 'journal', ['account', `bit-${bit}`, 1], flipped(bit >> 3, bit & 7));
  const again = await openIn(directory);
  t.teardown(() => again.journal.close());
  const unseen = copies.flatMap((_, bit) => {
    try {
      const stored = again.journal.load('account', `bit-${bit}`);
      return [`${bit}: ${JSON.stringify(stored)}`];
    } catch (error) {
      return (error as Error).name === 'DamagedRow' ? [] : [`${bit}: ${String(error)}`];
    }
  });
  t.same(unseen, []);
  t.equal(again.journal.damagedRows, bits, 'each is counted');
});

// covers S144
t.test('row: one that is stored under the key of another is found', async (t) => {
  const directory = scratch(t);
  const { journal } = await openIn(directory);
  await commitRows(journal, [turn(journal, 'a', 1), turn(journal, 'b', 1)]);
  await journal.close();
  const root = open({ path: directory, noSubdir: false, maxDbs: 32 });
  const rows = root.openDB('journal', { encoding: 'binary' });
  await rows.put(['account', 'b', 1], rows.get(['account', 'a', 1]));
  await root.close();
  const again = await openIn(directory);
  t.teardown(() => again.journal.close());
  t.throws(() => again.journal.load('account', 'b'), {
    name: 'DamagedRow',
    table: 'journal',
    key: 'account/b/1',
  });
  t.ok(again.journal.load('account', 'a'));
});

t.test(
  'row: one without a checksum, of an earlier version, is read and gets one when it is rewritten',
  async (t) => {
    const plain: Change = (row) => row.subarray(5);
    const { journal, found, directory } = await damaged(
      t,
      (journal) => [{ op: 'meta', key: 'm', row: journal.pack({ a: 1 }) }],
      'meta',
      'm',
      plain,
    );
    t.same(journal.meta('m'), { a: 1 });
    t.same(found, []);
    await commitRows(journal, [{ op: 'meta', key: 'm', row: journal.pack({ a: 2 }) }]);
    await journal.close();
    await change(directory, 'meta', 'm', flipped(7));
    const again = await openIn(directory);
    t.teardown(() => again.journal.close());
    t.throws(() => again.journal.meta('m'), { name: 'DamagedRow' });
  },
);

for (const [table, key] of [
  ['journal', ['account', 'a', 2]],
  ['snapshot', ['account', 'a']],
] as const) {
  t.test(`actor: a damaged row of ${table} puts that actor alone in quarantine, at once`, async (t) => {
    const { journal, found } = await damaged(
      t,
      (journal) => [
        turn(journal, 'a', 2),
        {
          op: 'snapshot',
          kind: 'account',
          id: 'a',
          seq: 1,
          fromSeq: 1,
          row: journal.pack([1, 1, {}, [], []]),
        },
        turn(journal, 'b', 1),
      ],
      table,
      [...key],
    );
    const bugs: BugReport[] = [];
    const system = systemOver(t, journal, bugs);
    await t.rejects(
      system.ask(account, 'a', { type: 'deposit', amount: 1 }),
      new GatewayError('Quarantined'),
    );
    t.equal(await system.ask(account, 'b', { type: 'deposit', amount: 2 }), 3);
    t.match(system.administration.failing(), [{ kind: 'account', id: 'a', quarantined: true, failures: 1 }]);
    t.match(found, [{ table, key: key.join('/') }]);
    t.match(bugs, [{ kind: 'account', id: 'a', error: { name: 'DamagedRow' } }]);
    t.ok(system.exists(account, 'a'), 'it is not taken for one that is not there');
  });
}

t.test('actor: a turn that is missing between others puts it in quarantine', async (t) => {
  const directory = scratch(t);
  const { journal } = await openIn(directory);
  await commitRows(journal, [turn(journal, 'a', 1), turn(journal, 'a', 3)]);
  const system = systemOver(t, journal);
  await t.rejects(system.ask(account, 'a', { type: 'deposit', amount: 1 }), new GatewayError('Quarantined'));
});

t.test('mail: a damaged row becomes a dead letter, the mail behind it is delivered', async (t) => {
  const { journal } = await damaged(t, (journal) => [mail(journal, 1), mail(journal, 2)], 'mailbox', [
    'account',
    'a',
    1,
    '',
    '',
  ]);
  systemOver(t, journal);
  await until(() => journal.mail('account', 'a', 0, 1).length === 0);
  t.match(journal.dead(10), [
    { kind: 'account', id: 'a', command: { type: 'unreadable' }, reason: /mailbox/ },
  ]);
  t.same(journal.mail('account', 'a', 0, 10), []);
  t.match(journal.load('account', 'a'), { rows: [{ row: [1, [{ type: 'deposited', amount: 100 }]] }] });
});

t.test('timer: a damaged row becomes a dead letter', async (t) => {
  const { journal } = await damaged(t, (journal) => [timer(journal)], 'timer', [1, 'account', 'a', 'n']);
  systemOver(t, journal);
  await until(() => journal.dead(1).length > 0);
  t.match(journal.dead(10), [{ kind: 'account', id: 'a', command: { type: 'unreadable' }, reason: /timer/ }]);
  t.same(journal.timers(Number.MAX_SAFE_INTEGER, 10), []);
});

t.test('dead letter: a damaged one is shown as such', async (t) => {
  const { journal } = await damaged(
    t,
    (journal) => [
      {
        op: 'dead',
        key: { timeMs: 1, kind: 'account', id: 'a', seq: 1 },
        row: journal.pack({ command: { type: 'x' }, reason: 'y' }),
      },
    ],
    'dead',
    [1, 'account', 'a', 1],
  );
  t.match(journal.dead(10), [{ id: 'a', command: { type: 'unreadable' }, reason: /damaged/ }]);
});

t.test('index: a damaged name answers 503, others are found, and it cannot be claimed', async (t) => {
  const { journal } = await damaged(
    t,
    () => [
      { op: 'index', index: 'publicKey', key: 'k', owner: 'owner-0' },
      { op: 'index', index: 'publicKey', key: 'l', owner: 'owner-1' },
    ],
    'index/publicKey',
    'k',
  );
  const system = systemOver(t, journal);
  t.throws(() => system.lookup('publicKey', 'k'), new GatewayError('Quarantined'));
  t.equal(system.lookup('publicKey', 'l'), 'owner-1');
  await t.rejects(system.ask(account, 'a', { type: 'claim', name: 'k' }), new GatewayError('Quarantined'));
});

t.test('event: a damaged one is skipped, and the log continues behind it', async (t) => {
  const { journal, found } = await damaged(
    t,
    (journal) => [1, 2, 3, 4].map((sequence) => event(journal, sequence)),
    'events',
    2,
  );
  const system = systemOver(t, journal);
  const log = await openEventLog({
    administration: system.administration,
    settings: new LiveSettings(),
    clock: Date.now,
    schedule: nodeSchedule,
    newEpoch: () => 'epoch',
  });
  t.teardown(() => log.stop());
  const places = (after: number, limit: number) => log.page(after, limit).map(({ sequence }) => sequence);
  t.same(places(0, 10), [1, 3, 4]);
  t.same(places(0, 2), [1, 3], 'a page is as long as asked');
  t.same(places(1, 1), [3], 'one of a damaged event alone has the next');
  t.match(found, [{ table: 'events', key: '2' }]);
});

t.test(
  'audit: a damaged record is shown, matches no search for an account, and is removed with its neighbours',
  async (t) => {
    const nowMs = Date.now();
    const { journal } = await damaged(
      t,
      (journal) => [3, 2, 0].map((days) => record(journal, nowMs - days * DAY_MS)),
      'audit/calls',
      2,
    );
    const system = systemOver(t, journal);
    const ends = { after: 0, before: Number.MAX_SAFE_INTEGER, callsBefore: undefined };
    const all = { ...ends, oldestFirst: false, limit: 10 };
    const open = { fromMs: Number.NEGATIVE_INFINITY, toMs: Number.POSITIVE_INFINITY };
    const search = async (more: object) => {
      const unfiltered = { ...all, ...open, userId: undefined, event: undefined, ring: undefined };
      return (await searchAudit(system.administration, { ...unfiltered, ...more })).rows;
    };
    t.match(await search({}), [{ seq: 3 }, { seq: 2, ring: 'calls', record: undefined }, { seq: 1 }]);
    t.match(await search({ fromMs: nowMs - 10 * DAY_MS }), [{ seq: 3 }, { seq: 1 }]);
    t.same(await search({ userId: '7' }), []);
    system.administration.tidyAudit(nowMs - 2.5 * DAY_MS);
    await system.administration.auditFirst({ utcMs: nowMs, event: 'mcp.tool', userId: null, fields: {} });
    t.same(
      (await search({})).map(({ seq }) => seq),
      [4, 3, 2],
      'what stands before it goes',
    );
  },
);

for (const key of ['tickFloor', 'kindVersions']) {
  t.test(`metadata: with a damaged row ${key} nothing starts`, async (t) => {
    const { journal } = await damaged(
      t,
      (journal) => [{ op: 'meta', key, row: journal.pack({ account: 1 }) }],
      'meta',
      key,
    );
    t.throws(() => systemOver(t, journal), { name: 'DamagedRow', table: 'meta', key });
  });
}

t.test('journal: an earlier version reads the layout of this one, and refuses it', async (t) => {
  const directory = scratch(t);
  const { journal } = await openIn(directory);
  await journal.close();
  const root = closeAfter(t, open({ path: directory, noSubdir: false, maxDbs: 32 }));
  t.equal(root.openDB('meta', {}).get('schema'), 2);
});
