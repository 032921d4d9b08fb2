/** Measures the load of other programs on the machine: asked while nothing of the suite runs. */
import { type CpuInfo, cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

/** Share of all processors, above which rates are no verdict. */
export const OTHERS_BUSY_MAX = 0.1;
const SAMPLE_MS = 250;

/** Share of all processors that is in use while this process waits. The load average of a minute would be the suite's own. */
export async function othersBusy(
  sampleMs = SAMPLE_MS,
  times: () => readonly CpuInfo[] = cpus,
): Promise<number> {
  const before = times();
  await sleep(sampleMs);
  return busyShare(before, times());
}

/** 0 where no time went by. */
export function busyShare(before: readonly CpuInfo[], after: readonly CpuInfo[]): number {
  const sum = (all: readonly CpuInfo[], pick: (times: CpuInfo['times']) => number) =>
    all.reduce((total, { times }) => total + pick(times), 0);
  const between = (pick: (times: CpuInfo['times']) => number) => sum(after, pick) - sum(before, pick);
  const busyMs = between(({ user, nice, sys, irq }) => user + nice + sys + irq);
  const wholeMs = busyMs + between(({ idle }) => idle);
  return wholeMs > 0 ? busyMs / wholeMs : 0;
}
