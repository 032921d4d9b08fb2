/**
 * Processes that a server by command left behind: the ones that left its process group, and those of a gateway that was
 * killed. They are found by a variable of their environment, on Linux alone.
 */
import { readdir, readFile, readlink } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';

/** Variable that every process of a server inherits. */
export const MARK_VARIABLE = 'GATEHOUSE_MCP_SERVER';
/** A process may start another one while they are read. */
const ROUNDS_MAX = 8;
/** While the kernel loads a program, its environment reads as empty, for some milliseconds on a busy machine. */
const LOADING_MS = 5;

/**
 * Ends all processes whose mark, with the zero byte behind it, begins so. `environmentOf` is undefined for a process that
 * has ended, or is another user's.
 */
export async function endMarked(beginning: string, environmentOf = readEnvironment): Promise<void> {
  if (process.platform !== 'linux') return;
  const wanted = Buffer.from(`${MARK_VARIABLE}=${beginning}`);
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    let found = 0;
    let loading = 0;
    for (const name of await processNames()) {
      const pid = Number(name);
      if (!Number.isInteger(pid) || pid === process.pid) continue;
      const environment = await environmentOf(pid);
      if (environment === undefined) continue;
      if (environment.length === 0 && (await hasProgram(pid))) loading += 1;
      if (!hasVariable(environment, wanted)) continue;
      found += 1;
      endProcess(pid);
    }
    if (found > 0) continue;
    if (loading === 0) return;
    await wait(LOADING_MS);
  }
}

/** False for a kernel thread and for a process that has ended, whose environments some kernels read as empty. */
async function hasProgram(pid: number): Promise<boolean> {
  try {
    await readlink(`/proc/${pid}/exe`);
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** True for a signal that was sent. `pid` below zero: a process group. */
export function endProcess(pid: number, signal: NodeJS.Signals = 'SIGKILL'): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** Empty where there is no /proc. */
async function processNames(): Promise<string[]> {
  try {
    return await readdir('/proc');
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}

async function readEnvironment(pid: number): Promise<Buffer | undefined> {
  try {
    return await readFile(`/proc/${pid}/environ`);
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

function hasVariable(environment: Buffer, wanted: Buffer): boolean {
  const at = environment.indexOf(wanted);
  return at === 0 || (at > 0 && environment[at - 1] === 0);
}

function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES' || code === 'EPERM';
}
