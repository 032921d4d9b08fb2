/** Power cuts and kills of uploads: the disk rebuilt at moments picked by a seed, and what a start makes of it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { seededNumbers } from '../actors/actors.ts';
import { LOCKS, printedBy, traceProgram } from './cuts.ts';
import { TracedDisk } from './disk.ts';
import type { Moment } from './trace.ts';
import { faultsOf, type Promised } from './uploads.ts';

const WRITER = fileURLToPath(new URL('./upload-writer.js', import.meta.url));

export interface TracedUploads {
  readonly folder: string;
  readonly moments: readonly Moment[];
}

export function traceUploads(scratch: string): TracedUploads {
  const folder = join(scratch, 'data');
  return { folder, moments: traceProgram(scratch, [WRITER, folder]) };
}

export interface UploadCuts {
  readonly cuts: number;
  readonly seed: number;
  /** `kill`: all that was written is there. `power`: what was synced is, and any part of the rest. */
  readonly how: 'kill' | 'power';
  /** Planted fault: changes the bytes of a file on the disk. */
  readonly plant?: (path: string, bytes: Buffer) => Buffer;
  readonly syncsNothing?: boolean;
}

export interface UploadCutsReport {
  readonly faults: string[];
  /** Answered chunks and files, over all moments. */
  chunks: number;
  files: number;
}

/** Ends at the first moment with a fault. */
export async function cutUploads(traced: TracedUploads, options: UploadCuts): Promise<UploadCutsReport> {
  const { moments, folder } = traced;
  const { cuts, seed, how, plant = (_path, bytes) => bytes, syncsNothing = false } = options;
  const random = seededNumbers(seed);
  const disk = new TracedDisk({ folder, ignored: LOCKS, syncsNothing });
  const promised = { opened: new Set<string>(), chunks: new Set<string>(), files: new Set<string>() };
  const first = moments.findIndex((moment) => printedBy(moment) !== '');
  // The last moment always: then all files were answered, whatever the seed.
  const picked = [
    moments.length - 1,
    ...Array.from({ length: cuts - 1 }, () => first + Math.floor(random() * (moments.length - first))),
  ];
  const report: UploadCutsReport = { faults: [], chunks: 0, files: 0 };
  let done = 0;
  for (const at of picked.sort((a, b) => a - b)) {
    for (; done <= at; done += 1) {
      const moment = moments[done] as Moment;
      disk.take(moment);
      if (moment.phase === 'begin') note(promised, printedBy(moment));
    }
    report.chunks += promised.chunks.size;
    report.files += promised.files.size;
    const left = how === 'kill' ? disk.whole() : disk.afterCut(random);
    const faults = await afterwards(left, traced, promised, how, plant);
    report.faults.push(...faults.map((fault) => `${how} at ${at} of seed ${seed}: ${fault}`));
    if (faults.length > 0) break;
  }
  return report;
}

function note(promised: Record<keyof Promised, Set<string>>, printed: string): void {
  for (const [, word = '', rest = ''] of printed.matchAll(/^(\w+) (.*)$/gm)) {
    if (word === 'opened') promised.opened.add(rest);
    else if (word === 'chunk') promised.chunks.add(rest);
    else promised.files.add(rest);
  }
}

async function afterwards(
  left: ReadonlyMap<string, Buffer>,
  { folder }: TracedUploads,
  promised: Promised,
  how: UploadCuts['how'],
  plant: NonNullable<UploadCuts['plant']>,
): Promise<string[]> {
  const scratch = mkdtempSync(join(tmpdir(), 'gatehouse-upload-cut-'));
  try {
    for (const [path, bytes] of left) {
      const copy = join(scratch, path.slice(folder.length));
      mkdirSync(dirname(copy), { recursive: true });
      writeFileSync(copy, plant(path, bytes));
    }
    return await faultsOf(scratch, promised, how === 'kill');
  } catch (error) {
    return [`does not start: ${error instanceof Error ? error.message : String(error)}`];
  } finally {
    rmSync(scratch, { recursive: true });
  }
}
