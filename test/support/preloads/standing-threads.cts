/**
 * Loaded before the program: its threads stand still while a file of the folder STANDSTILL says so. `verify`: the first
 * thread that verifies a signature then, within JavaScript. `sync`: every thread of libuv that syncs the bytes of a file.
 * `disk`: every thread of libuv that looks for free space. The limit of a stop, which is 18 s, passes in a tenth of that.
 */
import type { PathLike } from 'node:fs';

const crypto = require('node:crypto') as typeof import('node:crypto');
const fs = require('node:fs') as typeof import('node:fs');
const { join } = require('node:path') as typeof import('node:path');
const { syncBuiltinESMExports } = require('node:module') as typeof import('node:module');
const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads');

const STOP_LIMIT_MS = 18_000;
const folder = process.env['STANDSTILL'] ?? '';

function isTaken(name: string): boolean {
  try {
    fs.unlinkSync(join(folder, name));
    return true;
  } catch {
    return false;
  }
}

if (isMainThread) {
  const { statfs, open } = fs.promises;
  const held = async (path: PathLike) => {
    const pipe = join(folder, 'disk');
    if (fs.existsSync(pipe)) await (await open(pipe, 'r')).close();
    return await statfs(path);
  };
  fs.promises.statfs = held as typeof statfs;
  syncBuiltinESMExports();
  const later = globalThis.setTimeout;
  const sooner = (run: () => void, ms?: number) => later(run, ms === STOP_LIMIT_MS ? ms / 10 : ms);
  globalThis.setTimeout = sooner as typeof later;
} else {
  const { verify } = crypto;
  crypto.verify = ((...given: Parameters<typeof verify>) => {
    if (isTaken('verify')) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    return verify(...given);
  }) as typeof verify;
  const { fdatasync } = fs;
  const held = (fd: number, done: (error: Error | null) => void) => {
    const pipe: PathLike = join(folder, 'sync');
    // Opening a pipe without a writer holds the thread of libuv.
    if (fs.existsSync(pipe)) fs.open(pipe, 'r', () => fdatasync(fd, done));
    else fdatasync(fd, done);
  };
  fs.fdatasync = held as typeof fdatasync;
  syncBuiltinESMExports();
}
