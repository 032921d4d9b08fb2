import fc from 'fast-check';
import t from 'tap';
import { anyCodePoint } from '../../../kit/code-points.ts';
import {
  CHUNK_BYTES,
  chunkCount,
  chunkOffsetBytes,
  chunkSizeBytes,
  FILE_HARD_CAP_BYTES,
  fileNameFault,
  fileSizeMaxBytes,
  toUnsignedCrc32,
} from '../../../src/domain/files/files.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import { runs } from '../../support/depth.ts';

t.test('chunks: they cover the file from its first byte to its last, without gap and overlap', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.integer({ min: 1, max: FILE_HARD_CAP_BYTES }), (sizeBytes) => {
        const chunks = chunkCount(sizeBytes);
        let end = 0;
        for (let number = 0; number < chunks; number++) {
          const size = chunkSizeBytes(number, sizeBytes) ?? 0;
          if (chunkOffsetBytes(number) !== end || size < 1 || size > CHUNK_BYTES) return false;
          end += size;
        }
        return end === sizeBytes && chunkSizeBytes(chunks, sizeBytes) === undefined;
      }),
      runs(200),
    ),
  );
});

t.test('chunks: a number that no chunk has is undefined', async (t) => {
  for (const number of [-1, 4, 2 ** 53, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
    t.equal(chunkSizeBytes(number, 3 * CHUNK_BYTES + 1), undefined, String(number));
  t.equal(chunkSizeBytes(3, 3 * CHUNK_BYTES + 1), 1, 'the last one is short');
  t.equal(chunkSizeBytes(2, 3 * CHUNK_BYTES), CHUNK_BYTES, 'or full');
});

t.test(
  'declared CRC-32: signed ones are normalised, 0 is valid, what is no 32-bit integer is not',
  async (t) => {
    t.equal(toUnsignedCrc32(0), 0);
    t.equal(toUnsignedCrc32(-1), 0xffff_ffff);
    t.equal(toUnsignedCrc32(-(2 ** 31)), 2 ** 31);
    t.equal(toUnsignedCrc32(2 ** 32 - 1), 2 ** 32 - 1);
    for (const wrong of [2 ** 32, -(2 ** 31) - 1, 1.5, Number.NaN, 2 ** 60])
      t.equal(toUnsignedCrc32(wrong), undefined, String(wrong));
  },
);

// covers R106
t.test('size cap: the setting, never above 100 MiB', async (t) => {
  t.equal(fileSizeMaxBytes(new LiveSettings()), 20_971_520);
  t.equal(fileSizeMaxBytes(new LiveSettings({ FileMaxSizeBytes: 5 })), 5);
  t.equal(fileSizeMaxBytes(new LiveSettings({ FileMaxSizeBytes: 2 ** 40 })), 104_857_600);
});

t.test('file names: ordinary ones in any script pass', async (t) => {
  const names = [
    'a',
    '.hidden',
    'a b.txt',
    'übung.txt',
    '报告.pdf',
    '🙂‍↔️.png',
    '...a',
    'x'.repeat(255),
    'CON',
    'a;b.txt',
  ];
  for (const name of names) t.equal(fileNameFault(name, 'exe;bat'), undefined, name);
});

t.test('file names: what harms headers, logs, folders or readers is refused', async (t) => {
  const refused = [
    '',
    'x'.repeat(256),
    'ü'.repeat(128),
    'a\r\nSet-Cookie: x.txt',
    'a\0.txt',
    'a\u007f',
    'a\u0085b',
    'a\u2028b',
    'invoice\u202egpj.exe',
    'a\u2066b',
    'a\u200fb',
    '../../etc/passwd',
    'a\\b',
    '.',
    '..',
    'a.',
    'a ',
    'a.\u200b',
    'a \u200d',
    'a.exe\u00a0',
    'a\u3000',
    '\u200b',
    '\u3164\u2800\ufe0f',
    'a\ud800',
  ];
  for (const name of refused)
    t.match(fileNameFault(name, ''), /^the name /, Buffer.from(name).toString('hex'));
});

// covers R106
t.test(
  'file names: blocked extensions, the dot optional, case and full-width letters no way around',
  async (t) => {
    const blocked = ' exe; .BAT;tar.gz;; . ';
    const names = ['a.exe', 'A.EXE', 'a.b.Bat', '.exe', 'a.ｅｘｅ', 'x.tar.gz'];
    for (const tail of [
      '\u200b',
      '\u200d\u200c',
      '\ufeff',
      '\u00ad',
      '\u2060',
      '\ufe0f',
      '\u034f',
      '\u{e0001}',
    ])
      names.push(`a.exe${tail}`, `a.${tail}exe`, `a.e${tail}xe`, `a${tail}.exe`);
    t.same(
      names.filter((name) => !/not accepted/.test(fileNameFault(name, blocked) ?? '')).map(encodeURI),
      [],
    );
    for (const name of ['exe', 'a.exe.txt', 'a.txt\u200b', 'love ❤\ufe0f', 'a.gz', 'aexe', 'a.ex'])
      t.equal(fileNameFault(name, blocked), undefined, name);
  },
);

// covers R72 S171
t.test('file names: random ones never throw, and one that passes can be a file of its folder', async (t) => {
  t.doesNotThrow(() =>
    fc.assert(
      fc.property(fc.string({ unit: anyCodePoint, maxLength: 300 }), (name) => {
        if (fileNameFault(name, 'exe') !== undefined) return true;
        return !/[/\\\r\n\0]/.test(name) && name !== '..' && Buffer.byteLength(name) <= 255;
      }),
      runs(2_000),
    ),
  );
});
