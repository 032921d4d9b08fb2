/** Cost of a process for the machine so far. */
import { readFileSync } from 'node:fs';
import { SECOND_MS } from '../../src/domain/time.ts';
import { statOf } from './processes.ts';

export interface ProcessCost {
  /** Processor time used so far, all threads, those that have ended too. */
  readonly cpuMs: number;
  readonly rssBytes: number;
}

/** USER_HZ of Linux: ticks of /proc/<pid>/stat a second. */
const TICKS_PER_SECOND = 100;
const NS_PER_MS = 1_000_000;
const PAGE_BYTES = 4096;
/** CPUCLOCK_SCHED of the kernel: what the scheduler gave a process. */
const CLOCK_SCHED = 2;

/**
 * The processor clock of another process in milliseconds, to the nanosecond: rounds are too short for the ticks of
 * /proc, and /proc/<pid>/task/*\/schedstat forgets threads that have ended. Undefined where there is no such clock.
 */
const clockOf = await schedulerClock();

async function schedulerClock(): Promise<(pid: number) => number | undefined> {
  if (process.platform !== 'linux') return () => undefined;
  try {
    const { load } = (await import('koffi')).default;
    const read = load(null).func('int clock_gettime(int, void *)');
    const time = new BigInt64Array(2);
    return (pid) => {
      // The clock id is that of clock_getcpuclockid(3); a failure means that the process is gone.
      if (read((~pid << 3) | CLOCK_SCHED, time) !== 0) return undefined;
      return Number(time[0]) * SECOND_MS + Number(time[1]) / NS_PER_MS;
    };
  } catch {
    // No build of koffi for this machine: the ticks are all there is.
    return () => undefined;
  }
}

/** Undefined where there is no /proc, or no such process. */
export function costOf(pid: number): ProcessCost | undefined {
  const fields = statOf(pid);
  if (fields === undefined) return undefined;
  const ticksMs = ((Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND) * SECOND_MS;
  return { cpuMs: clockOf(pid) ?? ticksMs, rssBytes: Number(fields[21]) * PAGE_BYTES };
}

/** Processor time of the main thread so far, in milliseconds. Undefined where there is no /proc, or no such process. */
export function mainThreadMs(pid: number): number | undefined {
  try {
    const [ns] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'latin1').split(' ');
    return Number(ns) / NS_PER_MS;
  } catch (error) {
    if (error instanceof Error && 'code' in error) return undefined;
    throw error;
  }
}

/** Sums up the cost of several processes; undefined where one of them is unknown, or there is none. */
export function costOfAll(pids: readonly number[]): ProcessCost | undefined {
  const costs = pids.map((pid) => costOf(pid)).filter((cost) => cost !== undefined);
  if (pids.length === 0 || costs.length < pids.length) return undefined;
  return {
    cpuMs: costs.reduce((total, { cpuMs }) => total + cpuMs, 0),
    rssBytes: costs.reduce((total, { rssBytes }) => total + rssBytes, 0),
  };
}
