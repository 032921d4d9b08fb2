/** Time of each scenario: the one table of `all`, and the bound of a scenario that runs alone. */
import { SECOND_MS } from '../../src/domain/time.ts';
import { ALL, type CommandLine } from '../options.ts';

/**
 * Seconds of each scenario in `all`, set-up and warm-up included. All together stay below ten minutes. Rounds go on until
 * the ratios are sure or these seconds are over; what a scenario does not need belongs to those after it.
 */
export const SECONDS: Readonly<Record<string, number>> = {
  turn: 15,
  limiter: 14,
  'node-calls': 8,
  'mcp-call': 45,
  'mcp-list': 33,
  'session-check': 25,
  'rest-proxy': 25,
  'mcp-login': 35,
  passkey: 16,
  'upload-v1': 42,
  'upload-v2': 42,
  download: 40,
  'download-range': 20,
  'events-intake': 15,
  webhooks: 22,
  'sse-fanout': 60,
  mixed: 22,
  neighbours: 51,
  sessions: 40,
};
/** Rounds of a scenario on its own begin within this, unless the command line says how many there are. */
const ALONE_MS = 120 * SECOND_MS;

/** When rounds of each scenario end, on the clock of the run. Scenarios follow one another in this order. */
export function endsOf(names: readonly string[], startedMs: number): ReadonlyMap<string, number> {
  let endMs = startedMs;
  return new Map(
    names.map((name) => {
      endMs += secondsOf(name) * SECOND_MS;
      return [name, endMs];
    }),
  );
}

/** Returns the seconds of a scenario in `all`. */
export function secondsOf(name: string): number {
  return SECONDS[name] ?? 0;
}

/** For further rounds of a scenario that began at `beganMs`; `endMs` is that of `endsOf`. */
export function leftMs(
  { scenario, given }: Pick<CommandLine, 'scenario' | 'given'>,
  { beganMs, endMs }: { readonly beganMs: number; readonly endMs: number },
  nowMs = performance.now(),
): number {
  if (scenario === ALL) return endMs - nowMs;
  return given.rounds === undefined ? beganMs + ALONE_MS - nowMs : Number.POSITIVE_INFINITY;
}

/** Says how long the run will take, for the first line of its progress; undefined where the options leave it open. */
export function expectation(
  { scenario, given, common }: Pick<CommandLine, 'scenario' | 'given' | 'common'>,
  names: readonly string[],
): string | undefined {
  if (common.target !== undefined || given.rounds !== undefined) return undefined;
  if (scenario !== ALL) return `rounds end after ${ALONE_MS / SECOND_MS} s at the latest`;
  const minutes = names.reduce((sum, name) => sum + secondsOf(name), 0) / 60;
  return `${names.length} scenarios, about ${Math.ceil(minutes)} minutes`;
}
