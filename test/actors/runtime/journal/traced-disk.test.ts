/** The rebuild of a disk from traced calls, on logs of a few lines: what is sure, what may be, and what is refused. */
import t from 'tap';
import { seededNumbers } from '../../../support/actors/actors.ts';
import { everySeed } from '../../../support/depth.ts';
import { type DiskOptions, TracedDisk } from '../../../support/power-cut/disk.ts';
import { SECTOR_BYTES } from '../../../support/power-cut/inode.ts';
import { parseTrace, stringsOf, wordsOf } from '../../../support/power-cut/trace.ts';

const FOLDER = '/d';
const FILE = '/d/f';
const SEEDS = 200;

const hex = (bytes: string | Buffer) =>
  `"${[...Buffer.from(bytes)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}"`;
const sectors = (letters: string) =>
  Buffer.concat([...letters].map((each) => Buffer.alloc(SECTOR_BYTES, each)));

/** A file whose name is durable, open as 5, and for writes that are synced as they are made as 6. */
const OPENED = [
  `7 openat(AT_FDCWD, ${hex(FILE)}, O_RDWR|O_CREAT, 0600) = 5`,
  `7 openat(AT_FDCWD, ${hex(FOLDER)}, O_RDONLY|O_CLOEXEC) = 4`,
  '7 fsync(4) = 0',
  '7 close(4) = 0',
  `7 openat(AT_FDCWD, ${hex(FILE)}, O_WRONLY|O_DSYNC|O_CLOEXEC) = 6`,
];
const written = (letters: string, sector: number, file = 5) => {
  const bytes = sectors(letters);
  return `7 pwrite64(${file}, ${hex(bytes)}, ${bytes.length}, ${sector * SECTOR_BYTES}) = ${bytes.length}`;
};
const SYNCED = '7 fdatasync(5) = 0';

function diskAfter(lines: readonly string[], options: Partial<DiskOptions> = {}): TracedDisk {
  const disk = new TracedDisk({ folder: FOLDER, ignored: /lock$/, ...options });
  for (const moment of parseTrace(lines.join('\n'))) disk.take(moment);
  return disk;
}

/** A letter for each sector, `.` for zeros, `?` for one that is torn; undefined where there is no file. */
function letters(file: Buffer | undefined): string | undefined {
  if (file === undefined) return undefined;
  return Array.from({ length: file.length / SECTOR_BYTES }, (_, sector) => {
    const bytes = file.subarray(sector * SECTOR_BYTES, (sector + 1) * SECTOR_BYTES);
    if (!bytes.every((byte) => byte === bytes[0])) return '?';
    return bytes[0] === 0 ? '.' : String.fromCharCode(bytes[0] ?? 0);
  }).join('');
}

/** Everything that a cut after these calls may leave, over many seeds. */
function outcomes(
  lines: readonly string[],
  path = FILE,
  options: Partial<DiskOptions> = {},
): Set<string | undefined> {
  const found = new Set<string | undefined>();
  const disk = diskAfter(lines, options);
  for (const seed of everySeed(SEEDS)) found.add(letters(disk.afterCut(seededNumbers(seed)).get(path)));
  return found;
}

t.test('trace: a call in two lines begins and ends, others between', async (t) => {
  const moments = parseTrace(
    [
      '7 write(5, "\\x61\\x2c", 2 <unfinished ...>',
      '8 fdatasync(5)        = 0',
      '7 <... write resumed>)  = 2',
    ].join('\n'),
  );
  t.same(
    moments.map(({ phase, call }) => `${phase} ${call.name}`),
    ['begin write', 'begin fdatasync', 'end fdatasync', 'end write'],
  );
  const [first] = moments;
  t.same(first === undefined ? [] : stringsOf(first.call).map(String), ['a,']);
  t.same(first === undefined ? [] : wordsOf(first.call), ['5', '""', '2']);
  t.equal(first?.call.result, 2);
});

