/**
 * Loaded before the program: the limit of its start, which is a minute without progress, is three seconds from the moment
 * when the folder DATA is marked as being served. How busy the machine is before that does not matter.
 */
import type fs from 'node:fs';

const { readFileSync } = require('node:fs') as typeof fs;
const { join } = require('node:path') as typeof import('node:path');
const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads');

const SPEED = 20;
const lock = join(process.env['DATA'] ?? '', 'gatehouse.lock');

if (!isMainThread) {
  const { wait } = Atomics;
  const isServed = () => readFileSync(lock, 'utf8').includes('served');
  Atomics.wait = ((cells: Int32Array, at: number, value: number, ms?: number) =>
    wait(cells, at, value, ms !== undefined && isServed() ? ms / SPEED : ms)) as typeof wait;
}
