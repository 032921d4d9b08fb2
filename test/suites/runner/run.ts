/** Runs one suite: in a plain Node process, without the module loader of tap, unless a coverage report needs it. */
import asyncHooks from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

/** Did tap start this process with its loader, for nothing? It reads each module once more, on a thread of its own. */
function hasIdleLoader(): boolean {
  return process.env['TAP_DISABLE_COVERAGE'] === '1' && process.env['NODE_OPTIONS'] !== undefined;
}

/**
 * Tests make and drop many buffers, and V8 marks the whole heap for them on several threads, again and again. One thread
 * and a larger young generation take a sixth less processor time for the files of `io/files`.
 */
const V8_FLAGS = ['--single-threaded-gc', '--min-semi-space-size=16'];

/**
 * The suite in a process of its own, which writes the report and gets what tap says of a time-out. It leads a group: what
 * its tests have started ends with it, also when it was cut off.
 */
export function runPlain(suite: string): void {
  // The loader adds itself to the environment of every child, whatever `spawn` is given.
  const child = spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, ...V8_FLAGS, suite], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
    detached: true,
  });
  process.on('message', (message: object) => child.send(message));
  for (const signal of ['SIGALRM', 'SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => child.kill(signal));
  const end = (code: number) => {
    endGroup(child.pid);
    process.exit(code);
  };
  child.on('exit', (code) => end(code ?? 1));
  process.on('disconnect', () => end(1));
}

/** `leader`: of the group, whose other processes may have ended. */
function endGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

/** Ends with the process that started it, however that one ends, and what its tests have started too. */
export function endWithParent(): void {
  process.on('disconnect', () => {
    endGroup(process.pid);
    process.exit(1);
  });
  process.channel?.unref();
}

/**
 * Before tap is loaded: tap follows every promise and timer of its process, to name the test that an uncaught error is of,
 * for a third of the processor time of a simulation. In a suite the report has that error and its stack; a file that runs
 * alone names the test too.
 */
function withoutDomains(): void {
  const { createHook } = asyncHooks;
  const idle = { enable: () => idle, disable: () => idle };
  asyncHooks.createHook = (options) =>
    options.init !== undefined && options.destroy !== undefined ? idle : createHook(options);
  syncBuiltinESMExports();
}

/** `name`: of table.ts. The suite's own file is the main module of this process. */
export async function runSuite(name: string): Promise<void> {
  const [, suite] = process.argv;
  if (suite !== undefined && hasIdleLoader()) {
    runPlain(suite);
    return;
  }
  endWithParent();
  withoutDomains();
  const { runFiles } = await import('./files.ts');
  await runFiles(name);
}
