/** The tasks that make and publish parts, on their own; with a storage: test/io/files/storage/. */
import {
  closeSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { makePart, publishPart } from '../../src/workers/part-files.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

const MODES = { folder: 0o700, file: 0o600 };

function startPart(t: Test) {
  const root = temporaryFolder(t);
  const place = { root, owner: '7', part: '1.part' };
  return {
    folder: join(root, '7'),
    root,
    make: () => makePart({ ...place, modes: MODES }),
    publish: (sizeBytes: number, partBytesMax = sizeBytes) =>
      publishPart({ ...place, file: '1', sizeBytes, partBytesMax }),
  };
}

/** Writes into a made part and closes it. */
function fill(made: unknown, text: string): void {
  if (typeof made !== 'number') throw new Error('the part was not made');
  writeSync(made, text);
  closeSync(made);
}

function openDescriptors(): number {
  return readdirSync('/proc/self/fd').length;
}

t.test('makePart: parts of a new owner that are made at once have one folder', async (t) => {
  const { root } = startPart(t);
  const made = await Promise.all(
    ['1.part', '2.part', '3.part'].map((part) => makePart({ root, owner: '7', part, modes: MODES })),
  );
  for (const each of made) fill(each, 'x');
  t.same(readdirSync(join(root, '7')).sort(), ['1.part', '2.part', '3.part']);
});

t.test('publishPart: the file has the bytes of the part, a text has its preview', async (t) => {
  for (const [bytes, text] of [
    ['hello', 'hello'],
    ['\u0000binary', undefined],
    ['', undefined],
  ] as const) {
    const { folder, make, publish } = startPart(t);
    fill(await make(), bytes);
    t.same(await publish(bytes.length), { published: true, preview: { text } });
    t.same(readdirSync(folder), ['1']);
    t.equal(readFileSync(join(folder, '1'), 'utf8'), bytes);
  }
});

t.test('publishPart: two nodes that publish one part at once both find the file', async (t) => {
  const { folder, make, publish } = startPart(t);
  fill(await make(), 'hello');
  const results = await Promise.all([publish(5), publish(5)]);
  t.match(results, [{ published: true }, { published: true }]);
  t.same(readdirSync(folder), ['1']);
});

t.test('publishPart: what is behind the bytes is cut off and is no preview', async (t) => {
  const { folder, make, publish } = startPart(t);
  fill(await make(), 'bytes and a table');
  t.match(await publish(5), { message: 'the part has 17 bytes, expected were 5' });
  t.match(await publish(5, 16), { message: 'the part has 17 bytes, expected were 5' });
  t.same(readdirSync(folder), ['1.part']);
  t.same(await publish(5, 17), { published: true, preview: { text: 'bytes' } });
  t.equal(readFileSync(join(folder, '1'), 'utf8'), 'bytes');
});

t.test('publishPart: may be repeated, tells a missing part and a file of another size', async (t) => {
  const { make, publish } = startPart(t);
  t.same(await publish(3), { published: false, preview: undefined });
  fill(await make(), 'abc');
  await publish(3);
  t.same(await publish(3), { published: true, preview: undefined });
  t.match(await publish(4), { code: undefined, message: 'the file has 3 bytes, expected were 4' });
});

t.test('part tasks: links and entries that are no files are faults, and touch nothing', async (t) => {
  const outside = temporaryFolder(t);
  writeFileSync(join(outside, 'victim'), 'precious');
  const linkedFolder = startPart(t);
  symlinkSync(outside, linkedFolder.folder);
  const linkedPart = startPart(t);
  mkdirSync(linkedPart.folder);
  symlinkSync(join(outside, 'victim'), join(linkedPart.folder, '1.part'));
  const linkedFile = startPart(t);
  mkdirSync(linkedFile.folder);
  symlinkSync(join(outside, 'victim'), join(linkedFile.folder, '1'));
  const directory = startPart(t);
  mkdirSync(join(directory.folder, '1.part'), { recursive: true });
  for (const { make } of [linkedFolder, linkedPart, directory])
    t.match(await make(), { code: /ELOOP|ENOTDIR|EISDIR/ });
  for (const { publish } of [linkedFolder, linkedPart, linkedFile, directory])
    t.match(await publish(8), { code: /ELOOP|ENOTDIR|EISDIR/ });
  t.equal(readFileSync(join(outside, 'victim'), 'utf8'), 'precious');
  t.same(readdirSync(outside), ['victim']);
});

t.test('part tasks: close what they opened, also where they fail', async (t) => {
  const { folder, make, publish } = startPart(t);
  const before = openDescriptors();
  await publish(1);
  fill(await make(), 'abc');
  await publish(4);
  await publish(3);
  await publish(3);
  await publish(4);
  mkdirSync(join(folder, '1.part'));
  await make();
  await publish(3);
  t.equal(openDescriptors(), before);
});
