/**
 * `npm run alerts [-- WORD…]`: breaks one thing after the other and waits until Prometheus says that its alerts fire.
 * With words: those whose title or alerts have one of them.
 */
import { RULES } from '../dashboards/rules.ts';
import { GATEWAY_BREAKS } from './breaks.ts';
import { CLUSTER_BREAKS } from './cluster-breaks.ts';
import { alertsMissing } from './stage.ts';

export const BREAKS = [...GATEWAY_BREAKS, ...CLUSTER_BREAKS];

/** Not broken here, and why. */
export const NOT_BROKEN: Readonly<Record<string, string>> = {
  GatehouseActorsFail: 'a turn of an actor has to throw',
  GatehouseNodeBehind:
    'neither a slow disk nor held connections made a node on one machine apply the log late',
  GatehouseTurnsRefused: 'a node has to write what no correct node writes',
  GatehouseStreamFreshnessBurnsSteadily:
    'on one machine a stream is behind for milliseconds, between scrapes',
  GatehouseStreamFreshnessBurnsSlowly: 'as above',
};

async function main(words: readonly string[]): Promise<number> {
  const chosen = BREAKS.filter(
    ({ title, alerts }) =>
      words.length === 0 || words.some((word) => title.includes(word) || alerts.join().includes(word)),
  );
  let faults = 0;
  for (const each of chosen) {
    const startMs = Date.now();
    const missing = await alertsMissing(each).catch((error: unknown) => [String(error)]);
    faults += missing.length;
    const result =
      missing.length === 0 ? `fired: ${each.alerts.join(', ')}` : `MISSING: ${missing.join(', ')}`;
    console.log(`${each.title}: ${result} (${Math.round((Date.now() - startMs) / 1_000)} s)`);
  }
  for (const [alert, reason] of Object.entries(NOT_BROKEN)) console.log(`not tried: ${alert}: ${reason}`);
  console.log(`${RULES.length} rules, ${faults} faults`);
  return Math.min(faults, 1);
}

if (process.argv[1]?.endsWith('alerts/main.js') === true)
  process.exitCode = await main(process.argv.slice(2));
