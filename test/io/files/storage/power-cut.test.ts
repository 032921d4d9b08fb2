import t from 'tap';
import { count, depth } from '../../../support/depth.ts';
import { temporaryFolder } from '../../../support/files/file-storage.ts';
import { cutPublishing, traceFiles } from '../../../support/power-cut/published-files.ts';
import { lacking } from '../../../support/programs/tools.ts';

const FILES = 60;
const CUTS = 3_000;
/** Cuts among which a planted fault must show in one: at every depth the same. */
const FAULT_CUTS = 200;
const FAULT_SEED = 1;

const skip = lacking('strace', 'tracing');
t.setTimeout(120_000);

t.test('power cut: a published file is there, and each file that is there is whole', { skip }, async (t) => {
  const cuts = count(CUTS);
  const { faults, found, parts } = cutPublishing(traceFiles(temporaryFolder(t), FILES), cuts, depth.seed);
  t.same(faults, []);
  t.ok(found > cuts && parts > cuts / 10, `${found} files and ${parts} parts in ${cuts} cuts`);
});

t.test(
  'power cut: a file is there although the folder of its owner was made by a task that did not sync',
  { skip },
  async (t) => {
    const traced = traceFiles(temporaryFolder(t), FILES, 'unsynced');
    t.same(cutPublishing(traced, FAULT_CUTS, FAULT_SEED).faults, []);
  },
);

t.test('power cut: catches a file that counts as published too early', { skip }, async (t) => {
  const traced = traceFiles(temporaryFolder(t), FILES, 'early');
  t.match(cutPublishing(traced, FAULT_CUTS, FAULT_SEED).faults.join('\n'), /is lost/);
});

t.test('power cut: catches syncs that do nothing, and bytes that are not synced', { skip }, async (t) => {
  const traced = traceFiles(temporaryFolder(t), FILES);
  const unsynced = cutPublishing(traced, FAULT_CUTS, FAULT_SEED, { syncsNothing: true });
  t.match(unsynced.faults.join('\n'), /is lost/);
  const moments = traced.moments.filter(({ call }) => call.name !== 'fdatasync');
  const torn = cutPublishing({ ...traced, moments }, FAULT_CUTS, FAULT_SEED);
  t.match(torn.faults.join('\n'), /or others than were published/);
});
