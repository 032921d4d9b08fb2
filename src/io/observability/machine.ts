/** Memory and descriptor limit of the process, as the system reports them. */
import { readFileSync } from 'node:fs';
import { SECOND_MS } from '../../domain/time.ts';

/**
 * Resident memory in bytes, read at most once a second. Reading takes a descriptor: when there is none, the last value
 * stays and /health still answers.
 */
export function residentMemory(
  elapsed: () => number,
  read: () => number = () => process.memoryUsage.rss(),
): () => number {
  let bytes = read();
  let readMs = elapsed();
  return () => {
    if (elapsed() - readMs < SECOND_MS) return bytes;
    readMs = elapsed();
    try {
      bytes = read();
    } catch {
      // Out of descriptors or memory: the last value stays.
    }
    return bytes;
  };
}

/** Limit of open file descriptors; undefined where the system has none, and on other systems than Linux. */
export function descriptorLimit(): number | undefined {
  let limits: string;
  try {
    limits = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return undefined;
  }
  const [, soft] = /^Max open files\s+([0-9]+)\s/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}
