/**
 * `check` reads a whole journal. Zeroed pages and flipped bits across the file are either found or change nothing that
 * is read.
 */

import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import t from 'tap';
import { launch, runToEnd } from '../../kit/launch.ts';
import { tableKey } from '../../src/actors/runtime/journal/keys.ts';
import { openJournal } from '../../src/actors/runtime/journal/lmdb.ts';
import { changeCopy } from '../../src/actors/runtime/journal/owner.ts';
import { readHead, taken } from '../../src/actors/runtime/journal/pages/meta-pages.ts';
import { PageFile } from '../../src/actors/runtime/journal/pages/page-file.ts';
import { findRow, treeOf } from '../../src/actors/runtime/journal/pages/pages.ts';
import { checkJournalRows } from '../../src/bootstrap/journal-check.ts';
import { seededNumbers } from '../support/actors/actors.ts';
import { commitRows } from '../support/actors/commit-rows.ts';
import { refusedStart, runCommand } from '../support/command.ts';
import { count, depth } from '../support/depth.ts';

/** Longer than tap's 30 s: each damage needs a process of its own. */
t.setTimeout(300_000);

const PAGE = 4096;
/** Positions damaged in each of the two ways at full depth; `node build/test/e2e/check.test.js 500` damages more. */
const PLACES = Number(process.argv[2] ?? count(12));
const STEP_BYTES = 64 * 1024;
const ACTORS = 60;

const root = t.testdir({ original: {} });
const original = join(root, 'original');

const check = (dataPath: string, ...args: string[]) => runCommand(['check', '--data', dataPath, ...args]);
/** No modules: their threads are a third of a start. */
const configuration = {};

/** Rows of every table, one group for each actor, some larger than a page. */
async function fill(directory: string): Promise<void> {
  const journal = await openJournal({ directory, stepBytes: STEP_BYTES });
  for (let at = 1; at <= ACTORS; at += 1) {
    const id = `id-${at}`;
    const bytes = Buffer.alloc(at % 10 === 0 ? 9_000 : 150, at);
    const [kind, toKind] = ['user', 'user'];
    await commitRows(journal, [
      { op: 'append', kind, id, seq: 1, row: journal.pack([1, [{ bytes }], [], []]) },
      { op: 'append', kind, id, seq: 2, row: journal.pack([1, [{ at }], [], []]) },
      { op: 'snapshot', kind, id, seq: 1, fromSeq: 1, row: journal.pack([1, 1, { bytes }, [], []]) },
      { op: 'index', index: 'publicKey', key: `key-${at}`, owner: id },
      { op: 'mail', key: { toKind, toId: id, seq: at, fromKind: '', fromId: '' }, row: journal.pack({ at }) },
      { op: 'timer', key: { dueMs: at, kind, id, name: 'n' }, row: journal.pack({ at }) },
      { op: 'dead', key: { timeMs: at, kind, id, seq: at }, row: journal.pack({ command: {}, reason: '' }) },
      { op: 'audit', ring: 'calls', row: journal.pack({ at, bytes }) },
      { op: 'meta', key: `part:${at}`, row: journal.pack(at) },
      { op: 'eventAccept', identity: `e-${at}`, row: journal.pack([`${at}`]) },
      { op: 'eventPublish', row: journal.pack([`${at}`]) },
    ]);
  }
  await journal.close();
}

/** SHA-256 over all rows, apart from the owner record. The name of an empty table is not read. */
async function digest(directory: string): Promise<string> {
  const environment = open({ path: directory, noSubdir: false, maxDbs: 32, readOnly: true });
  const hash = createHash('sha256');
  for (const name of [...environment.getKeys({})].map(String)) {
    if (name === 'owner') continue;
    const table = environment.openDB(name, { encoding: 'binary' });
    for (const { key, value } of table.getRange({})) {
      hash.update(`\n${name}\n${String(key)}`);
      hash.update(value);
    }
  }
  await environment.close();
  return hash.digest('hex');
}

