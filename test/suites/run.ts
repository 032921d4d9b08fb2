/** Runs one suite: in a plain Node process, without the module loader of tap, unless a coverage report needs it. */
import { spawn } from 'node:child_process';

/** Did tap start this process with its loader, for nothing? It reads each module once more, on a thread of its own. */
function hasIdleLoader(): boolean {
  return process.env['TAP_DISABLE_COVERAGE'] === '1' && process.env['NODE_OPTIONS'] !== undefined;
}

/** The suite in a process of its own, which writes the report and gets what tap says of a time-out. */
function runPlain(suite: string): void {
  // The loader adds itself to the environment of every child, whatever `spawn` is given.
  const child = spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, suite], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  process.on('message', (message: object) => child.send(message));
  for (const signal of ['SIGALRM', 'SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => child.kill(signal));
  child.on('exit', (code) => process.exit(code ?? 1));
}

/** Ends with the process that started it, however that one ends. */
function endWithParent(): void {
  process.on('disconnect', () => process.exit(1));
  process.channel?.unref();
}

/** `name`: of table.ts. The suite's own file is the main module of this process. */
export async function runSuite(name: string): Promise<void> {
  const [, suite] = process.argv;
  if (suite !== undefined && hasIdleLoader()) {
    runPlain(suite);
    return;
  }
  endWithParent();
  const { runFiles } = await import('./files.ts');
  await runFiles(name);
}
