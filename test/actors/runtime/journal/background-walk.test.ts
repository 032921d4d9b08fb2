/** The walk over a journal that is served: what it finds, what is in doubt then, and how slowly it reads. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import type { Damage } from '../../../../src/actors/runtime/journal/damage-report.ts';
import { keyBytes } from '../../../../src/actors/runtime/journal/keys.ts';
import { type DiskJournal, openJournal } from '../../../../src/actors/runtime/journal/lmdb.ts';
import { BackgroundWalk } from '../../../../src/actors/runtime/journal/pages/background-walk.ts';
import { PAGE_BYTES } from '../../../../src/actors/runtime/journal/pages/pages.ts';
import type { Operation } from '../../../../src/actors/runtime/journal/port.ts';
import type { Part } from '../../../../src/actors/runtime/journal/reader.ts';
import { nodeSchedule } from '../../../../src/actors/runtime/runtime-context.ts';
import { commitRows } from '../../../support/actors/commit-rows.ts';
import { changePage, treeAt, zeroPage } from '../../../support/journal-pages.ts';

const STEP_BYTES = 1024 * 1024;
const NAMES = 1_000;
const RATE = 1024 * 1024;

const nameOf = (at: number) => `name-${String(at).padStart(5, '0')}`;
const idOf = (at: number) => String(1_000_000 + 2 * at);

interface Opened {
  readonly journal: DiskJournal;
  readonly path: string;
  readonly found: Damage[];
}

async function filled(t: Test, operations: (journal: DiskJournal) => readonly Operation[]): Promise<Opened> {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-walk-'));
  const found: Damage[] = [];
  const journal = await openJournal({ directory, stepBytes: STEP_BYTES, onDamage: (row) => found.push(row) });
  t.teardown(async () => {
    await journal.close();
    rmSync(directory, { recursive: true, force: true });
  });
  await commitRows(journal, operations(journal));
  return { journal, path: join(directory, 'data.mdb'), found };
}

function walked(journal: DiskJournal): Promise<{ rows: number; findings: number }> {
  return new Promise((resolve) => journal.walk(resolve));
}

const names = (): Operation[] =>
  Array.from({ length: NAMES }, (_, at) => ({
    op: 'index',
    index: 'publicKey',
    key: nameOf(2 * at),
    owner: `owner-${2 * at}`,
  }));
const turn = (journal: DiskJournal, at: number, seq: number): Operation => ({
  op: 'append',
  kind: 'account',
  id: idOf(at),
  seq,
  row: journal.pack([1, [{ type: 'deposited', amount: seq }], [], []]),
});

/** Flips a bit of a row where it is: the last byte of its key, or one of its value. */
function hit(path: string, table: string, key: Part[] | Part, where: 'key' | 'value'): void {
  const wanted = keyBytes(key);
  for (const page of treeAt(path, table).leaves) {
    changePage(path, page, 0, PAGE_BYTES, (bytes) => {
      const at = bytes.indexOf(wanted);
      if (at < 0) return;
      // The name, or the id of the actor, becomes the next one.
      const [byte, bit] = where === 'value' ? [7, 1] : Array.isArray(key) ? [-11, 1] : [-1, 1];
      const changed = at + wanted.length + byte;
      bytes[changed] = (bytes[changed] ?? 0) ^ bit;
    });
  }
}

t.test('walk: a sound journal has no finding, and all rows are read', async (t) => {
  const { journal, found } = await filled(t, names);
  const { rows, findings } = await walked(journal);
  t.equal(findings, 0);
  // Beside the names: the owner and the layout.
  t.equal(rows, NAMES + 2);
  t.same(found, []);
  t.ok(journal.walkedBytes > NAMES * 20);
});

t.test('walk: a damaged value is found before it is read', async (t) => {
  const { journal, path, found } = await filled(t, names);
  hit(path, 'index/publicKey', nameOf(500), 'value');
  t.match(await walked(journal), { findings: 1 });
  t.match(found, [{ table: 'index/publicKey', key: nameOf(500), message: /checksum/ }]);
  t.equal(journal.damagedRows, 1);
});

// covers S146
t.test(
  'walk: where a key was hit its row is damaged, not absent; others are found, and absent ones are absent',
  async (t) => {
    const { journal, path } = await filled(t, names);
    hit(path, 'index/publicKey', nameOf(500), 'key');
    t.equal(journal.lookup('publicKey', nameOf(500)), undefined, 'before the walk');
    t.match(await walked(journal), { findings: 1 });
    t.throws(() => journal.lookup('publicKey', nameOf(500)), { name: 'DamagedRow' });
    t.equal(journal.lookup('publicKey', nameOf(498)), 'owner-498');
    t.equal(journal.lookup('publicKey', nameOf(502)), 'owner-502');
    t.equal(journal.lookup('publicKey', 'name-00300x'), undefined);
    t.equal(journal.lookup('publicKey', 'zzz'), undefined);
  },
);

