/** The thread that ends the process when a stop takes too long, or a start shows no progress (process-end.ts). */
import { writeSync } from 'node:fs';
import { workerData } from 'node:worker_threads';
import { BEATS, ENDED, type EndLimit, exitAtOnce } from './process-end.ts';

const { intervalMs, silentMax, line, code, cells } = workerData as EndLimit;
let beats = 0;
let silent = 0;
// Intervals are counted instead of time: a process that was suspended has made no progress and needs none.
while (silent < silentMax && Atomics.wait(cells, ENDED, 0, intervalMs) === 'timed-out') {
  const now = Atomics.load(cells, BEATS);
  silent = now === beats ? silent + 1 : 0;
  beats = now;
}
if (silent >= silentMax) {
  try {
    writeSync(2, `${line}\n`);
  } finally {
    exitAtOnce(code);
  }
}
