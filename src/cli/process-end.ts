/**
 * Ends of the process that nothing holds up: Node's own end waits for every thread, also for one that a system call on a
 * dead disk holds.
 */
import { createRequire } from 'node:module';
import { Worker } from 'node:worker_threads';

/** Cells of `EndLimit`. */
export const BEATS = 0;
export const ENDED = 1;

/** Options of the thread that ends the process, because the main thread may be held as well. */
export interface EndLimit {
  readonly intervalMs: number;
  /** Intervals without a beat: then the process ends. */
  readonly silentMax: number;
  /** Written to standard error at the end. */
  readonly line: string;
  readonly code: number;
  /** Shared: counted up with each beat; not 0 once the limit counts no more. */
  readonly cells: Int32Array;
}

interface RunningLimit {
  /** Reports that the limited work makes progress. */
  beat(): void;
  /** The limit counts no more. */
  end(): void;
}

/** Exits without the listeners of the end, and without waiting for a thread. */
export function exitAtOnce(code: number): void {
  try {
    const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi')['default'];
    koffi.load(null).func('void _exit(int)')(code);
  } catch {
    // No build of koffi for this machine: then the code is that of a kill.
    process.kill(process.pid, 'SIGKILL');
  }
}

/** Exits after the listeners of the end. */
export function endProcess(code: number): never {
  process.once('exit', () => exitAtOnce(code));
  process.exit(code);
}

/** The process ends without its listeners, so that the next start finds it cut off. */
export function limitUntilEnd(limit: Omit<EndLimit, 'cells'>): RunningLimit {
  const cells = new Int32Array(new SharedArrayBuffer(2 * Int32Array.BYTES_PER_ELEMENT));
  const workerData: EndLimit = { ...limit, cells };
  new Worker(new URL('./end-limit.js', import.meta.url), { workerData, name: 'end limit' })
    // A failure to start that thread leaves the limited work without a limit.
    .on('error', () => undefined)
    .unref();
  return {
    beat: () => void Atomics.add(cells, BEATS, 1),
    end() {
      Atomics.store(cells, ENDED, 1);
      Atomics.notify(cells, ENDED);
    },
  };
}
