/**
 * `node build/tools/cluster/rolling-restart.js [--clients N] [--pause MS]`: three nodes behind one address under load. One
 * joins, one leaves, each of three is restarted. Prints what clients were answered in each part; ends with 1 for anything but
 * success and 503 with Retry-After, a 99th percentile of 50 ms or more, or an answer after more than 1 s.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startPostgres } from '../../kit/cluster/postgres.ts';
import type { LoadReport } from './load.ts';
import { type Rolling, startRolling } from './rolling.ts';

const USAGE = 'usage: rolling-restart [--clients N] [--pause MS]\n';
const EXIT_FAILED = 1;
const EXIT_USAGE = 64;
const QUIET_MS = 5_000;
const P99_MS = 50;
const LONGEST_MS = 1_000;

function print(part: string, { requests, unavailable, faults, times, kinds }: LoadReport): boolean {
  const textOf = ({ p50, p99, longest }: LoadReport['times']) =>
    `p50 ${p50.toFixed(1)}, p99 ${p99.toFixed(1)}, longest ${longest.toFixed(1)} ms`;
  process.stdout.write(`${part}: ${requests} answers, ${unavailable} of them 503; ${textOf(times)}\n`);
  for (const [name, each] of Object.entries(kinds)) process.stdout.write(`  ${name}: ${textOf(each)}\n`);
  const counts = new Map<string, number>();
  for (const fault of faults) counts.set(fault, (counts.get(fault) ?? 0) + 1);
  for (const [fault, count] of counts) process.stdout.write(`  ${count} × ${fault}\n`);
  return faults.length === 0 && times.p99 < P99_MS && times.longest <= LONGEST_MS;
}

/** Returns the lines of a log beside those of its requests. */
function faultsOf(log: string): string {
  return log
    .split('\n')
    .filter((line) => !line.includes('"msg":"request"'))
    .join('\n');
}

async function parts(rolling: Rolling): Promise<boolean> {
  const { cluster, under, restart, join } = rolling;
  print('no change, for comparison', await under(() => wait(QUIET_MS)));
  let isGood = print('join of a fourth node', await under(async () => void (await join())));
  const left = async () => {
    const node = cluster.nodes.at(-1);
    node?.gateway.process.kill('SIGTERM');
    await node?.gateway.exited;
  };
  isGood = print('leave of that node', await under(left)) && isGood;
  for (const node of cluster.nodes.slice(0, -1)) {
    const report = await under(async () => {
      const { output } = node.gateway;
      const { code } = await restart(node);
      if (code !== 0)
        throw new Error(`the node ${node.name} ended with ${code}: ${faultsOf(output().stderr)}`);
    });
    isGood = print(`restart of ${node.name}`, report) && isGood;
  }
  return isGood;
}

async function main(): Promise<number> {
  let clients: number;
  let pauseMs: number;
  try {
    const options = { clients: { type: 'string' }, pause: { type: 'string' } } as const;
    const { values } = parseArgs({ options });
    clients = Number(values.clients ?? '16');
    pauseMs = Number(values.pause ?? '10');
    if (!(clients >= 1 && pauseMs >= 0)) throw new TypeError('no number');
  } catch {
    process.stderr.write(USAGE);
    return EXIT_USAGE;
  }
  const postgres = await startPostgres();
  if (typeof postgres === 'string') {
    process.stderr.write(`${postgres}\n`);
    return EXIT_FAILED;
  }
  try {
    const rolling = await startRolling({ postgres, nodes: 3, clients, pauseMs });
    try {
      return (await parts(rolling)) ? 0 : EXIT_FAILED;
    } finally {
      await rolling.stop();
    }
  } finally {
    await postgres.stop();
  }
}

process.exitCode = await main();
