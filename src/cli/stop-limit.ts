/** The thread that ends the process when a stop takes too long (process-end.ts). */
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { exitAtOnce, type StopLimit } from './process-end.ts';

const { limitMs, line, code } = workerData as StopLimit;
Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, limitMs);
try {
  writeSync(2, `${line}\n`);
} finally {
  exitAtOnce(code);
}
