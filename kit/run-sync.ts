/** Programs that this process waits for with its own thread, each with a bound, and those that npm brings for tests. */
import { type SpawnSyncOptions, type SpawnSyncReturns, spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Packages that tests and tools find by path: `npm run programs` installs them, no start of the gateway needs them. */
export const PROGRAMS = fileURLToPath(new URL('../../test/programs/', import.meta.url));
export const programRequire = createRequire(`${PROGRAMS}package.json`);

/** Far above what any of them takes on a busy machine: the end of one that hangs. */
const BOUND_MS = 300_000;

type Options = Omit<SpawnSyncOptions, 'encoding' | 'timeout' | 'killSignal' | 'shell'> & {
  readonly boundMs?: number;
};

/** Throws what it printed when it hangs. A program that is missing or fails is a result. */
export function runSync(
  program: string,
  args: readonly string[],
  { boundMs = BOUND_MS, ...options }: Options = {},
): SpawnSyncReturns<string> {
  const limits = { timeout: boundMs, killSignal: 'SIGKILL', maxBuffer: Number.POSITIVE_INFINITY } as const;
  const run = spawnSync(program, args, { ...limits, ...options, encoding: 'utf8' });
  if ((run.error as NodeJS.ErrnoException | undefined)?.code !== 'ETIMEDOUT') return run;
  throw new Error(`${program} ${args.join(' ')}: no end within ${boundMs} ms\n${run.stdout}${run.stderr}`);
}

/** Returns its standard output; throws when it fails. */
export function outputOf(program: string, args: readonly string[], options: Options = {}): string {
  const { error, status, signal, stdout, stderr } = runSync(program, args, options);
  if (error !== undefined) throw error;
  if (status === 0) return stdout;
  throw new Error(
    `${program} ${args.join(' ')} ended with ${status ?? signal}\n${stdout ?? ''}${stderr ?? ''}`,
  );
}
