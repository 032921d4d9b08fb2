/** File system calls that settle when a test says so, as those of a network file system that hangs. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import type { Test } from 'tap';
import { FileCalls } from '../../../src/io/files/storage/file-calls.ts';
import { promiseOf } from '../http.ts';

export interface TickedCalls {
  readonly calls: FileCalls;
  /** Intervals of a second pass. */
  tick(intervals: number): void;
}

export function tickedCalls(): TickedCalls {
  let each: () => void = () => undefined;
  const calls = new FileCalls((tick) => {
    each = tick;
    return { cancel: () => undefined };
  });
  return {
    calls,
    tick(intervals) {
      for (let count = 0; count < intervals; count += 1) each();
    },
  };
}

/** Lets all go on that waits for what has just settled; a call of the disk takes some turns of the event loop. */
export async function someTurns(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** One call of a path that ends with `end`: it is held before it reaches the disk. */
export function holdCall(t: Test, name: 'open' | 'unlink', end: string) {
  const promises = fs.promises as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
  const real = promises[name];
  let release: () => void = () => undefined;
  const { promise: hasBegun, resolve: begun } = promiseOf();
  const restore = () => {
    if (real !== undefined) promises[name] = real;
    syncBuiltinESMExports();
  };
  promises[name] = async (...given) => {
    if (!String(given[0]).endsWith(end)) return await real?.(...given);
    restore();
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    begun();
    await held;
    return await real?.(...given);
  };
  syncBuiltinESMExports();
  t.teardown(restore);
  return { begun: hasBegun, release: () => release() };
}
