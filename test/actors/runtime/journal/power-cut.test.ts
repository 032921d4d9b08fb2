/**
 * Power cuts: a journal's calls are traced while it writes, its disk is rebuilt as it may be found after a cut at any
 * moment, and the journal opened on that. Where strace is missing these are skipped; test/actors/runtime/journal/traced-disk.test.ts
 * shows the rebuild without it.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { count, depth } from '../../../support/depth.ts';
import {
  cutPower,
  durable,
  printedBy,
  rebuilt,
  type Traced,
  traceProgram,
  traceWriter,
} from '../../../support/power-cut/cuts.ts';
import { stringsOf } from '../../../support/power-cut/trace.ts';
import { lacking } from '../../../support/programs/tools.ts';

const TURNS = 600;
const CUTS = 300;
/** Cuts among which a planted fault must show in one: at every depth the same. */
const FAULT_CUTS = 40;
const FAULT_SEED = 1;

const UNSYNCED_WRITER = fileURLToPath(
  new URL('../../../support/power-cut/unsynced-writer.js', import.meta.url),
);
const GROUPS = 20;

const skip = lacking('strace', 'tracing');
t.setTimeout(240_000);

/** Its trace is kept for the analysis of a failure. */
function scratch(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'gatehouse-power-cut-'));
  t.teardown(() => {
    if (t.passing()) rmSync(directory, { recursive: true, force: true });
    else process.stderr.write(`kept: ${directory}\n`);
  });
  return directory;
}

// covers S153
t.test('power cut: whatever was acknowledged is there, nothing is half there', { skip }, async (t) => {
  const traced = traceWriter(scratch(t), TURNS);
  const whole = rebuilt(traced);
  for (const [path, bytes] of traced.left)
    t.ok(whole.get(path)?.equals(bytes), `${path}: no call was missed, the rebuilt file is the program's`);
  const cuts = count(CUTS);
  const report = await cutPower(traced, cuts, depth.seed);
  t.same(report.faults, []);
  t.ok(
    report.amidst > cuts / 2 && (depth.depth !== 'full' || report.without > 0),
    `before the first file ${report.without}, later ${report.amidst}`,
  );
  const [, copy] = [...traced.left];
  t.ok(copy !== undefined && durable(traced).get(copy[0])?.equals(copy[1]), 'a copy that is done stays');
});

// covers S153
t.test('power cut: catches an acknowledgement before the commit', { skip }, async (t) => {
  const { faults } = await cutPower(traceWriter(scratch(t), TURNS, 'early'), FAULT_CUTS, FAULT_SEED);
  t.match(faults.join('\n'), /was acknowledged by [a-f] and is lost/);
});

// covers S153
t.test('power cut: catches syncs that do nothing, and a synced page that is lost', { skip }, async (t) => {
  const traced = traceWriter(scratch(t), TURNS);
  const { faults } = await cutPower(traced, FAULT_CUTS, FAULT_SEED, { syncsNothing: true, untilFault: true });
  t.match(faults.join('\n'), /does not open|is lost/);
  const holed = await cutPower(withoutPages(traced), FAULT_CUTS, FAULT_SEED, { untilFault: true });
  t.not(holed.faults.length, 0);
});

t.test(
  'power cut: a journal of a node syncs no commit, and all of them when it is closed',
  { skip },
  async (t) => {
    const syncsOf = (mode: string) => {
      const directory = scratch(t);
      const folder = join(directory, 'journal');
      const moments = traceProgram(directory, [UNSYNCED_WRITER, folder, String(GROUPS), mode]);
      const printed = moments.flatMap((moment, index) =>
        moment.phase === 'begin' && printedBy(moment) !== '' ? [index] : [],
      );
      const [first, last, closed] = printed;
      const syncs = moments
        .slice(first, last)
        .filter(({ phase, call }) => phase === 'begin' && /^f(data)?sync$|^msync$/.test(call.name));
      const file = join(folder, 'data.mdb');
      const left = new Map([[file, readFileSync(file)]]);
      const traced = { moments: moments.slice(0, closed), folder, left };
      return { syncs: syncs.length, isDurable: durable(traced).get(file)?.equals(readFileSync(file)) };
    };
    t.same(syncsOf('unsynced'), { syncs: 0, isDurable: true });
    t.ok(syncsOf('synced').syncs >= GROUPS);
  },
);

/** Without every tenth write of one page, which the disk has acknowledged. */
function withoutPages(traced: Traced): Traced {
  const pages = traced.moments.filter(
    ({ phase, call }) =>
      phase === 'begin' && call.name === 'pwrite64' && stringsOf(call)[0]?.length === 4_096,
  );
  const lost = new Set(pages.filter((_, index) => index % 10 === 9).map(({ call }) => call));
  return { ...traced, moments: traced.moments.filter(({ call }) => !lost.has(call)) };
}
