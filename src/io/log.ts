/** The log: one JSON line an entry on standard error. Values are cut, secrets are never handed in. */
import { destination, type Logger, pino } from 'pino';

export type Log = Logger;

/** Longest text of a value in a line; longer ones are cut so that nobody can fill the disk with one request. */
const VALUE_LENGTH_MAX = 512;

/** Texts that came from outside, cut; JSON escapes control characters by itself. */
export function cut(value: string): string {
  return value.length > VALUE_LENGTH_MAX ? `${value.slice(0, VALUE_LENGTH_MAX)}…` : value;
}

/** `sync` because lines are few: starts, stops, bugs. A crash must not swallow its own reason. */
export function createLog(level: 'info' | 'silent' = 'info'): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    destination({ dest: 2, sync: true }),
  );
}
