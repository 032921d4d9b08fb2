/**
 * Processes of a scenario that waits for its next turn are halted: dozens of servers that only keep time are a
 * noticeable load. Where there is no /proc they stay as they are.
 */
import { readdirSync } from 'node:fs';
import { signalled, statOf } from './processes.ts';

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
    .map(Number)
    .flatMap((pid) => {
      // Without any it is gone since the folder was read.
      const [state, parent] = statOf(pid) ?? [];
      return state === undefined ? [] : [{ pid, parent: Number(parent), isHalted: state === 'T' }];
    });
}
