/** Command lines of the program in one process: a start of the program takes longer than most commands. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Exit, plainEnvironment } from '../../../kit/launch.ts';

const HOST = fileURLToPath(new URL('./command-host.js', import.meta.url));

export type CommandRun = (...args: readonly string[]) => Promise<Exit & { stdout: string; stderr: string }>;

/** Runs what `runToEnd` runs. Calls must not overlap; the process begins with the first one and ends with the test. */
export function openCommands(t: { teardown(end: () => unknown): unknown }): CommandRun {
  let host: ChildProcess | undefined;
  t.teardown(() => host?.kill());
  return async (...args) => {
    host ??= fork(HOST, { env: plainEnvironment(), stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    const answer = once(host, 'message');
    const ended = once(host, 'exit').then(([code]) => [new Error(`the host ended with ${code}`)]);
    host.send(args);
    const [result] = await Promise.race([answer, ended]);
    if (result instanceof Error) throw result;
    return result;
  };
}
