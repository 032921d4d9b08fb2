/** Other processes of this machine: what /proc says of one, and signals that may come too late. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';

/**
 * Fields of /proc/<pid>/stat from number 3 on: state, parent and so on (proc_pid_stat(5)). Undefined where there is no
 * /proc, or no such process.
 */
export function statOf(pid: number): readonly string[] | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The command's name before them may hold spaces and brackets.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}

/** Processes whose parent this is; none where there is no /proc. */
export function childrenOf(pid: number): number[] {
  const numbers = existsSync('/proc') ? readdirSync('/proc').filter((name) => /^\d+$/.test(name)) : [];
  return numbers.map(Number).filter((each) => Number(statOf(each)?.[1]) === pid);
}

/** To a process, or to the group of one by its negative number. False when no process is left. */
export function signalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}
