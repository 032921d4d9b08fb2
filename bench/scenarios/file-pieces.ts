/** How upload bytes get to the thread that hashes and writes them: what each way costs the main thread, and how fast it is. */
import { tmpdir } from 'node:os';
import { startVerifier } from '../children.ts';
import type { Subject } from '../measure.ts';
import type { Bench, Scenario } from '../scenario.ts';
import { median } from '../statistics.ts';

const PIECE_BYTES = 512 * 1024;
const SECOND_MS = 1_000;
const WAYS: Record<string, string> = {
  slab: 'shared slab to a worker',
  transfer: 'copy transferred to a worker',
  clone: 'copy cloned to a worker',
  libuv: 'CRC here, fs.write in the libuv pool',
  inline: 'CRC and writeSync here',
};

export const filePieces: Scenario = {
  name: 'file-pieces',
  summary: 'ways of upload bytes into a file with their CRC-32, in pieces of 512 KB, one worker thread',
  unit: 'pieces',
  share: 0.8,
  noTarget: 'it runs on this machine alone, without a gateway',
  async run(bench) {
    const subjects: Subject[] = [];
    for (const way of Object.keys(WAYS)) subjects.push(await subjectOf(bench, way));
    const comparison = await bench.compare(subjects);
    const notes = comparison.subjects.map(({ name, rounds }) => {
      const figure = (key: string) => median(rounds.map(({ details }) => Number(details[key])));
      const rate = figure('mebibytesPerSecond').toFixed(0);
      const mainUs = figure('mainUsPerPiece').toFixed(0);
      return `${name}: ${rate} MiB/s, main thread ${mainUs} us a piece, event-loop delay p99 ${figure('delayP99Ms').toFixed(1)} ms`;
    });
    return { comparison, notes };
  },
};

async function subjectOf(bench: Bench, way: string): Promise<Subject> {
  const folder = bench.options.folder ?? tmpdir();
  const started = await startVerifier('file-pieces', [way, String(PIECE_BYTES), folder]);
  bench.afterwards(() => started.stop());
  return {
    name: WAYS[way] ?? way,
    pids: [started.pid],
    warmUp: () => started.verifyFor(bench.options.warmupMs),
    async round() {
      const measured = await started.verifyFor(bench.options.durationMs);
      const { count, elapsedMs } = measured;
      const { mainMs, delayP99Ms } = measured as unknown as { mainMs: number; delayP99Ms: number };
      return {
        ratePerSecond: (count / elapsedMs) * SECOND_MS,
        details: {
          answersInAll: count,
          mebibytesPerSecond: ((count * PIECE_BYTES) / 1024 / 1024 / elapsedMs) * SECOND_MS,
          mainUsPerPiece: (mainMs * 1_000) / count,
          delayP99Ms,
        },
      };
    },
  };
}
