/** The audit log stays within its bounds, and unauthenticated callers cannot push others' records out of it. */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { SETTINGS_ID, settings } from '../../../src/actors/admin/settings.ts';
import type { AuditRecord } from '../../../src/actors/runtime/actor.ts';
import { JournalCallAudit } from '../../../src/actors/runtime/audit/call-audit.ts';
import { LocalCallAudit } from '../../../src/actors/runtime/audit/local.ts';
import { openJournal } from '../../../src/actors/runtime/journal/lmdb.ts';
import type { Journal, Operation } from '../../../src/actors/runtime/journal/port.ts';
import { nodeSchedule } from '../../../src/actors/runtime/runtime-context.ts';
import { createActorSystem } from '../../../src/actors/runtime/system.ts';
import {
  AUDIT_EVENT_NAMES,
  AUDIT_EVENTS,
  type AuditEvent,
  type AuditRing,
  auditRowsMax,
} from '../../../src/domain/audit.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { DAY_MS, MINUTE_MS } from '../../../src/domain/time.ts';
import { cookie, makeKey, startAccounts } from '../../support/account.ts';
import { createTestActors, ManualClock, START_MS, type TestActors } from '../../support/actors/actors.ts';
import { commitRows } from '../../support/actors/commit-rows.ts';
import { rejectsWith } from '../../support/rejections.ts';

function recordsOf({ journal }: TestActors): AuditRecord[] {
  return journal.auditPage(0, 100_000).map(({ record }) => record as AuditRecord);
}

/** Over a journal on disk, with the clock of the machine. */
function openSystem(journal: Journal, settings: LiveSettings) {
  return createActorSystem({
    kinds: [],
    journal,
    ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
    settings,
    clock: () => START_MS,
    randomBytes,
    schedule: nodeSchedule,
    onFatal: (error) => {
      throw error;
    },
    onBug: () => {},
  });
}

/** The same, whose audit log has these bounds. */
async function openBounded(t: Test, bounds: ConstructorParameters<typeof LiveSettings>[0]) {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-audit-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const settings = new LiveSettings(bounds);
  const journal = await openJournal({
    directory,
    stepBytes: 1024 * 1024,
    auditRowsMax: (ring) => auditRowsMax(settings, ring),
  });
  return closeAfter(t, openSystem(journal, settings));
}

const record = (event: AuditEvent): AuditRecord => ({ utcMs: START_MS, event, userId: '1', fields: {} });

function refusal(utcMs: number): AuditRecord {
  return { utcMs, event: 'login_refused', userId: null, fields: {} };
}

// covers R108
t.test(
  'audit: refusals of one network are recorded ten times a minute, then counted in one record',
  async (t) => {
    const actors = createTestActors({ kinds: [] });
    const refuse = (count: number, network: string) => {
      for (let n = 0; n < count; n += 1) actors.system.auditRefusal(refusal(actors.clock.nowMs), network);
    };
    refuse(500, '192.0.2.1');
    refuse(3, '192.0.2.2');
    await actors.advance(1_000);
    t.equal(recordsOf(actors).length, 13);
    await actors.advance(MINUTE_MS);
    t.match(recordsOf(actors).at(-1), {
      event: 'refusals_left_out',
      userId: null,
      fields: { count: 490, fromUtcMs: START_MS },
    });
    refuse(1, '192.0.2.1');
    await actors.advance(1_000);
    t.equal(recordsOf(actors).at(-1)?.event, 'login_refused', 'a new minute, a new share');
  },
);

// covers R108
t.test('audit: refusals of ten thousand networks share what a minute may hold', async (t) => {
  const settings = new LiveSettings({ AnonymousRefusalsPerMinute: 25 });
  const actors = createTestActors({ kinds: [], settings });
  for (let n = 0; n < 10_000; n += 1)
    actors.system.auditRefusal(refusal(actors.clock.nowMs), `192.0.${n >> 8}.${n & 255}`);
  await actors.advance(2 * MINUTE_MS);
  const records = recordsOf(actors);
  t.equal(records.length, 26);
  t.match(records.at(-1), { event: 'refusals_left_out', fields: { count: 9_975 } });
});

