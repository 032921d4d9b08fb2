/** How upload bytes get to the thread that hashes and writes them: what each way costs the main thread, and how fast it is. */
import { tmpdir } from 'node:os';
import { SECOND_MS } from '../../src/domain/time.ts';
import { startVerifier } from '../children.ts';
import type { Subject } from '../measure.ts';
import type { Bench, LoopPart, Scenario } from '../scenario.ts';
import { median } from '../statistics.ts';

const PIECE_BYTES = 512 * 1024;
const MEBIBYTE = 1024 * 1024;
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
  return bench.loop({
    name: WAYS[way] ?? way,
    pids: [started.pid],
    run: async (durationMs) => (await started.verifyFor(durationMs)) as PiecesPart,
    details(parts, count) {
      const sum = (pick: (part: PiecesPart) => number) =>
        parts.reduce((total, part) => total + pick(part), 0);
      return {
        mebibytesPerSecond:
          ((count * PIECE_BYTES) / MEBIBYTE / sum(({ elapsedMs }) => elapsedMs)) * SECOND_MS,
        mainUsPerPiece: (sum(({ mainMs }) => mainMs) * 1_000) / count,
        delayP99Ms: median(parts.map(({ delayP99Ms }) => delayP99Ms)),
      };
    },
  });
}

interface PiecesPart extends LoopPart {
  /** Processor time of the main thread. */
  readonly mainMs: number;
  readonly delayP99Ms: number;
}
