/** What the process asks the machine about itself. */
import { readFileSync } from 'node:fs';
import { SECOND_MS } from '../../domain/time.ts';

/**
 * Resident memory in bytes, looked up once a second at most. Looking takes a descriptor: when there is none, the last
 * figure stays, and /health goes on to answer.
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
      // Out of descriptors or memory; the figure is a second older than it says.
    }
    return bytes;
  };
}

/** How many descriptors the process may have open; undefined where the system does not say (no Linux) or sets no limit. */
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
