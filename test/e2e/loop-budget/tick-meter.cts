/**
 * Loaded into a gateway with --require: between two SIGUSR2 it reads the processor time of the main thread at every tick of the
 * event loop, and writes the longest tick to standard error.
 */
const { readFileSync } = require('node:fs') as typeof import('node:fs');
const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads');

const SCHEDSTAT = `/proc/self/task/${process.pid}/schedstat`;
const usedMs = () => Number(readFileSync(SCHEDSTAT, 'utf8').split(' ')[0]) / 1e6;

let isOn = false;
let lastMs = 0;
let longestMs = 0;

function tick(): void {
  const nowMs = usedMs();
  longestMs = Math.max(longestMs, nowMs - lastMs);
  if (isOn) {
    // The loop does not wait meanwhile: every tick is measured.
    setImmediate(tick);
    lastMs = usedMs();
  } else process.stderr.write(`longest tick ${longestMs.toFixed(1)} ms\n`);
}

if (isMainThread)
  process.on('SIGUSR2', () => {
    isOn = !isOn;
    if (!isOn) return;
    longestMs = 0;
    lastMs = usedMs();
    setImmediate(tick);
    process.stderr.write('measuring ticks\n');
  });
