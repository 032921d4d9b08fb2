import t from 'tap';
import { count, depth } from '../../../support/depth.ts';
import { temporaryFolder } from '../../../support/files/file-storage.ts';
import { cutUploads, type TracedUploads, traceUploads } from '../../../support/power-cut/upload-cuts.ts';
import { lacking } from '../../../support/programs/tools.ts';

const CUTS = 100;
/** Cuts among which a planted fault must show in one: at every depth the same. */
const FAULT_CUTS = 25;
const FAULT_SEED = 1;
const PAGE_BYTES = 4096;

const skip = lacking('strace', 'tracing');
t.setTimeout(240_000);

const scratch = temporaryFolder(t);
let traced: TracedUploads | undefined;
/** One run of the program serves all tests. */
function trace(): TracedUploads {
  traced ??= traceUploads(scratch);
  return traced;
}

// covers S154
t.test('uploads: a kill at any system call takes no chunk that was answered', { skip }, async (t) => {
  const report = await cutUploads(trace(), { cuts: count(CUTS), seed: depth.seed, how: 'kill' });
  t.same(report.faults, []);
  t.ok(report.chunks > 0 && report.files > 0, `${report.chunks} chunks and ${report.files} files answered`);
});

// covers S154
t.test(
  'uploads: after a power cut at any system call files are whole and open uploads can be completed',
  { skip },
  async (t) => {
    const report = await cutUploads(trace(), { cuts: count(CUTS), seed: depth.seed, how: 'power' });
    t.same(report.faults, []);
    t.ok(report.files > 0, `${report.files} files were answered`);
  },
);

// covers S154
t.test('uploads: kills without the tables of the parts find missing chunks', { skip }, async (t) => {
  const { faults } = await cutUploads(trace(), {
    cuts: FAULT_CUTS,
    seed: FAULT_SEED,
    how: 'kill',
    plant: (path, bytes) =>
      path.endsWith('.part')
        ? bytes.subarray(0, Math.floor((bytes.length - 1) / PAGE_BYTES) * PAGE_BYTES)
        : bytes,
  });
  t.match(faults.join('\n'), /chunks [\d ]+ are missing/);
});

// covers S154
t.test('uploads: power cuts with syncs that do nothing find files that are gone', { skip }, async (t) => {
  const options = { cuts: FAULT_CUTS, seed: FAULT_SEED, how: 'power', syncsNothing: true } as const;
  const { faults } = await cutUploads(trace(), options);
  t.not(faults.length, 0);
});