// covers S65
t.test('audit: a walk through the /64 of one /48 leaves room for refusals of others', async (t) => {
  const actors = createTestActors({ kinds: [] });
  const refuse = (address: string) => actors.system.auditRefusal(refusal(actors.clock.nowMs), address);
  for (let n = 0; n < 1_000; n += 1) refuse(`2001:db8:0:${n.toString(16)}::1`);
  await actors.advance(1_000);
  t.equal(recordsOf(actors).length, 45, 'three quarters of the sixty of a minute');
  refuse('192.0.2.1');
  await actors.advance(1_000);
  t.equal(recordsOf(actors).length, 46);
});

t.test('audit: without a share for anonymous refusals they are only counted', async (t) => {
  const settings = new LiveSettings({ AnonymousRefusalsPerMinute: 0 });
  const actors = createTestActors({ kinds: [], settings });
  actors.system.auditRefusal(refusal(actors.clock.nowMs), '192.0.2.1');
  await actors.advance(2 * MINUTE_MS);
  t.match(recordsOf(actors), [{ event: 'refusals_left_out', fields: { count: 1 } }]);
});

t.test('audit: records older than AuditDays go, in batches, younger ones stay', async (t) => {
  const settings = new LiveSettings({ AuditDays: 2 });
  const actors = createTestActors({ kinds: [], settings });
  const write = (utcMs: number, event: AuditEvent) =>
    actors.system.audit({ utcMs, event, userId: '1', fields: {} });
  for (let n = 0; n < 2_500; n += 1) write(START_MS - 2 * DAY_MS + 5 * MINUTE_MS, 'login');
  write(START_MS - DAY_MS, 'rest.call');
  await actors.advance(4 * MINUTE_MS);
  t.equal(recordsOf(actors).length, 2_501);
  await actors.advance(3 * MINUTE_MS);
  t.match(recordsOf(actors), [{ event: 'rest.call' }]);
  settings.set('AuditDays', 1);
  write(actors.clock.nowMs, 'key_added');
  await actors.advance(2 * MINUTE_MS);
  t.match(recordsOf(actors), [{ event: 'key_added' }], 'a changed setting takes effect');
});

// covers S105
t.test('audit: records of versions without rings go after AuditDays, younger ones stay', async (t) => {
  const settings = new LiveSettings({ AuditDays: 2 });
  const actors = createTestActors({ kinds: [], settings });
  await actors.settle();
  const { journal } = actors;
  const written = (utcMs: number): Operation => ({
    op: 'audit',
    ring: null as unknown as AuditRing,
    row: journal.pack({ utcMs, event: 'user_blocked', userId: '1', fields: {} }),
  });
  const old = Array.from({ length: 1_500 }, () => written(START_MS - 3 * DAY_MS));
  await commitRows(journal, [...old, written(START_MS - DAY_MS)]);
  actors.system.audit({ utcMs: START_MS, event: 'login', userId: '1', fields: {} });
  await actors.advance(1_000);
  t.equal(recordsOf(actors).length, 1_502);
  await actors.advance(2 * MINUTE_MS);
  t.match(journal.auditPage(0, 10), [
    { seq: 1_501, ring: null, record: { event: 'user_blocked' } },
    { seq: 1_502, ring: 'logins', record: { event: 'login' } },
  ]);
});

t.test(
  'audit: a lower AuditRowsMax takes effect as the log is written, positions continue after a restart',
  async (t) => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-audit-'));
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    let rowsMax = 100;
    const open = () => openJournal({ directory, stepBytes: 1024 * 1024, auditRowsMax: () => rowsMax });
    let journal = await open();
    const write = async (count: number) => {
      const row = journal.pack({ n: 1 });
      const group: Operation[] = Array.from({ length: count }, () => ({ op: 'audit', ring: 'calls', row }));
      await commitRows(journal, group);
    };
    const positions = () => journal.auditPage(0, 1_000).map(({ seq }) => seq);
    await write(150);
    t.same([positions()[0], positions().length], [51, 100]);
    rowsMax = 10;
    await write(10);
    t.equal(positions().length, 70, 'four go for each that comes');
    await write(30);
    t.same([positions()[0], positions().length], [181, 10]);
    await journal.close();
    journal = await open();
    await write(1);
    t.same([positions()[0], positions().at(-1)], [182, 191]);
    await journal.close();
  },
);

