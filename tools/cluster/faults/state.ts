/** Reports of nodes about themselves when a promise is broken: their health, and the end of their logs. */
import { request } from '../../../kit/agent.ts';
import type { NodeProcess } from '../../../kit/cluster/nodes.ts';

const TIMEOUT_MS = 2_000;
const LINES_MAX = 6;

/** A stopped node says nothing. */
export async function stateOf({ name, gateway }: NodeProcess): Promise<readonly string[]> {
  const health = await request(`${gateway.internal}/health`, { timeoutMs: TIMEOUT_MS }).catch(String);
  const log = gateway.output().stderr.trimEnd().split('\n').slice(-LINES_MAX);
  const said = typeof health === 'string' ? health : `${health.status} ${health.text}`;
  return [`${name}: ${said}`, ...log.map((line) => `${name}: ${line}`)];
}