/** Damages copies of the original at one position each; returns the damages without a finding that change what is read. */
async function unseen(kind: string, damage: (file: Buffer, at: number) => string): Promise<string[]> {
  const whole = await digest(original);
  const file = readFileSync(join(original, 'data.mdb'));
  const missed: string[] = [];
  for (let at = 0; at < PLACES; at += 1) {
    const directory = join(root, `${kind}-${at}`);
    mkdirSync(directory);
    const bytes = Buffer.from(file);
    const place = damage(bytes, at);
    writeFileSync(join(directory, 'data.mdb'), bytes);
    const { findings } = await checkJournalRows(directory, false, () => undefined);
    if (findings === 0 && (await digest(directory)) !== whole) missed.push(place);
    t.notOk(existsSync(join(directory, 'gatehouse.lock')), 'no lock file is left in the folder');
  }
  return missed;
}

function pagesOf(directory: string): number {
  return (
    Number(
      readHead(join(directory, 'data.mdb')).pages.reduce(
        (most, { lastPage }) => (lastPage > most ? lastPage : most),
        0n,
      ),
    ) + 1
  );
}

t.before(() => fill(original));

t.test('check: an intact journal has no findings, and the number of rows read is printed', async (t) => {
  const { code, stdout, stderr } = await runToEnd(['check', '--data', original]);
  t.equal(code, 0, stderr);
  t.match(stdout, /: [0-9]{3} rows in 30 tables, 0 findings\n$/);
});

// covers S145
t.test('check: no zeroed page changes what is read without a finding', async (t) => {
  const pages = pagesOf(original);
  const missed = await unseen('zeros', (file, at) => {
    const page = 2 + Math.floor((at * (pages - 2)) / PLACES);
    file.fill(0, page * PAGE, (page + 1) * PAGE);
    return `page ${page}`;
  });
  t.same(missed, []);
});

// covers S145
t.test('check: no flipped bit changes what is read without a finding', async (t) => {
  const seed = Number(process.argv[3] ?? depth.seed);
  const next = seededNumbers(seed);
  const pages = pagesOf(original);
  const missed = await unseen('bit', (file) => {
    const offset = Math.floor(2 * PAGE + next() * (pages - 2) * PAGE);
    const bit = Math.floor(next() * 8);
    file[offset] = (file[offset] ?? 0) ^ (1 << bit);
    return `bit ${bit} of byte ${offset}, seed ${seed}`;
  });
  t.same(missed, []);
});

t.test('check: damaged and missing rows are reported by table and key', async (t) => {
  const directory = join(root, 'row');
  mkdirSync(directory);
  copyFileSync(join(original, 'data.mdb'), join(directory, 'data.mdb'));
  const environment = open({ path: directory, noSubdir: false, maxDbs: 32 });
  const rows = environment.openDB('index/publicKey', { encoding: 'binary' });
  const turns = environment.openDB('journal', { encoding: 'binary' });
  changeCopy(environment, () => {
    void rows.put('key-7', Buffer.from('other'));
    void turns.remove(['user', 'id-3', 2]);
    void turns.put(['user', 'id-3', 3], Buffer.from([0]));
  });
  await environment.close();
  const { code, stdout } = await check(directory);
  t.equal(code, 70);
  t.match(stdout, /^the row key-7 of index\/publicKey is damaged: it cannot be decoded/);
  t.match(stdout, /^journal: the row user\/id-3\/2 is missing$/m);
  t.match(stdout, /2 findings/);
});

