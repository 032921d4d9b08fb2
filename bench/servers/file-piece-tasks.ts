/** What the threads of `file-pieces transfer` and `file-pieces clone` do: the work of `writeSlab` on bytes of their own. */
import { writeSync } from 'node:fs';
import { crc32 } from '../../src/workers/crc32.ts';

export interface PieceTask {
  readonly bytes: ArrayBuffer;
  readonly fd: number;
  readonly position: number;
}

export function writePiece({ bytes, fd, position }: PieceTask): number {
  const view = new Uint8Array(bytes);
  writeSync(fd, view, 0, view.length, position);
  return crc32(view);
}
