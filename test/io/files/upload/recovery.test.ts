/** Handling of open uploads at a start: on one machine all, on a node its own. */
import t from 'tap';
import type { SweepScope, WantedFiles } from '../../../../src/io/files/storage/port.ts';
import { recoverUploads } from '../../../../src/io/files/upload/recovery.ts';
import { createUploadActors, SampleFile } from '../../../support/files/upload-world.ts';

const OWN = '101';
const FOREIGN = '102';
const KEEP_SINCE_MS = 5_000;

/** Two open uploads that each lost their only acknowledged chunk. */
async function start() {
  const uploads = createUploadActors();
  const fileIds: string[] = [];
  for (const [seed, userId] of [OWN, FOREIGN].entries()) {
    const file = new SampleFile(seed + 1, 2);
    await uploads.init(userId, file);
    await uploads.part(userId, file, 0);
    fileIds.push([...uploads.world.messages.values()].at(-1)?.fileId ?? '');
  }
  for (const part of uploads.world.parts.values()) part.clear();
  const swept: { wanted: WantedFiles; scope: SweepScope | undefined }[] = [];
  const { system } = uploads.actors;
  const sweep = async (wanted: WantedFiles, scope?: SweepScope) => {
    swept.push({ wanted, scope });
    return 0;
  };
  return {
    system,
    fileIds,
    swept,
    options: { actors: system, administration: system.administration, storage: { sweep } },
  };
}

t.test('recovery: one machine checks all open uploads and sweeps all parts', async (t) => {
  const { options, swept, fileIds } = await start();
  t.match(await recoverUploads(options), { clean: false, uploads: 2, chunksLost: 2 });
  t.equal(swept[0]?.scope, undefined);
  t.same(
    fileIds.map((fileId) => swept[0]?.wanted.has(fileId)),
    [true, true],
  );
});

// covers C2
t.test('recovery: a node checks the uploads of its partitions alone, also after a clean stop', async (t) => {
  const { system, options, swept, fileIds } = await start();
  await system.administration.metaPut('filesClean', true);
  const asked = new Set<string>();
  const owns = (kind: string, id: string) => {
    asked.add(kind);
    return id === OWN;
  };
  const node = { ownership: { owns }, keepSinceMs: KEEP_SINCE_MS };
  const report = await recoverUploads({ ...options, node });
  t.match(report, { clean: false, uploads: 1, chunksLost: 0 }, 'what was acknowledged is on the disk');
  t.same([...asked], ['upload']);
  const [{ wanted, scope } = { wanted: new Set(), scope: undefined }] = swept;
  t.same(
    fileIds.map((fileId) => wanted.has(fileId)),
    [true, true],
    'an upload of another node may move here meanwhile',
  );
  t.same(
    [OWN, FOREIGN].map((owner) => scope?.includes(owner)),
    [true, false],
    'only parts of its owners',
  );
  t.equal(scope?.keepSinceMs, KEEP_SINCE_MS);
  t.equal(system.administration.metaGet('filesClean'), true, 'the mark of one machine is left alone');
  t.match(await recoverUploads(options), { clean: true, uploads: 2 });
});