// covers S146
t.test(
  'walk: an actor whose last turn has a key that was hit is not read without it; new actors are',
  async (t) => {
    const { journal, path } = await filled(t, (journal) =>
      [1, 2, 3, 4, 5].flatMap((at) => [1, 2, 3].map((seq) => turn(journal, at, seq))),
    );
    const key = ['account', idOf(3), 3];
    hit(path, 'journal', key, 'key');
    const before = journal.load('account', idOf(3));
    t.equal(before?.rows.length, 2, 'before the walk');
    t.match(await walked(journal), { findings: 1 });
    t.throws(() => journal.load('account', idOf(3)), { name: 'DamagedRow' });
    for (const at of [1, 2, 4, 5]) t.equal(journal.load('account', idOf(at))?.rows.length, 3, idOf(at));
    t.equal(journal.load('account', idOf(9)), undefined);
  },
);

t.test('walk: a damaged value of a turn concerns its actor alone', async (t) => {
  const { journal, path } = await filled(t, (journal) =>
    [1, 2, 3].flatMap((at) => [1, 2, 3].map((seq) => turn(journal, at, seq))),
  );
  hit(path, 'journal', ['account', idOf(2), 3], 'value');
  t.match(await walked(journal), { findings: 1 });
  t.throws(() => journal.load('account', idOf(2)), { name: 'DamagedRow' });
  for (const at of [1, 3]) t.equal(journal.load('account', idOf(at))?.rows.length, 3);
});

t.test('walk: a damaged page is found by its number, and the walk reads what is behind it', async (t) => {
  const { journal, path, found } = await filled(t, names);
  const { leaves } = treeAt(path, 'index/publicKey');
  const page = leaves[2] ?? 0;
  t.ok(leaves.length > 4);
  zeroPage(path, page);
  const { rows, findings } = await walked(journal);
  t.equal(findings, 1);
  t.match(found, [{ table: 'index/publicKey', key: `page ${page}`, message: /names another page/ }]);
  t.ok(rows > NAMES / 2 && rows < NAMES);
});

t.test('walk: beside writes nothing is found that is not damaged', async (t) => {
  const { journal, found } = await filled(t, names);
  let isDone = false;
  const end = walked(journal).then((counted) => {
    isDone = true;
    return counted;
  });
  for (let round = 0; !isDone; round += 1) {
    const at = (round * 37) % NAMES;
    await commitRows(journal, [
      { op: 'index', index: 'publicKey', key: nameOf(2 * at), owner: `again-${round}` },
      { op: 'meta', key: `m-${round % 50}`, row: journal.pack({ bytes: Buffer.alloc(9_000, round) }) },
    ]);
  }
  t.equal((await end).findings, 0);
  t.same(found, []);
});

t.test('walk: a megabyte takes a second, and a state of the journal is held for 64 pages', async (t) => {
  const { journal, path } = await filled(t, (journal) =>
    Array.from({ length: 300 }, (_, at) => ({
      op: 'meta',
      key: `m-${at}`,
      row: journal.pack({ bytes: Buffer.alloc(9_000, at) }),
    })),
  );
  t.ok(journal.walkedBytes === 0);
  let waitedMs = 0;
  let pinnedAt = 0;
  const held: number[] = [];
  const walk: BackgroundWalk = new BackgroundWalk({
    path,
    pin() {
      pinnedAt = walk.bytes;
      return () => void held.push(walk.bytes - pinnedAt);
    },
    monotonicMs: () => 0,
    timer(delayMs, run) {
      waitedMs += delayMs;
      return nodeSchedule.timer(0, run);
    },
    onFinding: ({ message }) => t.fail(message),
    onDone: () => ended(),
  });
  let ended = (): void => undefined;
  const done = new Promise<void>((resolve) => {
    ended = resolve;
  });
  walk.start();
  await done;
  t.ok(walk.bytes > 300 * 9_000);
  t.ok(waitedMs >= (walk.bytes - 64 * PAGE_BYTES) / (RATE / 1_000), `${waitedMs} ms`);
  // The two meta pages, the pages above, and the end of a value come to it.
  t.ok(Math.max(...held) <= 80 * PAGE_BYTES, `${Math.max(...held)} bytes`);
});

t.test('walk: on a disk that is slow a state of the journal is held for a second', async (t) => {
  const { path } = await filled(t, names);
  let nowMs = 0;
  let pinnedMs = 0;
  const held: number[] = [];
  const done = new Promise<void>((resolve) => {
    const walk = new BackgroundWalk({
      path,
      pin() {
        pinnedMs = nowMs;
        return () => void held.push(nowMs - pinnedMs);
      },
      // A page takes 300 ms.
      monotonicMs: () => (nowMs += 300),
      timer: (_delayMs, run) => nodeSchedule.timer(0, run),
      onFinding: ({ message }) => t.fail(message),
      onDone: () => resolve(),
    });
    walk.start();
  });
  await done;
  t.ok(Math.max(...held) <= 3_000, `${Math.max(...held)} ms: a second, and the way down to the next row`);
});

t.test('walk: a journal that is closed is not read any more', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-walk-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const journal = await openJournal({ directory, stepBytes: STEP_BYTES });
  await commitRows(journal, names());
  journal.walk(() => t.fail('it was not read as a whole'));
  await journal.close();
  const { walkedBytes } = journal;
  await new Promise((resolve) => setImmediate(resolve));
  t.equal(journal.walkedBytes, walkedBytes);
});
