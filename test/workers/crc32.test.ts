import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { closeAfter } from '../../kit/close-after.ts';
import { runSync } from '../../kit/run-sync.ts';
import { packChunkEntry } from '../../src/domain/files/chunk-entry.ts';
import { chunkEntry } from '../../src/domain/files/chunk-table.ts';
import { copyRange, crc32, crc32InScript, hashRange, writeBuffer } from '../../src/workers/crc32.ts';
import { createWorkerPool } from '../../src/workers/pool.ts';
import { runs } from '../support/depth.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

const sharedBufferOf = (text: string): SharedArrayBuffer => {
  const sharedBuffer = new SharedArrayBuffer(64);
  new Uint8Array(sharedBuffer).set(Buffer.from(text));
  return sharedBuffer;
};

t.test(
  'crc32: native and script agree with the check value and with each other, in pieces too',
  async (t) => {
    t.equal(crc32InScript(Buffer.from('123456789')), 0xcbf43926);
    t.equal(crc32(new Uint8Array(0)), 0);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5_000 }), fc.nat(), (bytes, cut) => {
        const at = bytes.length === 0 ? 0 : cut % bytes.length;
        const whole = crc32InScript(bytes);
        const inPieces = (hash: typeof crc32) => hash(bytes.subarray(at), hash(bytes.subarray(0, at)));
        return crc32(bytes) === whole && inPieces(crc32) === whole && inPieces(crc32InScript) === whole;
      }),
      runs(),
    );
  },
);

t.test('crc32: without the native package and zlib.crc32 the script hashes', async (t) => {
  const preload = join(temporaryFolder(t), 'without.cjs');
  const program = join(temporaryFolder(t), 'program.mjs');
  const loader = `const Module = require('node:module');
    const resolve = Module._resolveFilename;
    Module._resolveFilename = (name, ...rest) => {
      if (name === '@node-rs/crc32') throw new Error('no build of the package');
      return resolve(name, ...rest);
    };
    delete require('node:zlib').crc32;
    Module.syncBuiltinESMExports();`;
  const source = new URL('../../src/workers/crc32.js', import.meta.url).href;
  writeFileSync(preload, loader);
  writeFileSync(
    program,
    `import * as zlib from 'node:zlib';
     const { crc32 } = await import('${source}');
     process.stdout.write(typeof zlib.crc32 + ' ' + crc32(Buffer.from('123456789')).toString(16));`,
  );
  const { stdout, stderr } = runSync(process.execPath, ['--require', preload, program]);
  t.equal(stdout, 'undefined cbf43926', stderr);
});

t.test(
  'writeBuffer: writes at its position what the buffer holds at the beginning, through the pool',
  async (t) => {
    const path = join(temporaryFolder(t), 'file');
    const fd = openSync(path, 'w+');
    const pool = closeAfter(t, createWorkerPool({ threads: 1, queueMax: 10 }));
    const late = pool.run('writeBuffer', {
      sharedBuffer: sharedBufferOf('world!!'),
      length: 5,
      fd,
      position: 6,
    });
    const early = pool.run('writeBuffer', {
      sharedBuffer: sharedBufferOf('hello '),
      length: 6,
      fd,
      position: 0,
    });
    t.same(await late, { ok: true, value: crc32InScript(Buffer.from('world')) });
    t.same(await early, { ok: true, value: crc32InScript(Buffer.from('hello ')) });
    const whole = await pool.run('hashRange', { fd, position: 0, length: 11 });
    t.same(whole, { ok: true, value: crc32InScript(Buffer.from('hello world')) });
    closeSync(fd);
    t.equal(readFileSync(path, 'utf8'), 'hello world');
  },
);