// covers S105
t.test('audit: calls push out calls alone, what admins, owners and logins left stays', async (t) => {
  const system = await openBounded(t, { AuditRowsMax: 1_000 });
  const kept = AUDIT_EVENT_NAMES.filter((event) => AUDIT_EVENTS[event] !== 'calls');
  for (const event of kept) system.audit(record(event));
  for (let call = 0; call < 1_200; call += 1) system.audit(record('mcp.tool'));
  await system.auditFirst(record('rest.call'));
  const events = system.administration
    .auditPage(0, 10_000)
    .map(({ record: row }) => (row as AuditRecord).event);
  t.same(events.slice(0, kept.length), kept);
  t.equal(events.length, kept.length + 1_000);
  t.equal(events.at(-1), 'rest.call');
});

t.test('audit: each other ring keeps AuditRingRowsMax records, and takes none from calls', async (t) => {
  const system = await openBounded(t, { AuditRingRowsMax: 1_000 });
  system.audit(record('mcp.tool'));
  for (let login = 0; login < 1_200; login += 1) system.audit(record('login'));
  await system.auditFirst(record('rest.call'));
  const events = system.administration
    .auditPage(0, 10_000)
    .map(({ record: row }) => (row as AuditRecord).event);
  t.equal(events.filter((event) => event === 'login').length, 1_000);
  t.same(
    events.filter((event) => event !== 'login'),
    ['mcp.tool', 'rest.call'],
  );
});

t.test('audit: a guesser at login leaves ten records a minute, whatever is guessed', async (t) => {
  const { post, actors, close } = startAccounts();
  t.teardown(close);
  const statuses: number[] = [];
  for (let guess = 0; guess < 60; guess += 1)
    statuses.push((await post('/auth/v1/login', { challengeId: guess, code: '12345678' })).status);
  t.same(statuses, new Array(60).fill(401));
  await actors.advance(2 * MINUTE_MS);
  const records = recordsOf(actors);
  t.equal(records.filter(({ event }) => event === 'login_refused').length, 10);
  t.match(records.at(-1), { event: 'refusals_left_out', fields: { count: 50 } });
});

t.test('audit: refused sign-ups and key changes are recorded, within the same bounds', async (t) => {
  const { post, challenge, signUp, actors, close } = startAccounts();
  t.teardown(close);
  const owner = await signUp();
  const { challengeId } = await challenge('register');
  const code = Buffer.alloc(64, 1).toString('base64url');
  const body = { challengeId, code, publicKey: makeKey().publicKey };
  t.equal((await post('/auth/v1/keys/register_key', body)).status, 401);
  for (let attempt = 0; attempt < 15; attempt += 1) {
    const { status } = await post('/auth/v1/keys/remove_key', { keyId: '7' }, cookie(owner.sid));
    t.equal(status, 404);
  }
  await actors.advance(1_000);
  const [, signUpRefused, ...changes] = recordsOf(actors);
  t.match(signUpRefused, {
    event: 'sign_up_refused',
    userId: null,
    fields: { ip: '127.0.0.1', operation: 'register_key', error: 'Invalid signature' },
  });
  t.equal(changes.length, 10);
  t.match(changes[0], {
    event: 'key_change_refused',
    userId: owner.userId,
    fields: { operation: 'removeKey', error: 'Key not found' },
  });
});

// covers S116
t.test("audit: refused logins and key changes keep the caller's X-Request-Id beside ours", async (t) => {
  const { post, signUp, actors, close } = startAccounts();
  t.teardown(close);
  const owner = await signUp();
  const chosen = { 'X-Request-Id': 'of-the-caller' };
  await post('/auth/v1/login', { challengeId: 7, code: '12345678' }, chosen);
  await post('/auth/v1/keys/remove_key', { keyId: '7' }, { ...cookie(owner.sid), ...chosen });
  await post('/auth/v1/login', { challengeId: 8, code: '12345678' });
  await actors.advance(1_000);
  const [login, change, unnamed] = recordsOf(actors).filter(({ event }) => event.endsWith('_refused'));
  for (const { event, fields } of [login, change].filter((record) => record !== undefined))
    t.match(fields, { requestId: /^test-\d+$/, clientRequestId: 'of-the-caller' }, event);
  t.match([login, change], [{ event: 'login_refused' }, { event: 'key_change_refused' }]);
  t.match(unnamed?.fields['requestId'], /^test-\d+$/);
  t.notOk(Object.hasOwn(unnamed?.fields ?? {}, 'clientRequestId'), 'absent where none was sent');
});

