/** The data folder of a node: when its journal is used again, set aside, or left to the operator. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { Diverged, LogLost } from '../../../src/actors/runtime/replication/port.ts';
import {
  bootId,
  isUnsynced,
  markClosed,
  markEnd,
  markOpen,
  requireNoNode,
  setAside,
  settleLastRun,
} from '../../../src/io/cluster/node-folder.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 5);
const OWN = { position: 100, digest: Buffer.alloc(32) };
const JOURNAL = 'data.mdb';

/** A folder with a journal and a lock. */
function folderOf(t: Test): string {
  const folder = temporaryFolder(t);
  for (const name of [JOURNAL, 'lock.mdb']) writeFileSync(join(folder, name), name);
  return folder;
}

const USED_AGAIN: readonly [title: string, run: (folder: string) => void, boot: string | null][] = [
  ['never used by a node', () => undefined, 'boot 1'],
  ['closed, the same run of the machine', markClosed, 'boot 1'],
  ['closed, a later run of the machine', markClosed, 'boot 2'],
  ['closed, a machine whose runs have no name', markClosed, null],
  ['not closed, the same run of the machine', (folder) => markOpen(folder, 'boot 1'), 'boot 1'],
  [
    'ended with a lost log',
    (folder) => {
      markOpen(folder, 'boot 1');
      markEnd(folder, new LogLost('it is gone'));
    },
    'boot 1',
  ],
];

for (const [title, run, boot] of USED_AGAIN)
  t.test(`node folder: a journal is used again: ${title}`, async (t) => {
    const folder = folderOf(t);
    run(folder);
    t.equal(isUnsynced(folder, boot), false);
    t.equal(settleLastRun(folder, boot, NOW_MS), undefined);
    t.equal(readFileSync(join(folder, JOURNAL), 'utf8'), JOURNAL);
  });

const SET_ASIDE: readonly [
  title: string,
  cause: string,
  run: (folder: string) => void,
  boot: string | null,
][] = [
  ['not closed, a later run of the machine', 'unsynced', (folder) => markOpen(folder, 'boot 1'), 'boot 2'],
  ['not closed, a machine whose runs have no name', 'unsynced', (folder) => markOpen(folder, null), null],
  ['half of a mark', 'unsynced', (folder) => writeFileSync(join(folder, 'node.run'), '{"end":"cl'), 'boot 1'],
  [
    'most nodes had another state',
    'diverged',
    (folder) => {
      markOpen(folder, 'boot 1');
      markEnd(folder, new Diverged('it differs', true, OWN));
    },
    'boot 1',
  ],
];

for (const [title, cause, run, boot] of SET_ASIDE)
  t.test(`node folder: a journal is set aside, once: ${title}`, async (t) => {
    const folder = folderOf(t);
    run(folder);
    const aside = join(folder, 'set-aside', `2026-01-02T03-04-05-000Z-${cause}`);
    t.same(settleLastRun(folder, boot, NOW_MS), { folder: aside, cause });
    t.equal(readFileSync(join(aside, JOURNAL), 'utf8'), JOURNAL);
    t.notOk(existsSync(join(folder, JOURNAL)) || existsSync(join(folder, 'lock.mdb')));
    writeFileSync(join(folder, JOURNAL), 'fetched');
    t.equal(settleLastRun(folder, boot, NOW_MS), undefined);
  });

t.test('node folder: without a majority every start is refused until the folder is emptied', async (t) => {
  const folder = folderOf(t);
  markOpen(folder, 'boot 1');
  markEnd(folder, new Diverged('it differs, and nothing decides', false, OWN));
  for (const boot of ['boot 1', 'boot 2'])
    t.throws(() => settleLastRun(folder, boot, NOW_MS), {
      name: 'ClusterUnusable',
      message: 'it differs, and nothing decides',
    });
  t.ok(existsSync(join(folder, JOURNAL)), 'the operator may choose it');
});

t.test('node folder: of the journals that are set aside the newest three are kept', async (t) => {
  const folder = folderOf(t);
  for (const minute of [0, 1, 2, 3, 4]) {
    writeFileSync(join(folder, JOURNAL), `journal ${minute}`);
    t.ok(setAside(folder, 'behind', NOW_MS + minute * 60_000));
  }
  t.same(readdirSync(join(folder, 'set-aside')), [
    '2026-01-02T03-06-05-000Z-behind',
    '2026-01-02T03-07-05-000Z-behind',
    '2026-01-02T03-08-05-000Z-behind',
  ]);
  t.equal(setAside(folder, 'behind', NOW_MS), undefined, 'there is no journal any more');
  t.equal(readdirSync(join(folder, 'set-aside')).length, 3);
});

t.test(
  'node folder: a gateway without Cluster refuses it, and takes one that holds no journal',
  async (t) => {
    const folder = folderOf(t);
    t.doesNotThrow(() => requireNoNode(folder), 'no node has used it');
    markClosed(folder);
    t.throws(() => requireNoNode(folder), { message: /state of a node of a cluster: .*cluster export/ });
    const empty = temporaryFolder(t);
    mkdirSync(join(empty, 'set-aside'));
    markClosed(empty);
    t.doesNotThrow(() => requireNoNode(empty));
  },
);

t.test('node folder: the run of the machine has one name', async (t) => {
  t.equal(bootId(), bootId());
  t.equal(bootId() !== null, process.platform === 'linux');
});
