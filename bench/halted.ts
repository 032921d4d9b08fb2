/**
 * Processes of a scenario that waits for its next turn are halted: dozens of servers that only keep time are a
 * noticeable load. Where there is no /proc they stay as they are.
 */
import { readdirSync, readFileSync } from 'node:fs';

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly isHalted: boolean;
}

/** Halts whatever this process started, and what that started, as far as it runs. */
export function haltChildren(): number[] {
  const all = processes();
  const found: Process[] = [];
  for (let parents = new Set([process.pid]); parents.size > 0; ) {
    const children = all.filter(({ parent }) => parents.has(parent));
    found.push(...children);
    parents = new Set(children.map(({ pid }) => pid));
  }
  return found.flatMap(({ pid, isHalted }) => (!isHalted && signalled(pid, 'SIGSTOP') ? [pid] : []));
}

export function resume(pids: readonly number[]): void {
  for (const pid of pids) signalled(pid, 'SIGCONT');
}

function processes(): Process[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
        // The command's name may hold spaces and brackets.
        const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
        return [{ pid: Number(name), parent: Number(parent), isHalted: state === 'T' }];
      } catch (error) {
        // Gone since the folder was read.
        if (error instanceof Error && 'code' in error) return [];
        throw error;
      }
    });
}

/** False for one that has ended meanwhile. */
function signalled(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}
