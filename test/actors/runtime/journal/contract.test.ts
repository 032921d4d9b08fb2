/** One suite for both journals, and what only the one on disk can show. */

import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../../kit/close-after.ts';
import { MemoryJournal } from '../../../../kit/journal/memory.ts';
import { MemoryLog } from '../../../../kit/journal/memory-log.ts';
import { copyJournal } from '../../../../src/actors/runtime/journal/backup.ts';
import { type DiskJournal, openJournal } from '../../../../src/actors/runtime/journal/lmdb.ts';
import {
  type AuditRow,
  EVENT_EPOCH_KEY,
  type EventWrite,
  type Journal,
  JournalTooNew,
  type Operation,
  ofNoActor,
} from '../../../../src/actors/runtime/journal/port.ts';
import { INDEXES } from '../../../../src/actors/runtime/journal/writer.ts';
import { EVENTS_PARTITION } from '../../../../src/actors/runtime/ownership.ts';
import { createClusterNode } from '../../../../src/actors/runtime/replication/cluster-node.ts';
import { type AuditRing, STORED_RINGS, type StoredRing } from '../../../../src/domain/audit.ts';
import { ManualClock, seededNumbers } from '../../../support/actors/actors.ts';
import { commitRows } from '../../../support/actors/commit-rows.ts';
import { count, depth } from '../../../support/depth.ts';

const STEP_BYTES = 1024 * 1024;

