/** Reads a range of a file in steps, for the hashes that a worker thread takes of it. */
import { readSync } from 'node:fs';
import { pageMemory } from '../domain/page-memory.ts';

/** A range of a file, in bytes. */
export interface FileRangeTask {
  readonly fd: number;
  readonly position: number;
  readonly length: number;
}

const STEP_BYTES = 256 * 1024;
/** One for each thread, which runs one task at a time. */
const STEP = pageMemory(STEP_BYTES);

let onStep: () => void = () => undefined;

/** A thread that reads a long range shows with each step that it lives. */
export function onRangeStep(listener: () => void): void {
  onStep = listener;
}

/** `take` gets the bytes piece by piece, valid until it returns. False: the file ends before the range does. */
export function readRange(
  { fd, position, length }: FileRangeTask,
  take: (bytes: Uint8Array) => void,
): boolean {
  for (let done = 0; done < length; ) {
    const got = readSync(fd, STEP, 0, Math.min(STEP_BYTES, length - done), position + done);
    if (got === 0) return false;
    take(STEP.subarray(0, got));
    done += got;
    onStep();
  }
  return true;
}
