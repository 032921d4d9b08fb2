/** The files that publisher.js stores, and what a power cut may leave of them. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FileKey } from '../../../src/domain/files/files.ts';
import { seededNumbers } from '../actors/actors.ts';
import { printedBy, traceProgram } from './cuts.ts';
import { type DiskOptions, TracedDisk } from './disk.ts';
import { type Moment, stringsOf } from './trace.ts';

const PUBLISHER = fileURLToPath(new URL('./publisher.js', import.meta.url));
/** Files of one owner, whose folder is made with the first one. */
const FILES_PER_OWNER = 10;
const FILE_BYTES_MAX = 20_000;
/** Every third part has a table behind its bytes. */
const TABLE = Buffer.alloc(700, 't');
const NOTHING = /$^/;

export interface TracedFiles {
  readonly moments: readonly Moment[];
  readonly folder: string;
  readonly files: number;
}

export interface PublishCuts {
  /** Published files that were found, over all cuts. */
  readonly found: number;
  /** Parts that were found. */
  readonly parts: number;
  readonly faults: readonly string[];
}

export function keyOf(file: number): FileKey {
  return { owner: String(1 + Math.floor(file / FILES_PER_OWNER)), fileId: String(1_000 + file) };
}

export function publishedBytes(file: number): Buffer {
  return Buffer.alloc((file * 7_919) % FILE_BYTES_MAX, `bytes of file ${file}; `);
}

export function partOf(file: number): Buffer {
  return file % 3 === 0 ? Buffer.concat([publishedBytes(file), TABLE]) : publishedBytes(file);
}

export function partBytesMaxOf(file: number): number {
  return publishedBytes(file).length + TABLE.length;
}

export function traceFiles(scratch: string, files: number, ...fault: ('early' | 'unsynced')[]): TracedFiles {
  const folder = join(scratch, 'files');
  return { moments: traceProgram(scratch, [PUBLISHER, folder, String(files), ...fault]), folder, files };
}

/** Cuts the power so many times: a file that was published is there, and each file that is there is whole. */
export function cutPublishing(
  { moments, folder, files }: TracedFiles,
  cuts: number,
  seed: number,
  options: Pick<DiskOptions, 'syncsNothing'> = {},
): PublishCuts {
  const random = seededNumbers(seed);
  const first = moments.findIndex(({ call }) => stringsOf(call)[0]?.toString() === folder);
  const picked = Array.from({ length: cuts }, () => first + Math.floor(random() * (moments.length - first)));
  const expected = new Map(
    Array.from({ length: files }, (_, file) => [pathOf(folder, keyOf(file)), publishedBytes(file)]),
  );
  const disk = new TracedDisk({ folder, ignored: NOTHING, ...options });
  const published = new Set<string>();
  const faults: string[] = [];
  let found = 0;
  let parts = 0;
  let done = 0;
  for (const at of picked.sort((a, b) => a - b)) {
    for (; done <= at; done += 1) {
      const moment = moments[done] as Moment;
      disk.take(moment);
      if (moment.phase === 'begin') for (const name of publishedBy(moment)) published.add(join(folder, name));
    }
    const left = disk.afterCut(random);
    for (const path of published) if (!left.has(path)) faults.push(`moment ${at}: ${path} is lost`);
    for (const [path, bytes] of left) {
      const whole = expected.get(path);
      if (whole === undefined) parts += 1;
      else if (whole.equals(bytes)) found += 1;
      else faults.push(`moment ${at}: ${path} has ${bytes.length} bytes, or others than were published`);
    }
  }
  return { found, parts, faults };
}

function pathOf(folder: string, { owner, fileId }: FileKey): string {
  return join(folder, owner, fileId);
}

/** The words may have left as soon as the call began. */
function publishedBy(moment: Moment): string[] {
  return [...printedBy(moment).matchAll(/^published (\S+)$/gm)].map(([, name = '']) => name);
}
