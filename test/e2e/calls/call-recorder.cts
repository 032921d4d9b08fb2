/**
 * Loaded into a gateway with --require: between two SIGUSR2 it counts the functions of `build/src` that the main thread calls, by
 * V8's precise coverage, and writes them to standard error as one line of JSON.
 */
const { Session } = require('node:inspector') as typeof import('node:inspector');
const { isMainThread } = require('node:worker_threads') as typeof import('node:worker_threads');

const SOURCES = '/build/src/';
/**
 * Work after an answer (a commit, a flush of the log) has ended if a reading after so long finds no further function.
 */
const QUIET_MS = 150;

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
    }[];
  }[];
}

const session = new Session();
const called = new Set<string>();
let isOn = false;
let turns = 0;

/** Adds the functions that were called since the last reading. */
function read(): void {
  session.post('Profiler.takePreciseCoverage', (error: Error | null, coverage?: Coverage) => {
    if (error !== null || coverage === undefined) throw error ?? new Error('no coverage');
    for (const { url, functions } of coverage.result) {
      const at = url.indexOf(SOURCES);
      if (at < 0) continue;
      for (const { functionName, ranges } of functions) {
        const [whole] = ranges;
        // The code of a module itself begins at 0: it runs once, at the start.
        if (whole === undefined || whole.count === 0 || whole.startOffset === 0) continue;
        called.add(`${url.slice(at + SOURCES.length)} ${functionName || '(closure)'} ${whole.startOffset}`);
      }
    }
  });
}

function readUntilQuiet(): void {
  const before = called.size;
  read();
  if (called.size > before) setTimeout(readUntilQuiet, QUIET_MS);
  else process.stderr.write(`called ${turns}: ${JSON.stringify([...called].sort())}\n`);
}

function toggle(): void {
  isOn = !isOn;
  if (!isOn) {
    readUntilQuiet();
    return;
  }
  turns += 1;
  read();
  called.clear();
  process.stderr.write(`recording ${turns}: \n`);
}

if (isMainThread) {
  session.connect();
  session.post('Profiler.enable');
  session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  process.on('SIGUSR2', toggle);
}
