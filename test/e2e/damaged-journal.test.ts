/** Starts on journals that are cut, emptied, foreign, overwritten or missing: one sentence and 70, never a signal. */
import { cpSync, existsSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { logIn, type Person, signUp } from '../../kit/agent.ts';
import { entryOf, launch, plainEnvironment, type RunningGateway, runToEnd } from '../../kit/launch.ts';
import { runSync } from '../../kit/run-sync.ts';
import { fileFault } from '../../src/actors/runtime/journal/pages/commit-fault.ts';
import { headFault, META_AT, readHead, taken } from '../../src/actors/runtime/journal/pages/meta-pages.ts';
import { refusedStart, runCommand } from '../support/command.ts';
import { depth } from '../support/depth.ts';
import { lacking } from '../support/programs/tools.ts';

t.setTimeout(240_000);

const PAGE = 4096;
const PORTS = ['--port', '0', '--internal-port', '0'];
/** One of so many damages is started on, others each time. */
const EACH = depth.depth === 'full' ? 1 : 5;
/** No modules: their threads are a third of a start. */
const configuration = {};

interface Folder {
  readonly path: string;
  readonly journal: string;
}

const good = `${t.testdir({ data: {} })}/data`;
/** It is as a kill leaves it: a stop commits more. */
const killed = `${good}-killed`;
let gateway: RunningGateway;
let person: Person;

t.before(async () => {
  gateway = await launch({ dataPath: good, configuration });
  person = await signUp(gateway.url);
  gateway.process.kill('SIGSTOP');
  cpSync(good, killed, { recursive: true });
  gateway.process.kill('SIGCONT');
});

/** A folder that was served and whose gateway was stopped. */
function served(name: string): Folder {
  const path = `${good}-${name}`;
  cpSync(good, path, { recursive: true });
  return { path, journal: join(path, 'data.mdb') };
}

function overwrite(file: string, offset: number, bytes: Uint8Array): void {
  const content = readFileSync(file);
  content.set(bytes, offset);
  writeFileSync(file, content);
}

const noise = (length: number) => Uint8Array.from({ length }, (_, at) => (at * 151 + 7) % 256);

function renumber(file: string, which: 'newest' | 'older', by: number): void {
  const [newest, older] = taken(readHead(file));
  const { page } = which === 'newest' ? newest : older;
  const number = Buffer.alloc(8);
  number.writeBigUInt64LE(newest.transaction + BigInt(by));
  overwrite(file, page * PAGE + META_AT.transaction, number);
}

const DAMAGES: readonly (readonly [name: string, damage: (file: string) => void, says: RegExp])[] = [
  ['cut at the first page', (file) => truncateSync(file, PAGE), /cut off at 4096 bytes/],
  ['cut within the first page', (file) => truncateSync(file, 100), /cut off at 100 bytes/],
  [
    'cut behind the meta pages',
    (file) => truncateSync(file, 2 * PAGE),
    /both meta pages are bad .*needs [0-9]+ bytes/,
  ],
  [
    'cut within the pages in use',
    (file) => truncateSync(file, 6 * PAGE),
    /needs [0-9]+ bytes, and the file has 24576/,
  ],
  [
    'meta page 0 of zeros',
    (file) => overwrite(file, 0, new Uint8Array(PAGE)),
    /meta page 0 is bad: it is all zeros/,
  ],
  [
    'meta page 1 of zeros',
    (file) => overwrite(file, PAGE, new Uint8Array(PAGE)),
    /meta page 1 is bad: it is all zeros/,
  ],
  [
    'meta page 0 of noise',
    (file) => overwrite(file, 0, noise(PAGE)),
    /meta page 0 is bad: it is no meta page/,
  ],
  [
    'meta page 1 of noise',
    (file) => overwrite(file, PAGE, noise(PAGE)),
    /meta page 1 is bad: it is no meta page/,
  ],
  ['both meta pages of noise', (file) => overwrite(file, 0, noise(2 * PAGE)), /both meta pages are bad/],
  ['another data version', (file) => overwrite(file, 28, Uint8Array.of(1)), /data version 1, not 2/],
  [
    'another page size',
    (file) => overwrite(file, 48, Uint8Array.of(0, 0x20)),
    /pages of 8192 bytes, not 4096/,
  ],
  [
    'a root outside of the file',
    (file) => overwrite(file, 136, noise(7)),
    /meta page 0 is bad: a root lies outside/,
  ],
  [
    'the older meta page with the commit of the newest',
    (file) => renumber(file, 'older', 0),
    /it has the commit of the other page/,
  ],
  [
    'the older meta page with a commit behind the newest',
    (file) => renumber(file, 'older', 1),
    /it has commit [0-9]+, and its rows are of commit [0-9]+/,
  ],
  [
    'the newest meta page with a later commit',
    (file) => renumber(file, 'newest', 2),
    /it has commit [0-9]+, and its rows are of commit [0-9]+/,
  ],
  [
    'the newest meta page with a commit before the older one',
    (file) => renumber(file, 'newest', -2),
    /it has commit [0-9]+, and its rows are of commit [0-9]+/,
  ],
  ['a foreign file', (file) => writeFileSync(file, 'x'.repeat(100_000)), /both meta pages are bad/],
];

// covers S139
t.test(
  'two gateways on one folder: one in another network namespace is refused',
  { skip: lacking('network namespaces') },
  async (t) => {
    const args = ['-n', process.execPath, entryOf(), '--data', gateway.dataPath, ...PORTS];
    const second = runSync('unshare', args, { env: plainEnvironment() });
    t.equal(second.status, 70, second.stderr);
    t.match(second.stderr, /^gatehouse: .* is in use by another process\n$/);
  },
);

t.test('the gateway of this folder stops', async (t) => {
  t.same(await gateway.stop(), { code: 0, signal: null });
});

// covers S141 S142
t.test('damaged journal: a start on a damaged header ends with 70 and one sentence', async (t) => {
  const isStarted = (at: number) => (at + depth.seed) % EACH === 0;
  let isProgram = true;
  for (const [at, [name, damage, says]] of DAMAGES.entries()) {
    const { path, journal } = served(String(at));
    damage(journal);
    // A start asks this before the engine opens the file.
    t.match(fileFault(journal), says, name);
    if (!isStarted(at)) continue;
    // The first is a program of its own: it ends by no signal.
    const { code, stderr } = isProgram
      ? await runToEnd(['--data', path, ...PORTS])
      : await refusedStart(path);
    isProgram = false;
    t.equal(code, 70, name);
    t.match(stderr, says, name);
    t.match(
      stderr,
      /^gatehouse: the journal .* is damaged: .*; restore a backup(, or continue from an older commit \(check --use-older-commit\))?\n$/,
      name,
    );
  }
});

// covers S142
t.test(
  'damaged journal: behind a wrong number of the older meta page the newest commit comes back',
  async (t) => {
    renumber(join(killed, 'data.mdb'), 'older', 1);
    const checked = await runCommand(['check', '--data', killed]);
    t.match(checked, { code: 70, stdout: /it has commit .*\n.* 1 findings/ });
    t.match(await refusedStart(killed), { code: 70, stderr: /or continue from an older commit/ });
    const repaired = await runCommand(['check', '--use-older-commit', '--data', killed]);
    t.match(repaired, { code: 0, stdout: /nothing is gone: .* 0 findings/s });
    const again = await launch({ dataPath: killed, configuration });
    t.equal((await logIn(again.url, person.key)).status, 200);
    t.same(await again.stop(), { code: 0, signal: null });
  },
);

t.test('damaged journal: a journal cut within its unused preallocated pages is served', async (t) => {
  const { path, journal } = served('cut');
  const { pages, sizeBytes } = readHead(journal);
  const usedBytes = (Math.max(...pages.map(({ lastPage }) => Number(lastPage))) + 1) * PAGE;
  t.ok(usedBytes < sizeBytes);
  truncateSync(journal, usedBytes);
  t.equal(headFault(readHead(journal)), undefined);
  const gateway = await launch({ dataPath: path, configuration });
  t.same(await gateway.stop(), { code: 0, signal: null });
});

// covers S143
t.test(
  'missing journal: a start needs --new-journal, which is refused with 64 if the journal is present',
  async (t) => {
    const { path, journal } = served('missing');
    const present = await refusedStart(path, '--new-journal');
    t.equal(present.code, 64);
    t.match(present.stderr, /^gatehouse: --new-journal: .*data\.mdb exists already\n$/);
    for (const make of [() => rmSync(journal), () => writeFileSync(journal, '')]) {
      make();
      const { code, stderr } = await refusedStart(path);
      t.equal(code, 70);
      t.match(
        stderr,
        /had a journal, and data\.mdb is (gone|empty); restore a backup, or start with an empty journal/,
      );
    }
    const anew = await launch({ dataPath: path, configuration, args: ['--new-journal'] });
    t.same(await anew.stop(), { code: 0, signal: null });
    const again = await launch({ dataPath: path, configuration });
    t.same(await again.stop(), { code: 0, signal: null });
  },
);

t.test(
  'first start: after a kill before the journal has its name, the next start creates a journal',
  async (t) => {
    const path = `${t.testdir({ data: {} })}/data`;
    // A kill during creation leaves the unmarked lock file and an incomplete journal.
    writeFileSync(join(path, 'gatehouse.lock'), '');
    writeFileSync(join(path, 'new.mdb'), 'half');
    const gateway = await launch({ dataPath: path, configuration });
    t.ok(existsSync(join(path, 'data.mdb')) && statSync(join(path, 'data.mdb')).size > 0);
    t.same(await gateway.stop(), { code: 0, signal: null });
  },
);