t.test('audit: records of no turn go to the port that is given, those of turns to the journal', async (t) => {
  const calls: AuditRecord[] = [];
  const callAudit = {
    dropped: 7,
    write: (record: AuditRecord) => calls.push(record),
    writeFirst: async (record: AuditRecord) => {
      calls.push({ ...record, fields: { first: true } });
    },
    trim: async () => undefined,
    finish: async () => undefined,
  };
  const actors = createTestActors({ kinds: [settings], callAudit });
  const { system } = actors;
  const record = (event: AuditEvent) => ({ utcMs: START_MS, event, userId: null, fields: {} });
  system.audit(record('mcp.tool'));
  await system.auditFirst(record('rest.call'));
  for (let count = 0; count < 11; count += 1) system.auditRefusal(refusal(START_MS), '192.0.2.1');
  const command = { name: 'AuditDays', value: 3, by: '1', address: '192.0.2.1' } as const;
  await system.ask(settings, SETTINGS_ID, { type: 'change', ...command });
  await actors.advance(2 * MINUTE_MS);
  t.match(calls, [
    { event: 'mcp.tool' },
    { event: 'rest.call', fields: { first: true } },
    ...Array.from({ length: 10 }, () => ({ event: 'login_refused' })),
    { event: 'refusals_left_out', fields: { count: 1 } },
  ]);
  t.equal(calls.length, 13);
  t.same(
    recordsOf(actors).map(({ event }) => event),
    ['settingChanged'],
  );
  t.equal(system.counters().auditDropped, 7);
});

t.test(
  'audit: a record of no turn is refused or dropped, and counted, while the disk cannot follow',
  async (t) => {
    const operations: Operation[] = [];
    const journal = { pack: (value: unknown) => value, sizeBytes: () => 10 };
    const written: [number, number][] = [];
    const record = { utcMs: START_MS, event: 'mcp.tool', userId: null, fields: {} } as const;
    const state = { failed: false, backlog: 19_999 };
    const calls = new JournalCallAudit({
      journal,
      commit: {
        get failed() {
          return state.failed;
        },
        get backlog() {
          return state.backlog;
        },
        add({ operations: rows }) {
          operations.push(...rows);
          return undefined;
        },
        wroteUnawaited: (...grown) => written.push(grown),
      },
      write: async (rows) => {
        operations.push(...rows);
      },
    });
    calls.write(record);
    await calls.writeFirst(record);
    const operation = { op: 'audit', ring: 'calls', row: record };
    t.same(operations, [operation, operation]);
    t.same(written, [[1, 10]]);
    state.backlog += 1;
    calls.write(record);
    await rejectsWith(t, calls.writeFirst(record), 'Overloaded');
    state.failed = true;
    calls.write(record);
    await rejectsWith(t, calls.writeFirst(record), 'JournalUnavailable');
    t.same([operations.length, calls.dropped], [2, 2]);
  },
);

t.test('audit: on a node of a cluster records of no turn go to its own store in batches', async (t) => {
  const clock = new ManualClock();
  const batches: (readonly Operation[])[] = [];
  let finish: (error?: Error) => void = () => undefined;
  const store = (operations: readonly Operation[]) => {
    batches.push(operations);
    return new Promise<void>((resolve, reject) => {
      finish = (error) => (error === undefined ? resolve() : reject(error));
    });
  };
  const pack = (value: unknown) => value;
  const calls = new LocalCallAudit({ node: 'a', pack, store, schedule: { timer: clock.timer } });
  const record = { utcMs: START_MS, event: 'mcp.tool', userId: null, fields: {} } as const;
  const operation = { op: 'audit', ring: 'node/calls', row: { ...record, node: 'a' } };
  calls.write(record);
  calls.write(record);
  t.same(batches, [], 'they wait for more');
  clock.fireNext(clock.nowMs + 50);
  t.same(batches, [[operation, operation]]);
  finish();
  await calls.finish();
  const first = calls.writeFirst(record);
  t.same(batches.slice(1), [[operation]], 'one that is awaited does not wait');
  finish(new Error('no disk'));
  await rejectsWith(t, first, 'JournalUnavailable');
  const trimmed = calls.trim('node/calls', 7);
  t.same(batches.slice(2), [[{ op: 'auditTrim', ring: 'node/calls', rows: 7 }]]);
  finish();
  await trimmed;
  for (let count = 0; count < 20_000; count += 1) calls.write(record);
  t.equal(calls.dropped, 0);
  calls.write(record);
  t.equal(calls.dropped, 1, 'beyond the bound they are dropped and counted');
  await rejectsWith(t, calls.writeFirst(record), 'Overloaded');
});