t.test('trace: errors have their number, a call that a kill cut off has none', async (t) => {
  const [refused, , killed] = parseTrace(
    `7 openat(AT_FDCWD, ${hex(FILE)}, O_RDONLY) = -1 ENOENT (No such file or directory)\n7 fsync(5) = ?\n7 +++ killed by SIGKILL +++\n`,
  );
  t.equal(refused?.call.result, -1);
  t.equal(killed?.call.result, undefined);
});

t.test('trace: what it does not know, and a string that was cut short, are refused', async (t) => {
  t.throws(() => parseTrace('7 <... write resumed>) = 2'), /never began/);
  t.throws(() => parseTrace('7 what is this'), /no call/);
  t.throws(() => parseTrace('7 write(5, "\\x61", 1)'), /no result/);
  const [moment] = parseTrace('7 write(5, "\\x61"..., 9) = 9');
  t.throws(() => stringsOf(moment?.call ?? { name: '', args: '', result: 0 }), /cut short/);
});

// covers S153
t.test('disk: a synced write is sure, one after it may be there or not, sector by sector', async (t) => {
  const lines = [...OPENED, written('aaa', 0), SYNCED];
  t.same([...outcomes(lines)], ['aaa']);
  const later = outcomes([...lines, written('bbb', 0)]);
  t.same([...later].sort(), ['aaa', 'aab', 'aba', 'abb', 'baa', 'bab', 'bba', 'bbb']);
  t.equal(
    letters(
      diskAfter([...lines, written('bbb', 0)])
        .whole()
        .get(FILE),
    ),
    'bbb',
    'a kill leaves it',
  );
});

t.test('disk: a sector may have any state since its sync, and no earlier one', async (t) => {
  const lines = [
    ...OPENED,
    written('a', 0),
    SYNCED,
    written('b', 0),
    SYNCED,
    written('c', 0),
    written('d', 0),
  ];
  t.same([...outcomes(lines)].sort(), ['b', 'c', 'd']);
});

t.test('disk: a sync covers what had been written before it began, once it has ended', async (t) => {
  const [begin, end] = ['8 fdatasync(5 <unfinished ...>', '8 <... fdatasync resumed>) = 0'];
  const base = [...OPENED, written('a', 0), SYNCED];
  t.same([...outcomes([...base, written('b', 0), begin])].sort(), ['a', 'b'], 'not ended');
  t.same([...outcomes([...base, begin, written('b', 0), end])].sort(), ['a', 'b'], 'written meanwhile');
  t.same([...outcomes([...base, written('b', 0), begin, end])], ['b']);
  t.ok(
    outcomes([...base, written('b', 0), SYNCED], FILE, { syncsNothing: true }).has(undefined),
    'the planted fault',
  );
});

t.test('disk: a write with O_DSYNC is sure when it has ended, and nothing else is', async (t) => {
  const base = [...OPENED, written('aa', 0), SYNCED];
  t.same([...outcomes([...base, written('b', 0), written('c', 1, 6)])].sort(), ['ac', 'bc']);
  const part = `7 pwrite64(6, ${hex('c')}, 1, 0 <unfinished ...>`;
  t.same([...outcomes([...base, part])].sort(), ['?a', 'aa'], 'under way; a sector is written as a whole');
});

t.test('disk: a longer file may have its old length, any since, and zeros', async (t) => {
  const lines = [...OPENED, written('a', 0), SYNCED, written('b', 1), written('c', 2)];
  t.same([...outcomes(lines)].sort(), ['a', 'a.', 'a..', 'a.c', 'ab', 'ab.', 'abc']);
});

t.test('disk: a file that is cut has its old or its new length until it is synced', async (t) => {
  const lines = [...OPENED, written('abc', 0), SYNCED, `7 ftruncate(5, ${SECTOR_BYTES}) = 0`];
  t.same([...outcomes(lines)].sort(), ['a', 'abc']);
  t.same([...outcomes([...lines, SYNCED])], ['a']);
});

