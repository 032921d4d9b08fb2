/**
 * A node with an empty folder joins a cluster of 100,000 accounts: it fetches the checkpoint, applies what the log holds
 * after it, and serves. From the start of its process to the line that says so.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loopbackCluster } from '../../kit/cluster/configuration.ts';
import { startNodes } from '../../kit/cluster/nodes.ts';
import { startPostgres } from '../../kit/cluster/postgres.ts';
import { importJournal } from '../../src/bootstrap/cluster/commands.ts';
import { costOf } from '../measure/process-cost.ts';
import { intervalOfSample } from '../measure/statistics.ts';
import type { Figure } from '../report/targets.ts';
import type { Scenario } from '../scenario.ts';
import { seedJournal } from '../subjects/seeded-journal.ts';
import { seedLog } from '../subjects/seeded-log.ts';

const ACCOUNTS = 100_000;
/** Sign-ups after the checkpoint. */
const COMMANDS = 100_000;
/** Joins of each kind, one after the other. */
const JOINS = 3;
const JOIN = 'join with 100,000 accounts';
const BEHIND = `join behind ${COMMANDS.toLocaleString('en')} commands`;
const EACH_MILLION = 'further time for each million commands';

export const joining: Scenario = {
  name: 'joining',
  summary: 'a node with an empty folder joins a cluster of 100,000 accounts, and one behind 100,000 commands',
  noTarget: 'it starts a cluster of its own',
  notInAll: 'writing the accounts takes minutes',
  targets: [
    { figure: JOIN, atMost: 2_000, row: 'a node with 100,000 accounts joins' },
    { figure: EACH_MILLION, atMost: 5_000, row: 'a node joins behind a million commands' },
  ],
  async run(bench) {
    const folder = mkdtempSync(join(tmpdir(), 'gatehouse-joining-'));
    bench.onTeardown(async () => rmSync(folder, { recursive: true, force: true }));
    const postgres = await startPostgres();
    if (typeof postgres === 'string') throw new Error(postgres);
    bench.onTeardown(() => postgres.stop());
    const nodes = await startNodes({ postgres, nodes: 0, sandbox: false });
    bench.onTeardown(() => nodes.stop());
    const joinOnce = async () => {
      const startedMs = performance.now();
      const node = await nodes.add();
      const ms = performance.now() - startedMs;
      const cpuMs = costOf(node.gateway.process.pid ?? 0)?.cpuMs ?? Number.NaN;
      // It is away while rows are seeded, and takes no checkpoint.
      await node.gateway.stop();
      return { ms, cpuMs };
    };
    const joins = async (what: string) => {
      const times: Joined[] = [];
      while (times.length < JOINS) {
        bench.announce(what);
        times.push(await joinOnce());
      }
      return times;
    };
    bench.announce('a journal of 100,000 accounts');
    await seedJournal(join(folder, 'journal'), ACCOUNTS);
    const { databaseUrl: url, secret } = nodes;
    await importJournal(loopbackCluster(url, secret), join(folder, 'journal'));
    const first = await joins(JOIN);
    bench.announce(`${COMMANDS.toLocaleString('en')} commands`);
    const secrets = [Buffer.from(secret, 'hex')];
    await seedLog({ url, secrets, dataPath: join(folder, 'seed'), accounts: COMMANDS });
    const behind = await joins(BEHIND);
    return {
      comparison: await bench.compare([]),
      notes: [`From the start of the process, each ${JOINS} times with an empty folder; the node is alone.`],
      figures: figuresOf(first, behind),
    };
  },
};

interface Joined {
  readonly ms: number;
  /** Processor time of the process until then. */
  readonly cpuMs: number;
}

function figuresOf(first: readonly Joined[], behind: readonly Joined[]): Figure[] {
  const timesOf = (joins: readonly Joined[]) => intervalOfSample(joins.map(({ ms }) => ms));
  const cpuOf = (joins: readonly Joined[]) => intervalOfSample(joins.map(({ cpuMs }) => cpuMs)).median;
  const [alone, late] = [timesOf(first), timesOf(behind)];
  const further = ((late.median - alone.median) / COMMANDS) * 1_000_000;
  return [
    { name: JOIN, unit: 'ms', value: alone.median, from: alone.lowest, to: alone.highest },
    { name: BEHIND, unit: 'ms', value: late.median, from: late.lowest, to: late.highest },
    { name: EACH_MILLION, unit: 'ms', value: further },
    { name: `${JOIN}, processor time`, unit: 'ms', value: cpuOf(first) },
    { name: `${BEHIND}, processor time`, unit: 'ms', value: cpuOf(behind) },
  ];
}
