/**
 * Loaded into a program with --require: each SIGUSR2 writes the bytes that the main thread has allocated on V8's heap since the
 * one before, 0 for the first, as a line to descriptor 3. A worker thread loads it too, and has nothing to do.
 */
const { writeSync } = require('node:fs') as typeof import('node:fs');
const { GCProfiler, getHeapStatistics } = require('node:v8') as typeof import('node:v8');
const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads');

/** The other end of it is the parent's (kit/launch.ts). */
const TO_PARENT = 3;

if (isMainThread) {
  let collections: InstanceType<typeof GCProfiler> | undefined;
  let usedBytes = 0;
  const sinceBefore = () => {
    if (collections === undefined) return 0;
    let bytes = 0;
    for (const { beforeGC, afterGC } of collections.stop()?.statistics ?? []) {
      bytes += beforeGC.heapStatistics.usedHeapSize - usedBytes;
      usedBytes = afterGC.heapStatistics.usedHeapSize;
    }
    return bytes + getHeapStatistics().used_heap_size - usedBytes;
  };
  process.on('SIGUSR2', () => {
    writeSync(TO_PARENT, `${sinceBefore()}\n`);
    collections = new GCProfiler();
    collections.start();
    usedBytes = getHeapStatistics().used_heap_size;
  });
}
