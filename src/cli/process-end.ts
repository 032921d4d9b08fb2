/**
 * Ends of the process that nothing holds up: Node's own end waits for every thread, also for one that a system call on a
 * dead disk holds.
 */
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

/** The thread of `limitStop`. */
export interface StopLimit {
  readonly limitMs: number;
  /** Written to standard error at the end. */
  readonly line: string;
  readonly code: number;
}

/** Without the listeners of the end, and without waiting for a thread. */
export function exitAtOnce(code: number): void {
  try {
    const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')['default'];
    koffi.load(null).func('void _exit(int)')(code);
  } catch {
    // No build of koffi for this machine: then the code is that of a kill.
    process.kill(process.pid, 'SIGKILL');
  }
}

/** After the listeners of the end. */
export function endProcess(code: number): never {
  process.once('exit', () => exitAtOnce(code));
  process.exit(code);
}

/** Ends the process after `limitMs` by a thread of its own, because the main thread may be held as well. */
export function limitStop(limit: StopLimit): void {
  new Worker(new URL('./stop-limit.js', import.meta.url), { workerData: limit, name: 'stop limit' })
    // Without that thread the stop is as long as it takes.
    .on('error', () => undefined)
    .unref();
}
