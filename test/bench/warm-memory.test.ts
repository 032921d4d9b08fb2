/** Memory that a long run touches first: bounded, without a trace in the file system, and free again afterwards. */
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { warmMemory } from '../../bench/warm-memory.ts';

const MEBIBYTE = 1024 * 1024;
const BOUNDS = { bytes: 5 * MEBIBYTE, ms: 60_000 };
const goesOn = new AbortController().signal;
const skip = process.platform === 'linux' ? false : 'there is no /proc';

/** Bytes of the files below `folder` that this process has open. */
function openBytes(folder: string): number[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    const link = join('/proc/self/fd', fd);
    try {
      return readlinkSync(link).startsWith(folder) ? [statSync(link).size] : [];
    } catch {
      // The descriptor of the list itself is gone by now.
      return [];
    }
  });
}

t.test(
  'warm memory: whole blocks within the bound, of which a page each stays until it is released',
  {
    skip,
  },
  async (t) => {
    const folder = t.testdir({});
    const memory = await warmMemory(BOUNDS, goesOn, folder);
    t.equal(memory.bytes, 4 * MEBIBYTE);
    t.same(openBytes(folder), [2 * 4096]);
    t.same(readdirSync(folder), [], 'however the process ends, nothing is left');
    await memory.release();
    t.same(openBytes(folder), []);
  },
);

t.test('warm memory: none when interrupted, when the time is over, or without a folder', async (t) => {
  const folder = t.testdir({});
  const interrupted = await warmMemory(BOUNDS, AbortSignal.abort(), folder);
  const late = await warmMemory({ ...BOUNDS, ms: 0 }, goesOn, folder);
  const nowhere = await warmMemory(BOUNDS, goesOn, join(folder, 'missing'));
  t.same([interrupted.bytes, late.bytes, nowhere.bytes], [0, 0, 0]);
  await Promise.all([interrupted, late, nowhere].map((memory) => memory.release()));
  t.same(readdirSync(folder), []);
  if (skip === false) t.same(openBytes(folder), []);
});