function scratch(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-journal-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

async function onDisk(t: Test, directory = scratch(t)): Promise<DiskJournal> {
  return openJournal({ directory, stepBytes: STEP_BYTES, auditRowsMax: () => 5, deadRowsMax: 3 });
}

function eventRow(tick: string) {
  return ['wallet', tick, 'TxInWallet', '7', null, 'USD', 3, `{"tick":"${tick}"}`, 5, `id-${tick}`] as const;
}

function acceptOf(journal: Journal, tick: string): Operation {
  return { op: 'eventAccept', identity: `id-${tick}`, row: journal.pack(eventRow(tick)) };
}

/** Writes the operations as one turn; how many of them were passed over. */
function skippedOf(journal: Journal, operations: readonly Operation[]): Promise<number> {
  return new Promise((resolve, reject) =>
    journal.commit([ofNoActor(operations, EVENTS_PARTITION)], (error, judged, skipped) =>
      error === undefined && (judged?.verdicts[0] ?? 0) === 0
        ? resolve(skipped?.get(0) ?? 0)
        : reject(error ?? new Error('refused')),
    ),
  );
}

/** The only node of a cluster over a log in memory. */
async function replicated(t: Test, store: Journal): Promise<Journal> {
  const clock = new ManualClock();
  const log = new MemoryLog({
    immediate: (run) => setImmediate(run),
    clock: clock.read,
    leaseMs: 1_000,
  });
  const { node, journal } = createClusterNode({
    store,
    log: log.connect(),
    peers: () => ({ push: () => undefined, applied: () => undefined, isFedBy: () => false }),
    schedule: { immediate: (run) => setImmediate(run), timer: clock.timer },
    clock: clock.read,
    monotonicMs: clock.read,
    leaseMs: 1_000,
    name: 'a',
    onFatal: (error) => t.fail(error.message),
    onBug: ({ error }) => t.error(error),
  });
  await node.start();
  t.teardown(() => node.stop());
  return journal;
}

const JOURNALS: Record<string, (t: Test) => Promise<Journal>> = {
  memory: async () => new MemoryJournal({ immediate: (run) => setImmediate(run), auditRowsMax: () => 5 }),
  lmdb: async (t) => {
    return closeAfter(t, await onDisk(t));
  },
  'replica in memory': (t) =>
    replicated(t, new MemoryJournal({ immediate: (run) => setImmediate(run), auditRowsMax: () => 5 })),
  'replica on disk': async (t) => {
    const store = closeAfter(t, await onDisk(t));
    return replicated(t, store);
  },
};

const append = (journal: Journal, id: string, seq: number, events: unknown[]): Operation => ({
  op: 'append',
  kind: 'user',
  id,
  seq,
  row: journal.pack([1, events, [], []]),
});

/** `ring` null: as versions without rings have written it. */
const audited = (journal: Journal, ring: StoredRing, n: number): Operation => ({
  op: 'audit',
  ring: ring as AuditRing,
  row: journal.pack({ n }),
});
const positions = (rows: readonly AuditRow[]) => rows.map(({ seq }) => seq);

for (const [name, open] of Object.entries(JOURNALS)) {
  t.test(`journal ${name}: rows come back in order, by actor, as they went in`, async (t) => {
    const journal = await open(t);
    const event = {
      text: 'ü',
      none: null,
      missing: undefined,
      bytes: Buffer.from([1, 2]),
      big: 2n ** 62n,
      map: new Map([['a', new Set([1])]]),
      at: new Date(5),
      nested: { list: [1.5, -1, 2 ** 40, true] },
    };
    await commitRows(journal, [append(journal, '1', 1, [event]), append(journal, '10', 1, ['other'])]);
    await commitRows(journal, [append(journal, '1', 2, ['second'])]);
    const stored = journal.load('user', '1');
    t.equal(stored?.snapshot, undefined);
    t.same(
      stored?.rows.map(({ seq }) => seq),
      [1, 2],
    );
    const read = stored?.rows[0]?.row[1][0] as typeof event;
    t.same({ ...read, bytes: Buffer.from(read.bytes) }, event);
    t.ok(read.map instanceof Map);
    t.equal(read.big, event.big);
    t.ok(journal.has('user', '10'));
    t.notOk(journal.has('user', '2'));
    t.equal(journal.load('user', '2'), undefined);
    t.equal(journal.load('upload', '1'), undefined);
  });

  t.test(`journal ${name}: refuses what cannot be stored`, async (t) => {
    const journal = await open(t);
    class Box {}
    for (const value of [
      () => 1,
      Symbol('x'),
      [new Box()],
      { a: { b: () => 1 } },
      new Map([[1, Symbol('y')]]),
    ]) {
      t.throws(() => journal.pack(value), TypeError);
    }
    t.throws(() => journal.pack(2n ** 64n), TypeError);
    t.throws(() => journal.pack(JSON.parse('{"__proto__":1}')), TypeError);
  });

  t.test(`journal ${name}: a snapshot replaces the rows it covers`, async (t) => {
    const journal = await open(t);
    await commitRows(
      journal,
      [1, 2, 3].map((seq) => append(journal, '1', seq, [seq])),
    );
    const row = journal.pack([1, 4, { count: 4 }, [['key', 'reply']], [['t', 99]]]);
    await commitRows(journal, [
      append(journal, '1', 4, [4]),
      { op: 'snapshot', kind: 'user', id: '1', seq: 4, fromSeq: 1, row },
      append(journal, '1', 5, [5]),
    ]);
    const stored = journal.load('user', '1');
    t.same(stored?.snapshot, [1, 4, { count: 4 }, [['key', 'reply']], [['t', 99]]]);
    t.same(
      stored?.rows.map(({ seq }) => seq),
      [5],
    );
    t.ok(journal.has('user', '1'));
  });

  t.test(`journal ${name}: lists the ids of a kind in pages, in both directions`, async (t) => {
    const journal = await open(t);
    const ids = ['10', '2', 'a', 'ä', 'b'];
    await commitRows(
      journal,
      ids.flatMap((id) => [append(journal, id, 1, []), append(journal, id, 2, [])]),
    );
    const row = journal.pack([1, 2, {}, [], []]);
    await commitRows(journal, [{ op: 'snapshot', kind: 'user', id: '2', seq: 2, fromSeq: 1, row }]);
    t.same(journal.ids('user', '', 2), ['10', '2']);
    t.same(journal.ids('user', '2', 10), ['a', 'b', 'ä']);
    t.same(journal.ids('upload', '', 10), []);
    t.same(journal.ids('user', '', 3, true), ['ä', 'b', 'a']);
    t.same(journal.ids('user', 'a', 10, true), ['2', '10']);
    t.same(journal.ids('user', '2', 10, true), ['10']);
    t.same(journal.ids('upload', '', 10, true), []);
  });

  t.test(`journal ${name}: mail is kept by receiver in sending order until it is removed`, async (t) => {
    const journal = await open(t);
    const key = (toId: string, seq: number) => ({
      toKind: 'user',
      toId,
      seq,
      fromKind: 'user',
      fromId: '9',
    });
    const mail = (toId: string, seq: number): Operation => ({
      op: 'mail',
      key: key(toId, seq),
      row: journal.pack({ type: 'hello', seq }),
    });
    await commitRows(journal, [mail('2', 1), mail('1', 2), mail('1', 3), mail('1', 4)]);
    const all = journal.mail('user', '1', 0, 10);
    t.same(
      all.map((row) => row.command),
      [2, 3, 4].map((seq) => ({ type: 'hello', seq })),
    );
    const [first, second, third] = all.map(({ seq }) => seq);
    if (first === undefined || second === undefined || third === undefined) throw new Error('no mail');
    t.ok(first < second && second < third, 'numbers rise');
    t.same(
      journal.mail('user', '1', 0, 2).map((row) => row.seq),
      [first, second],
    );
    t.same(journal.mail('user', '1', second, 10), [
      { ...key('1', third), command: { type: 'hello', seq: 4 } },
    ]);
    t.equal(journal.hasMail(key('1', third)), true);
    t.equal(journal.hasMail(key('2', third)), false, 'of another receiver');
    await commitRows(journal, [{ op: 'mailRemove', key: key('1', third) }]);
    t.equal(journal.hasMail(key('1', third)), false);
    t.equal(journal.hasMail(key('1', second)), true);
    const [other] = journal.mail('user', '2', 0, 10);
    const boxes = [...journal.mailboxes()].sort((a, b) => (a.toId < b.toId ? -1 : 1));
    t.same(boxes, [
      { toKind: 'user', toId: '1', lastSeq: second },
      { toKind: 'user', toId: '2', lastSeq: other?.seq },
    ]);
  });

  t.test(`journal ${name}: timers come earliest first, up to the given time`, async (t) => {
    const journal = await open(t);
    const key = (dueMs: number, timerName: string) => ({ dueMs, kind: 'user', id: '1', name: timerName });
    const row = journal.pack({ type: 'fire' });
    await commitRows(journal, [
      { op: 'timer', key: key(30, 'c'), row },
      { op: 'timer', key: key(10, 'a'), row },
      { op: 'timer', key: key(20, 'b'), row },
    ]);
    await commitRows(journal, [{ op: 'timerRemove', key: key(10, 'a') }]);
    t.same(journal.timers(20, 10), [{ ...key(20, 'b'), command: { type: 'fire' } }]);
    t.equal(journal.timers(Number.MAX_SAFE_INTEGER, 1).length, 1);
    t.equal(journal.timers(Number.MAX_SAFE_INTEGER, 10).length, 2);
  });

  t.test(`journal ${name}: within a group the later write of a name wins`, async (t) => {
    const journal = await open(t);
    const index = (owner: string | null): Operation => ({ op: 'index', index: 'publicKey', key: 'k', owner });
    await commitRows(journal, [index('a'), index(null), index('b')]);
    t.equal(journal.lookup('publicKey', 'k'), 'b');
    t.equal(journal.lookup('sidHash', 'k'), undefined, 'indexes are apart');
    await commitRows(journal, [index('c'), index(null)]);
    t.equal(journal.lookup('publicKey', 'k'), undefined);
    t.equal(journal.lookup('publicKey', 'x'.repeat(1_000_000)), undefined, 'a name that could not be stored');
    const key = 'k'.repeat(1_400);
    await commitRows(journal, [{ op: 'index', index: 'credentialId', key, owner: 'long' }]);
    t.equal(journal.lookup('credentialId', key), 'long');
  });

  t.test(`journal ${name}: a look-up after a commit answers what it wrote, in each index`, async (t) => {
    const journal = await open(t);
    for (const index of INDEXES) {
      for (const owner of ['a', 'b', null, 'c']) {
        await commitRows(journal, [{ op: 'index', index, key: 'k', owner }]);
        t.equal(journal.lookup(index, 'k'), owner ?? undefined, `${index} ${owner}`);
        t.equal(journal.lookup(index, 'k'), owner ?? undefined, `${index} ${owner}, again`);
      }
    }
  });

  // covers S105
  t.test(`journal ${name}: audit records of one ring never push out those of another`, async (t) => {
    const journal = await open(t);
    await commitRows(journal, [audited(journal, 'admin', 1), audited(journal, 'logins', 2)]);
    for (let n = 3; n <= 30; n += 3)
      await commitRows(
        journal,
        [n, n + 1, n + 2].map((each) => audited(journal, 'calls', each)),
      );
    t.same(positions(journal.auditPage(0, 100)), [1, 2, 28, 29, 30, 31, 32]);
    t.same(positions(journal.auditBefore(31, 3)), [30, 29, 28], 'one sequence of positions');
    t.same(positions(journal.auditBefore(100, 3, ['admin', 'logins'])), [2, 1]);
    t.match(journal.auditPage(0, 1, ['logins']), [{ seq: 2, ring: 'logins', record: { n: 2 } }]);
    await commitRows(journal, [{ op: 'auditTrim', ring: 'admin', rows: 100 }]);
    t.same(positions(journal.auditPage(0, 3)), [2, 28, 29], 'a trim is of its own ring');
  });

  t.test(
    `journal ${name}: audit records of a node are in pages with the shared ones, and trimmed apart`,
    async (t) => {
      const journal = await open(t);
      await commitRows(journal, [
        audited(journal, 'calls', 1),
        audited(journal, 'node/calls', 2),
        audited(journal, 'calls', 3),
        audited(journal, 'node/admin', 4),
      ]);
      t.same(positions(journal.auditPage(0, 10)), [1, 2, 3, 4]);
      t.same(positions(journal.auditBefore(10, 10, ['node/calls', 'node/admin'])), [4, 2]);
      t.same(
        [journal.auditRows('calls'), journal.auditRows('node/calls'), journal.auditRows(null)],
        [2, 1, 0],
      );
      await commitRows(journal, [{ op: 'auditTrim', ring: 'calls', rows: 2 }]);
      t.same(positions(journal.auditPage(0, 10)), [2, 3, 4], 'the newest shared one stays at every node');
      await commitRows(journal, [
        { op: 'auditTrim', ring: 'node/admin', rows: 1 },
        { op: 'auditTrim', ring: 'node/calls', rows: 1 },
      ]);
      t.same(positions(journal.auditPage(0, 10)), [3, 4], 'and the newest of the node');
    },
  );

  t.test(`journal ${name}: a value is replaced where the one that was read is still there`, async (t) => {
    const journal = await open(t);
    const replace = (value: unknown, was?: unknown): Operation => ({
      ...{ op: 'metaOnce', key: 'k', row: journal.pack(value) },
      ...(was === undefined ? {} : { was }),
    });
    await commitRows(journal, [replace(['first'], ['never'])]);
    t.equal(journal.meta('k'), undefined);
    await commitRows(journal, [replace(['first'])]);
    await commitRows(journal, [replace(['late'])]);
    t.same(journal.meta('k'), ['first']);
    await commitRows(journal, [replace(['second'], ['first'])]);
    await commitRows(journal, [replace(['late'], ['first'])]);
    t.same(journal.meta('k'), ['second']);
  });

  // covers S105
  t.test(`journal ${name}: audit records without a ring are read in order, and age out`, async (t) => {
    const journal = await open(t);
    for (let n = 1; n <= 5; n += 1) await commitRows(journal, [audited(journal, null, n)]);
    await commitRows(journal, [audited(journal, 'admin', 6), audited(journal, 'calls', 7)]);
    t.match(journal.auditPage(4, 2), [
      { seq: 5, ring: null, record: { n: 5 } },
      { seq: 6, ring: 'admin', record: { n: 6 } },
    ]);
    await commitRows(journal, [{ op: 'auditTrim', ring: null, rows: 3 }]);
    t.same(positions(journal.auditPage(0, 10)), [4, 5, 6, 7]);
    await commitRows(journal, [{ op: 'auditTrim', ring: null, rows: 99 }]);
    t.same(positions(journal.auditPage(0, 10)), [6, 7]);
  });

  t.test(`journal ${name}: dead letters and metadata`, async (t) => {
    const journal = await open(t);
    const key = { timeMs: 5, kind: 'user', id: '1', seq: 7 };
    const row = journal.pack({ command: { type: 'x' }, reason: 'planted' });
    await commitRows(journal, [
      { op: 'dead', key, row },
      { op: 'metaOnce', key: 'm', row: journal.pack({ a: 1n }) },
    ]);
    t.same(journal.dead(10), [{ ...key, command: { type: 'x' }, reason: 'planted' }]);
    t.same(journal.meta('m'), { a: 1n });
    t.equal(journal.meta('unknown'), undefined);
    await commitRows(journal, [{ op: 'deadRemove', key }]);
    t.same(journal.dead(10), []);
  });

  t.test(
    `journal ${name}: events wait, get their sequence number, are known meanwhile, and leave`,
    async (t) => {
      const journal = await open(t);
      const { events } = journal;
      const row = eventRow;
      const accept = (tick: string) => acceptOf(journal, tick);
      const arrivals = () => events.waiting(0, 10).map(({ arrival }) => arrival);
      t.same(events.ends(), { oldest: 0, newest: 0 });
      t.same(events.page(0, 10), []);
      t.equal(events.lastArrival(), 0);
      await commitRows(journal, [accept('20'), accept('10'), accept('30')]);
      const [first = 0, second = 0, third = 0] = arrivals();
      t.ok(0 < first && first < second && second < third, `${first}, ${second}, ${third}`);
      t.equal(events.lastArrival(), third);
      t.same(events.waiting(first, 10), [
        { arrival: second, row: row('10') },
        { arrival: third, row: row('30') },
      ]);
      t.equal(events.waiting(0, 2).length, 2);
      t.same(journal.unpack(events.waitingRow(second)), row('10'));
      t.equal(events.waitingRow(third + 1), undefined);
      t.ok(events.knows('id-10'));
      t.notOk(events.knows('id-40'));
      t.equal(events.sizeBytes(), 0);
      const publish: Operation = { op: 'eventPublish', row: journal.pack(row('99')) };
      const release = (arrival: number): Operation => ({ op: 'eventRelease', arrival });
      await commitRows(journal, [release(second), release(first), publish]);
      t.same(events.ends(), { oldest: 1, newest: 3 });
      t.same(arrivals(), [third]);
      t.same(events.page(1, 1), [{ sequence: 2, row: row('20') }]);
      t.same(
        events.page(0, 10).map((event) => event.row?.[1]),
        ['10', '20', '99'],
      );
      t.ok(events.knows('id-10'), 'in the log');
      t.ok(events.sizeBytes() > 0);
      await commitRows(journal, [{ op: 'eventRemove', sequence: 1, identity: 'id-10' }]);
      t.same(events.ends(), { oldest: 2, newest: 3 });
      t.notOk(events.knows('id-10'), 'forgotten');
      t.same(events.page(3, 10), []);
    },
  );

  t.test(
    `journal ${name}: requests of events that meet another state are passed over, in one group too`,
    async (t) => {
      const journal = await open(t);
      const { events } = journal;
      const leftOut: number[] = [];
      const written: EventWrite[] = [];
      const stop = events.follow({
        leaving: (oldest) => leftOut.push(oldest),
        written: (writes) => written.push(...writes),
      });
      const accept = (tick: string) => acceptOf(journal, tick);
      t.equal(await skippedOf(journal, [accept('1'), accept('2'), accept('1')]), 1, 'known in its group');
      t.equal(await skippedOf(journal, [accept('2'), accept('3')]), 1, 'known while it waits');
      const [first = 0, second = 0, third = 0] = events.waiting(0, 10).map(({ arrival }) => arrival);
      const release = (arrival: number): Operation => ({ op: 'eventRelease', arrival });
      t.equal(await skippedOf(journal, [release(second), release(second)]), 1, 'released once in a group');
      t.equal(
        await skippedOf(journal, [release(second), release(third + 1), release(first)]),
        2,
        'and later',
      );
      const given: Operation = { op: 'eventRelease', arrival: second, row: journal.pack(eventRow('7')) };
      t.equal(await skippedOf(journal, [given]), 1, 'also by a writer that has the row');
      t.equal(await skippedOf(journal, [accept('1')]), 1, 'known from the log');
      const remove = (sequence: number): Operation => ({
        op: 'eventRemove',
        sequence,
        identity: `id-${3 - sequence}`,
      });
      t.equal(await skippedOf(journal, [remove(2)]), 1, 'not the oldest');
      t.equal(await skippedOf(journal, [remove(1), remove(2), remove(1)]), 2, 'the newest stays');
      t.same(leftOut, [2]);
      t.same(
        written.map(({ op }) => op),
        ['eventWait', 'eventWait', 'eventWait', 'eventEnter', 'eventEnter', 'eventLeave'],
      );
      t.same(events.ends(), { oldest: 2, newest: 2 });
      t.same(events.page(0, 10), [{ sequence: 2, row: eventRow('1') }]);
      t.same(await skippedOf(journal, [accept('2')]), 0, 'forgotten with its row');
      stop();
      await skippedOf(journal, [accept('9')]);
      t.equal(written.length, 7, 'no longer followed');
    },
  );

  t.test(`journal ${name}: nothing of a group is visible before it is acknowledged`, async (t) => {
    const journal = await open(t);
    const done = commitRows(journal, [append(journal, '1', 1, ['x'])]);
    t.notOk(journal.has('user', '1'));
    await done;
    t.ok(journal.has('user', '1'));
  });
}

t.test('journals: any mix of audit records, bounds and trims leaves the same pages in both', async (t) => {
  const groups = count(150);
  const next = seededNumbers(depth.seed);
  const below = (end: number) => Math.floor(next() * end);
  const directory = scratch(t);
  let max = 5;
  const options = { directory, stepBytes: STEP_BYTES, auditRowsMax: () => max };
  const memory = new MemoryJournal({ immediate: (run) => setImmediate(run), auditRowsMax: () => max });
  let disk = await openJournal(options);
  const differing: unknown[] = [];
  for (let group = 0; group < groups; group += 1) {
    if (below(8) === 0) max = 1 + below(300);
    const steps = Array.from({ length: 1 + below(40) }, (_, n) => ({
      n,
      ring: STORED_RINGS[below(STORED_RINGS.length)] ?? null,
      trims: below(30) === 0,
      rows: below(40),
    }));
    const operations = (journal: Journal): Operation[] =>
      steps.map(({ n, ring, trims, rows }) =>
        trims ? { op: 'auditTrim', ring, rows } : audited(journal, ring, n),
      );
    await Promise.all([memory, disk].map((journal) => commitRows(journal, operations(journal))));
    if (below(20) === 0) {
      await disk.close();
      disk = await openJournal(options);
    }
    const [at, rings] = [below(3_000), STORED_RINGS.filter(() => below(2) === 0)];
    const pages = [memory, disk].map((journal) => [
      journal.auditPage(0, 10_000),
      journal.auditPage(at, 7, rings),
      journal.auditBefore(at, 7, rings),
    ]);
    if (!isDeepStrictEqual(pages[0], pages[1])) differing.push({ group, pages });
  }
  await disk.close();
  t.same(differing.slice(0, 1), []);
});

t.test('journal lmdb: is there after a restart and continues counting', async (t) => {
  const directory = scratch(t);
  const first = await onDisk(t, directory);
  await commitRows(first, [
    append(first, '1', 1, ['x']),
    audited(first, 'calls', 1),
    { op: 'index', index: 'appId', key: 'k', owner: 'o' },
  ]);
  await first.close();
  const second = await onDisk(t, directory);
  t.same(second.load('user', '1')?.rows[0]?.row, [1, ['x'], [], []]);
  t.equal(second.lookup('appId', 'k'), 'o');
  await commitRows(second, [audited(second, 'admin', 2)]);
  t.same(
    second.auditPage(0, 10).map((row) => row.seq),
    [1, 2],
  );
  await second.close();
});

t.test('journal lmdb: keeps the newest audit rows and dead letters only', async (t) => {
  const directory = scratch(t);
  const journal = await onDisk(t, directory);
  for (let n = 1; n <= 8; n += 1) {
    const key = { timeMs: n, kind: 'user', id: '1', seq: n };
    await commitRows(journal, [
      audited(journal, 'calls', n),
      { op: 'dead', key, row: journal.pack({ command: {}, reason: '' }) },
    ]);
  }
  t.same(
    journal.auditPage(0, 10).map((row) => row.seq),
    [4, 5, 6, 7, 8],
  );
  t.same(
    journal.dead(10).map((row) => row.seq),
    [6, 7, 8],
  );
  await journal.close();
});

t.test('journal lmdb: refuses a journal with a newer layout and leaves it alone', async (t) => {
  const directory = scratch(t);
  const journal = await onDisk(t, directory);
  await commitRows(journal, [{ op: 'meta', key: 'schema', row: journal.pack(99) }]);
  await journal.close();
  await t.rejects(onDisk(t, directory), JournalTooNew);
  await t.rejects(onDisk(t, directory), /layout 99/);
});

t.test('journal lmdb: room is made ahead, with blocks that are really there', async (t) => {
  const directory = scratch(t);
  const journal = await onDisk(t, directory);
  const { size, blocks } = statSync(join(directory, 'data.mdb'));
  t.ok(size >= STEP_BYTES, `${size} bytes`);
  t.ok(blocks * 512 >= size, 'no holes');
  await journal.close();
});

t.test('journal lmdb: its files and those of a backup are readable by their owner alone', async (t) => {
  const directory = scratch(t);
  chmodSync(directory, 0o755);
  const mask = process.umask(0o022);
  t.teardown(() => process.umask(mask));
  const journal = await onDisk(t, directory);
  const copy = join(directory, 'copy');
  await journal.backup(copy, true);
  const second = join(directory, 'second');
  mkdirSync(second);
  await copyJournal(directory, second);
  for (const folder of [directory, copy, second]) {
    for (const file of ['data.mdb', 'lock.mdb'])
      t.equal(statSync(join(folder, file)).mode & 0o777, 0o600, `${folder} ${file}`);
  }
  await journal.close();
});

// covers S155
t.test('journal lmdb: over 70 % of the quota it is full, and no longer when rows were deleted', async (t) => {
  const directory = scratch(t);
  const journal = await openJournal({ directory, stepBytes: STEP_BYTES, quotaBytes: STEP_BYTES });
  t.notOk(journal.full());
  const fill = async (operation: (seq: number) => Operation) => {
    for (let seq = 1; seq <= 64; seq += 1) await commitRows(journal, [operation(seq)]);
  };
  await fill((seq) => append(journal, String(seq), 1, ['x'.repeat(20_000)]));
  t.ok(journal.full());
  const row = journal.pack([1, 1, '', [], []]);
  await fill((seq) => ({ op: 'snapshot', kind: 'user', id: String(seq), seq: 1, fromSeq: 1, row }));
  t.notOk(journal.full());
  await journal.close();
});

// covers S174
t.test('journal lmdb: a backup opens and holds what was committed', async (t) => {
  const directory = scratch(t);
  const journal = await onDisk(t, directory);
  await commitRows(journal, [
    append(journal, '1', 1, ['x']),
    { op: 'meta', key: EVENT_EPOCH_KEY, row: journal.pack('epoch') },
    { op: 'meta', key: 'kept', row: journal.pack('meta') },
  ]);
  for (const compact of [false, true]) {
    const copy = join(directory, `copy-${compact}`);
    await journal.backup(copy, compact);
    const restored = await onDisk(t, copy);
    t.same(restored.load('user', '1')?.rows[0]?.row, [1, ['x'], [], []]);
    t.equal(restored.meta('kept'), 'meta');
    t.equal(restored.meta(EVENT_EPOCH_KEY), undefined, 'a copy is another log of events');
    await commitRows(restored, [append(restored, '1', 2, ['y'])]);
    await restored.close();
  }
  t.equal(journal.meta(EVENT_EPOCH_KEY), 'epoch');
  await journal.close();
});
