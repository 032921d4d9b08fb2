/** Memory for files: kept apart, of the asked length, and everything that takes bytes takes it. */
import { createHash } from 'node:crypto';
import { closeSync, openSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { pageMemory } from '../../src/domain/page-memory.ts';
import { crc32, crc32InScript } from '../../src/workers/crc32.ts';

t.test('page memory: as long as asked for, cleared, and no other one’s', async (t) => {
  for (const sizeBytes of [1, 4_095, 4_096, 64 * 1_024, 512 * 1_024]) {
    const memory = pageMemory(sizeBytes);
    const other = pageMemory(sizeBytes);
    t.equal(memory.length, sizeBytes);
    t.ok(memory.equals(Buffer.alloc(sizeBytes)), 'zeros');
    memory.fill(7);
    t.ok(other.equals(Buffer.alloc(sizeBytes)), 'nothing is shared');
  }
});

t.test('page memory: V8 could let it grow, and it cannot', async (t) => {
  const memory = pageMemory(8_192);
  const buffer = memory.buffer as ArrayBuffer;
  t.ok(buffer.resizable, 'that is what V8 maps pages for');
  t.throws(() => buffer.resize(8_193), RangeError);
  t.equal(memory.length, 8_192);
});

t.test('page memory: files are read into it, hashed and compared from it', async (t) => {
  const path = join(t.testdir({}), 'file');
  const content = Buffer.from('what is in a file; '.repeat(5_000));
  writeFileSync(path, content);
  const memory = pageMemory(128 * 1_024);
  const fd = openSync(path, 'r');
  const size = readSync(fd, memory, 0, memory.length, 0);
  closeSync(fd);
  const view = memory.subarray(0, size);
  t.ok(view.equals(content));
  t.equal(crc32(view), crc32InScript(content), 'native code reads it');
  t.equal(
    createHash('sha256').update(view).digest('hex'),
    createHash('sha256').update(content).digest('hex'),
    'and OpenSSL',
  );
});
