/**
 * Command lines that run in this process, by the function that the entry of the program calls. A process of its own loads
 * half a second of modules for each of them.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { cpSync, mkdtempSync } from 'node:fs';
import { plainEnvironment } from '../../kit/launch.ts';
import { run } from '../../src/cli/run.ts';

interface CommandRun {
  code: number;
  stdout: string;
  stderr: string;
}

/** Tells the output of a command from that of the tests, which is printed meanwhile. */
const running = new AsyncLocalStorage<CommandRun>();

class Ended extends Error {}

/** A start listens to them to the end of its process. */
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs a command that ends by itself: no `serve`. One at a time: exit code and environment are those of the process. */
export async function runCommand(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CommandRun> {
  const { env, exit, exitCode } = process;
  const stop = [...(['stdout', 'stderr'] as const).map(taken), ...SIGNALS.map(signalListeners)];
  const result: CommandRun = { code: 0, stdout: '', stderr: '' };
  process.env = plainEnvironment(environment);
  process.exitCode = undefined;
  process.exit = (code) => {
    process.exitCode = code ?? 0;
    throw new Ended();
  };
  try {
    await running.run(result, () => run(args));
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
  } finally {
    for (const each of stop) each();
    result.code = Number(process.exitCode ?? 0);
    Object.assign(process, { env, exit, exitCode });
  }
  return result;
}

/** A start that must be refused. On a copy of the folder, since a process keeps the lock of its folder to its end. */
export function refusedStart(dataPath: string, ...args: readonly string[]): Promise<CommandRun> {
  const copy = mkdtempSync(`${dataPath}-start-`);
  cpSync(dataPath, copy, { recursive: true });
  return runCommand(['--data', copy, '--port', '0', '--internal-port', '0', ...args]);
}

/** Returns what removes the listeners that were added since. */
function signalListeners(signal: (typeof SIGNALS)[number]): () => void {
  const before = process.listeners(signal);
  return () => {
    for (const listener of process.listeners(signal))
      if (!before.includes(listener)) process.removeListener(signal, listener);
  };
}

/** Returns what ends it. */
function taken(name: 'stdout' | 'stderr'): () => void {
  const stream = process[name];
  const { write } = stream;
  stream.write = ((...given: Parameters<typeof write>) => {
    const result = running.getStore();
    if (result === undefined) return write.apply(stream, given);
    result[name] += String(given[0]);
    return true;
  }) as typeof write;
  return () => {
    stream.write = write;
  };
}
