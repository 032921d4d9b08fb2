/**
 * Ways for the bytes of an upload to become a hashed stretch of a file, as the main thread sees them: a piece arrives in
 * memory that is lent for the call, so every way but the inline one copies it first. Four pieces under way. Takes
 * `{durationMs}` and answers `{count, elapsedMs, mainMs, delayP99Ms}`.
 */
import { mkdtempSync, openSync, readFileSync, rmSync, write, writeSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Piscina } from 'piscina';
import { crc32 } from '../../src/workers/crc32.ts';
import { createWorkerPool } from '../../src/workers/pool.ts';
import type { writePiece } from './file-piece-tasks.ts';

/** Pieces of one file before it starts over: few, so that neither the disk nor memory never used is what is measured. */
const FILE_PIECES = 32;
const IN_FLIGHT = 4;
const NS_PER_MS = 1_000_000;

type Way = (source: Uint8Array, fd: number, position: number) => number | Promise<number>;

const [mode = '', size = '', parent = ''] = process.argv.slice(2);
const pieceBytes = Number(size);
const folder = mkdtempSync(join(parent, 'gatehouse-pieces-'));
const fd = openSync(join(folder, 'file'), 'w+');
// Its name is not needed, and whoever ends this process does not ask.
rmSync(folder, { recursive: true });
const source = new Uint8Array(pieceBytes).fill(0x61);
const expected = crc32(source);

const WAYS: Record<string, () => Way> = {
  slab() {
    const pool = createWorkerPool({ threads: 1, queueMax: 100 });
    const idle: SharedArrayBuffer[] = [];
    return async (bytes, file, position) => {
      const slab = idle.pop() ?? new SharedArrayBuffer(pieceBytes);
      new Uint8Array(slab).set(bytes);
      const result = await pool.run('writeSlab', { slab, length: bytes.length, fd: file, position });
      idle.push(slab);
      return result.ok && typeof result.value === 'number' ? result.value : Number.NaN;
    };
  },
  transfer: () => piscinaWay((bytes) => [bytes]),
  clone: () => piscinaWay(() => []),
  inline: () => (bytes, file, position) => {
    writeSync(file, bytes, 0, bytes.length, position);
    return crc32(bytes);
  },
  libuv: () => (bytes, file, position) => {
    const copy = Uint8Array.from(bytes);
    const crc = crc32(copy);
    return new Promise((resolve, reject) => {
      write(file, copy, 0, copy.length, position, (error) => (error === null ? resolve(crc) : reject(error)));
    });
  },
};

function piscinaWay(transferOf: (bytes: ArrayBuffer) => ArrayBuffer[]): Way {
  const pool = new Piscina({
    filename: new URL('./file-piece-tasks.js', import.meta.url).href,
    name: 'writePiece' satisfies (typeof writePiece)['name'],
    minThreads: 1,
    maxThreads: 1,
    concurrentTasksPerWorker: 2,
  });
  return (bytes, file, position) => {
    const copy = Uint8Array.from(bytes).buffer;
    return pool.run({ bytes: copy, fd: file, position }, { transferList: transferOf(copy) });
  };
}

/** Processor time of this thread alone. */
function mainMs(): number {
  const stat = readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1');
  return Number(stat.split(' ')[0]) / NS_PER_MS;
}

async function runFor(way: Way, durationMs: number): Promise<object> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startedMs = performance.now();
  const mainBeforeMs = mainMs();
  let count = 0;
  const lane = async () => {
    while (performance.now() - startedMs < durationMs) {
      const position = (count % FILE_PIECES) * pieceBytes;
      count += 1;
      const crc = await way(source, fd, position);
      if (crc !== expected) throw new Error(`${mode}: wrong checksum ${crc}`);
      // As after a piece from the network: the loop turns.
      await new Promise(setImmediate);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  delay.disable();
  const elapsedMs = performance.now() - startedMs;
  return { count, elapsedMs, mainMs: mainMs() - mainBeforeMs, delayP99Ms: delay.percentile(99) / NS_PER_MS };
}

const makeWay = WAYS[mode];
if (makeWay === undefined) throw new Error(`unknown way ${mode}`);
const way = makeWay();
process.on('message', ({ durationMs }: { durationMs: number }) => {
  runFor(way, durationMs).then(
    (measured) => process.send?.(measured),
    (error: unknown) => {
      process.stderr.write(`${String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit(0));
process.send?.({ url: 'pieces' });