t.test('writeBuffer: bytes with another checksum than the expected one are not written', async (t) => {
  const path = join(temporaryFolder(t), 'file');
  const fd = openSync(path, 'w+');
  const good = crc32InScript(Buffer.from('good'));
  t.equal(
    writeBuffer({ sharedBuffer: sharedBufferOf('good'), length: 4, fd, position: 0, expectedCrc32: good }),
    good,
  );
  t.not(
    writeBuffer({ sharedBuffer: sharedBufferOf('evil'), length: 4, fd, position: 0, expectedCrc32: good }),
    good,
  );
  closeSync(fd);
  t.equal(readFileSync(path, 'utf8'), 'good');
});

t.test(
  'writeBuffer: the entry is written behind bytes with the expected checksum, and no others',
  async (t) => {
    const path = join(temporaryFolder(t), 'file');
    const fd = openSync(path, 'w+');
    const good = crc32InScript(Buffer.from('good'));
    const entry = chunkEntry(0, 4);
    const task = { length: 4, fd, position: 0, expectedCrc32: good, entry };
    writeBuffer({ ...task, sharedBuffer: sharedBufferOf('evil') });
    t.equal(readFileSync(path).length, 0);
    writeBuffer({ ...task, sharedBuffer: sharedBufferOf('good') });
    closeSync(fd);
    t.same(readFileSync(path).subarray(entry.position), Buffer.from(packChunkEntry(entry, good)));
  },
);

t.test('writeBuffer: a system error is a value, so that a full disk is no bug', async (t) => {
  const fd = openSync('/dev/full', 'w');
  t.match(writeBuffer({ sharedBuffer: sharedBufferOf('x'), length: 1, fd, position: 0 }), { code: 'ENOSPC' });
  closeSync(fd);
  t.match(writeBuffer({ sharedBuffer: sharedBufferOf('x'), length: 1, fd, position: 0 }), { code: 'EBADF' });
});

t.test('writeBuffer: an entry that cannot be written fails the task', async (t) => {
  const path = join(temporaryFolder(t), 'file');
  writeFileSync(path, '');
  const fd = openSync(path, 'r');
  // Without bytes of its own the entry is all that the task writes.
  const task = { sharedBuffer: sharedBufferOf(''), length: 0, fd, position: 0, entry: chunkEntry(0, 4) };
  t.match(writeBuffer(task), { code: 'EBADF' });
  closeSync(fd);
});

t.test('hashRange: a range that the file does not have in full is undefined', async (t) => {
  const path = join(temporaryFolder(t), 'file');
  const fd = openSync(path, 'w+');
  writeBuffer({ sharedBuffer: sharedBufferOf('abc'), length: 3, fd, position: 0 });
  t.equal(hashRange({ fd, position: 1, length: 2 }), crc32InScript(Buffer.from('bc')));
  t.equal(hashRange({ fd, position: 1, length: 3 }), undefined);
  t.equal(hashRange({ fd, position: 90, length: 1 }), undefined);
  t.equal(hashRange({ fd, position: 0, length: 0 }), 0);
  closeSync(fd);
});

t.test('copyRange: the checksum is of the bytes that were copied; a full disk is a fault', async (t) => {
  const bytes = randomBytes(600_000);
  const folder = temporaryFolder(t);
  const [from, to] = [join(folder, 'from'), join(folder, 'to')];
  writeFileSync(from, bytes);
  const fd = openSync(from, 'r');
  const toFd = openSync(to, 'w');
  const fullFd = openSync('/dev/full', 'w');
  const range = bytes.subarray(5, 590_005);
  t.equal(copyRange({ fd, toFd, position: 5, length: 590_000 }), crc32(range));
  t.ok(readFileSync(to).equals(Buffer.concat([Buffer.alloc(5), range])));
  t.equal(copyRange({ fd, toFd, position: 599_999, length: 2 }), undefined, 'shorter');
  t.match(copyRange({ fd, toFd: fullFd, position: 0, length: 10 }), { code: 'ENOSPC' });
  for (const one of [fd, toFd, fullFd]) closeSync(one);
});
