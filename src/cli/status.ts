/** The command `status`: the health of a running gateway, as its internal listener reports it. */
import { parseFlags, UsageError } from '../config/load.ts';
import type { ClusterFacts } from '../io/cluster/node-facts.ts';
import { EXIT, loadOrEnd, NoGateway, print } from './output.ts';

/** A gateway that takes longer is as useless as one that does not answer. */
const TIMEOUT_MS = 5_000;
const MEBIBYTE = 1024 * 1024;

interface Health {
  readonly status: string;
  readonly version: string;
  readonly node: string;
  readonly httpLibrary: string;
  readonly uptimeSeconds: number;
  readonly activeSessions: number;
  readonly rssBytes: number;
  readonly degraded: readonly string[];
  /** Facts about the cluster, with `Cluster`. */
  readonly cluster?: ClusterFacts;
}

/** Prints one line, or the JSON. Throws `NoGateway`, and `UsageError` where the port is unknown; an unhealthy gateway is exit code 70. */
export async function showStatus(args: readonly string[]): Promise<void> {
  const { internal } = loadOrEnd(parseFlags(args.filter((each) => each !== '--json')));
  // Port 0 is chosen at the start, which printed it.
  if (internal.port === 0)
    throw new UsageError('status needs the port that the gateway printed: --internal-port N');
  const anywhere = internal.host === '0.0.0.0' || internal.host === '::';
  const host = anywhere ? '127.0.0.1' : internal.host;
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${internal.port}/health`;
  const { health, text } = await ask(url);
  print(args.includes('--json') ? `${text}\n` : `${lineOf(health)}\n`);
  if (health.status === 'unhealthy') process.exitCode = EXIT.storage;
}

async function ask(url: string): Promise<{ health: Health; text: string }> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    const text = await answer.text();
    const health = JSON.parse(text) as Health;
    if (typeof health?.status !== 'string' || typeof health.version !== 'string')
      throw new Error('the answer is not the health of a gateway');
    return { health, text };
  } catch (error) {
    const { message, cause } = error as Error;
    throw new NoGateway(`${url}: ${cause instanceof Error ? cause.message : message}`);
  }
}

function lineOf(health: Health): string {
  const { status, version, node, httpLibrary, uptimeSeconds, activeSessions, rssBytes, cluster } = health;
  const parts = status === 'degraded' ? ` (${health.degraded.join(', ')})` : '';
  const memory = Math.round(rssBytes / MEBIBYTE);
  const place = cluster === undefined ? '' : `; ${placeOf(cluster)}`;
  return `${status}${parts}: gatehouse ${version} on Node ${node} with ${httpLibrary}, up ${uptimeSeconds} s, ${activeSessions} sessions, ${memory} MiB${place}`;
}

function placeOf(node: ClusterFacts): string {
  const { name, number, position, lagRows, leaseLeftMs, members, partitionsOwned, linksOut } = node;
  const others = node.otherConfigurations;
  return [
    `node ${name} (${number}) of ${members.join(', ') || 'none'}`,
    `row ${position}, ${lagRows} behind`,
    `lease ${leaseLeftMs} ms`,
    `${partitionsOwned} partitions`,
    `${linksOut.length} links`,
    `clock ${node.clockOffsetMs} ms`,
    ...(others.length === 0 ? [] : [`other configuration: ${others.join(', ')}`]),
  ].join(', ');
}