t.test('disk: a name below the descriptor of a folder is a name in it', async (t) => {
  const lines = [
    `7 openat(AT_FDCWD, ${hex(FOLDER)}, O_RDONLY|O_DIRECTORY) = 4`,
    `7 openat(AT_FDCWD, ${hex('/proc/self/fd/4/f.part')}, O_RDWR|O_CREAT, 0600) = 5`,
    written('a', 0),
    SYNCED,
    `7 rename(${hex('/proc/self/fd/4/f.part')}, ${hex('/proc/self/fd/4/f')}) = 0`,
  ];
  t.same(outcomes(lines), new Set(['a', undefined]));
  t.same(outcomes([...lines, '7 fsync(4) = 0']), new Set(['a']));
});

t.test('disk: appended bytes, and those at the position of the descriptor, are found', async (t) => {
  const a = sectors('a');
  const lines = [
    ...OPENED,
    `7 openat(AT_FDCWD, ${hex(FILE)}, O_WRONLY|O_APPEND) = 9`,
    `7 write(9, ${hex(a)}, 512) = 512`,
    `7 write(9, ${hex(sectors('b'))}, 512) = 512`,
    '7 lseek(5, 1024, SEEK_SET) = 1024',
    `7 writev(5, [{iov_base=${hex(sectors('c'))}, iov_len=512}, {iov_base=${hex(a)}, iov_len=512}], 2) = 1024`,
    SYNCED,
  ];
  t.same([...outcomes(lines)], ['abca']);
});

t.test(
  'disk: a name is sure when its folder was synced, a file that was renamed has one of its names',
  async (t) => {
    const unnamed = [OPENED[0] ?? '', written('a', 0), SYNCED];
    t.same(outcomes(unnamed), new Set(['a', undefined]));
    const renamed = [...OPENED, written('a', 0), SYNCED, `7 rename(${hex(FILE)}, ${hex('/d/g')}) = 0`];
    const disk = diskAfter(renamed);
    t.ok(everySeed(SEEDS).every((seed) => disk.afterCut(seededNumbers(seed)).size === 1));
    t.same(outcomes(renamed, '/d/g'), new Set(['a', undefined]));
    const folder = [`7 mkdir(${hex(FOLDER)}, 0700) = 0`, ...OPENED, written('a', 0), SYNCED];
    t.same(outcomes(folder), new Set(['a', undefined]), 'the folder itself may be gone');
  },
);

t.test('disk: what cannot be followed ends the rebuild', async (t) => {
  const lines: Record<string, string> = {
    'a store into the file': '7 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 5, 0) = 0x7f0000000000',
    'a call without a rule': '7 fallocate(5, 0, 0, 4096) = 0',
    'a file that was cut and grows again': ['7 ftruncate(5, 0) = 0', written('a', 0)].join('\n'),
    'a copied descriptor': '7 dup(5) = 9',
    'a ring of the kernel': '7 io_uring_setup(64, {}) = 9',
    'a sync that failed': '7 fdatasync(5) = -1 EIO (Input/output error)',
    'half a write': `7 pwrite64(5, ${hex('ab')}, 2, 0) = 1`,
    'a file cut to nothing': `7 openat(AT_FDCWD, ${hex(FILE)}, O_WRONLY|O_TRUNC) = 9`,
  };
  for (const [what, line] of Object.entries(lines)) t.throws(() => diskAfter([...OPENED, line]), Error, what);
  const twice = ['7 pwrite64(5, "\\x61", 1, 0 <unfinished ...>', '8 pwrite64(5, "\\x62", 1, 1) = 1'];
  t.throws(() => diskAfter([...OPENED, ...twice]), /two writes to sector 0 at once/);
  t.doesNotThrow(() =>
    diskAfter([...OPENED, '7 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 5, 0) = 0x7f0000000000']),
  );
});