t.test('check: runs beside a serving gateway with the same result and without disturbing it', async (t) => {
  const gateway = await launch({ dataPath: join(root, 'served'), configuration });
  const { code, stdout } = await check(gateway.dataPath);
  t.equal(code, 0, stdout);
  t.match(await check(gateway.dataPath, '--use-older-commit'), {
    code: 70,
    stderr: /is in use by another process/,
  });
  t.equal((await fetch(`${gateway.url}/health`)).status, 200);
  gateway.process.kill('SIGSTOP');
  cpSync(gateway.dataPath, join(root, 'killed'), { recursive: true });
  gateway.process.kill('SIGCONT');
  t.same(await gateway.stop(), { code: 0, signal: null });
});

t.test('check: a folder without a journal is 70, an unknown option 64', async (t) => {
  mkdirSync(join(root, 'empty'));
  t.match(await check(join(root, 'empty')), { code: 70, stderr: /holds no journal/ });
  t.match(await check(original, '--repair'), { code: 64, stderr: /--repair/ });
});

t.test(
  'check --use-older-commit: reverts to the intact meta page, once, and keeps a copy of the overwritten one',
  async (t) => {
    const directory = join(root, 'older');
    cpSync(join(root, 'served'), directory, { recursive: true });
    const file = join(directory, 'data.mdb');
    const [first, second] = readHead(file).pages;
    const newer = first.transaction > second.transaction ? first : second;
    const bytes = readFileSync(file);
    const lost = Buffer.from(bytes.subarray(newer.page * PAGE, (newer.page + 1) * PAGE));
    lost[0] = 0xff;
    bytes.set(lost, newer.page * PAGE);
    writeFileSync(file, bytes);
    t.match(await refusedStart(directory), {
      code: 70,
      stderr: /names another page; restore a backup, or continue from an older commit/,
    });
    const { code, stdout } = await check(directory, '--use-older-commit');
    t.equal(code, 0, stdout);
    t.match(
      stdout,
      new RegExp(`continues from commit ${newer.transaction - 1n}: commit ${newer.transaction} is gone;`),
    );
    const kept = readdirSync(directory).filter((name) => name.startsWith('data.mdb.page'));
    t.same(
      kept.map((name) => readFileSync(join(directory, name))),
      [lost],
    );
    t.match(await check(directory, '--use-older-commit'), {
      code: 64,
      stderr: /both meta pages .* are good/,
    });
    const gateway = await launch({ dataPath: directory, configuration });
    t.notMatch(
      gateway.output().stderr + gateway.output().stdout,
      /"msg":"journal checked"/,
      'it was stopped',
    );
    t.same(await gateway.stop(), { code: 0, signal: null });
  },
);

t.test('backup: a journal with a damaged row or page yields no valid backup', async (t) => {
  const directory = join(root, 'row');
  const row = await runCommand(['backup', join(root, 'copy-row'), '--data', directory]);
  t.match(row, {
    code: 70,
    stderr: /the copy for .* is damaged, as the journal is: the row key-7 .* \(and 1 more\)/,
  });
  const sound = await runCommand(['backup', join(root, 'copy'), '--data', original]);
  t.match(sound, { code: 0, stdout: /backup written/ });
});

// covers S145
t.test(
  'start after a crash: pages are verified first, as not after a stop; a damaged page ends it with one sentence, not a signal',
  async (t) => {
    const dataPath = join(root, 'killed');
    const again = await launch({ dataPath, configuration });
    t.match(again.output().stderr + again.output().stdout, /"msg":"journal checked"/);
    again.process.kill('SIGKILL');
    await again.exited;
    const file = join(dataPath, 'data.mdb');
    const bytes = readFileSync(file);
    const pages = new PageFile(file);
    const { snapshot } = taken(readHead(file))[0];
    const meta = pages.run(findRow(snapshot, snapshot.main, tableKey('meta')));
    pages.close();
    const rootPage = (meta && treeOf(meta)?.root) ?? 0;
    bytes.fill(0, rootPage * PAGE, (rootPage + 1) * PAGE);
    writeFileSync(file, bytes);
    t.match(await refusedStart(dataPath), {
      code: 70,
      stderr: /the journal in .* is damaged: .*; restore a backup\n$/,
    });
  },
);
