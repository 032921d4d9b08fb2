/** The table of written chunks: what is read back of it, and what is no entry. */
import fc from 'fast-check';
import t from 'tap';
import { packChunkEntry } from '../../../src/domain/files/chunk-entry.ts';
import {
  chunkEntry,
  chunkedPartBytesMax,
  chunkTableBytes,
  chunkTableOffsetBytes,
  readChunkTable,
} from '../../../src/domain/files/chunk-table.ts';
import { CHUNK_BYTES, chunkCount } from '../../../src/domain/files/files.ts';
import { runs } from '../../support/depth.ts';

const SIZE = 3 * CHUNK_BYTES + 5;

function tableOf(entries: readonly (readonly [chunkNumber: number, crc32: number])[]): Buffer {
  const table = Buffer.alloc(chunkTableBytes(SIZE));
  for (const [chunkNumber, crc32] of entries) {
    const entry = chunkEntry(chunkNumber, SIZE);
    table.set(packChunkEntry(entry, crc32), entry.position - chunkTableOffsetBytes(SIZE));
  }
  return table;
}

t.test('chunk table: begins at the page behind the file, 8 bytes for each chunk', async (t) => {
  t.equal(chunkTableOffsetBytes(1), 4096);
  t.equal(chunkTableOffsetBytes(4096), 4096);
  t.equal(chunkTableOffsetBytes(4097), 8192);
  t.equal(chunkEntry(2, 4097).position, 8192 + 16);
  t.equal(chunkedPartBytesMax(SIZE), 3 * CHUNK_BYTES + 4096 + 4 * 8);
  t.same([...packChunkEntry(chunkEntry(2, SIZE), 0x01020304)], [4, 3, 2, 1, 0xf9, 0xfc, 0xfd, 0xfe]);
});

t.test('chunk table: entries are read back, holes and chunks without one are null', async (t) => {
  t.same(readChunkTable(tableOf([]), SIZE), [null, null, null, null]);
  t.same(
    readChunkTable(
      tableOf([
        [0, 0],
        [2, 0xffffffff],
      ]),
      SIZE,
    ),
    [0, null, 0xffffffff, null],
  );
});

t.test('chunk table: cut anywhere it has the entries before the cut', async (t) => {
  const table = tableOf([0, 1, 2, 3].map((at) => [at, at + 7]));
  for (let length = 0; length <= table.length; length += 1) {
    const whole = Math.floor(length / 8);
    t.same(
      readChunkTable(table.subarray(0, length), SIZE),
      [7, 8, 9, 10].map((crc32, at) => (at < whole ? crc32 : null)),
      `${length} bytes`,
    );
  }
});

t.test('chunk table: an entry at the place of another chunk, or with a changed byte, is none', async (t) => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 0xffffffff }),
      fc.nat({ max: 7 }),
      fc.integer({ min: 1, max: 255 }),
      (crc32, at, change) => {
        const table = tableOf([[1, crc32]]);
        const moved = Buffer.concat([table.subarray(8), Buffer.alloc(8)]);
        const found = [...readChunkTable(moved, SIZE)];
        table[8 + at] = (table[8 + at] ?? 0) ^ change;
        return found.every((one) => one === null) && readChunkTable(table, SIZE)[1] === null;
      },
    ),
    runs(),
  );
  t.equal(chunkCount(SIZE), 4);
});
