/** Breaks of a cluster, with the alerts that must fire. */
import { setTimeout as wait } from 'node:timers/promises';
import { signUp } from '../../kit/agent.ts';
import type { Nodes } from '../../kit/cluster/nodes.ts';
import { Database } from '../../src/io/cluster/database.ts';
import { type Break, PLANTED, type Stage } from './stage.ts';

const HOLD_MS = 600;
/** Old versions of the row that orders the log, which no vacuum may remove while a transaction is open. */
const TOUCHES = 200;

/** By two seconds, and by ten from SIGUSR2 on. */
const CLOCK_AHEAD = { nodeArgs: ['--require', PLANTED], environment: { PLANTED: 'clock' } };

const targetsOf = ({ nodes }: Nodes) => nodes.map(({ gateway }) => gateway.internal);

function databaseOf(stage: Stage, { databaseUrl }: Nodes): Database {
  const database = new Database({ url: databaseUrl, applicationName: 'alerts' });
  stage.defer(() => database.close());
  return database;
}

export const CLUSTER_BREAKS: readonly Break[] = [
  {
    title: 'a node does not reach the database',
    alerts: ['GatehouseNodeNotServing', 'GatehouseNodesExpelled'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 3 });
      return { targets: targetsOf(cluster), act: async () => cluster.nodes.at(-1)?.database.cut() };
    },
  },
  {
    title: 'no node reaches the links of another one',
    alerts: ['GatehouseNodeLinksDown'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 3 });
      return { targets: targetsOf(cluster), act: async () => cluster.nodes.at(-1)?.links.cut() };
    },
  },
  {
    title: 'the database answers late',
    alerts: ['GatehouseAppendsSlow'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 1, cluster: { leaseMilliseconds: 5_000 } });
      const [node] = cluster.nodes;
      return {
        targets: targetsOf(cluster),
        async act() {
          node?.database.hold();
          const signedUp = signUp(node?.url ?? '').catch(() => undefined);
          await wait(HOLD_MS);
          node?.database.heal();
          await signedUp;
        },
      };
    },
  },
  {
    title: 'the role of a node may not log in to the database',
    alerts: ['GatehouseDatabaseRefuses'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 1 });
      const admin = databaseOf(stage, cluster);
      await admin.script('select 1');
      return {
        targets: targetsOf(cluster),
        async act() {
          await admin.script("do $$ begin execute format('alter role %I nologin', current_user); end $$");
          await admin.script(
            'select pg_terminate_backend(pid) from pg_stat_activity where usename = current_user and pid <> pg_backend_pid()',
          );
        },
      };
    },
  },
  {
    title: 'a transaction stays open while the log grows',
    alerts: ['GatehouseHeadBloated'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 1 });
      const holder = databaseOf(stage, cluster);
      const writer = databaseOf(stage, cluster);
      await holder.script('set idle_in_transaction_session_timeout = 0');
      await holder.script('begin isolation level repeatable read');
      await holder.script('select count(*) from gatehouse.head');
      return {
        targets: targetsOf(cluster),
        async act() {
          for (let touch = 0; touch < TOUCHES; touch += 1)
            await writer.script('update gatehouse.head set pos = pos');
        },
      };
    },
  },
  {
    title: 'the clock of a node is two seconds ahead',
    alerts: ['GatehouseClockOff'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 1, launch: CLOCK_AHEAD });
      return { targets: targetsOf(cluster) };
    },
  },
  {
    title: 'the clock of one of two nodes steps by eight seconds',
    alerts: ['GatehouseNodeClockWrong'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 2, launch: CLOCK_AHEAD });
      return {
        targets: targetsOf(cluster),
        act: async () => void cluster.nodes.at(-1)?.gateway.process.kill('SIGUSR2'),
      };
    },
  },
  {
    title: 'the folder of files of one of two nodes is its own',
    alerts: ['GatehouseFolderNotShared'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 2, fileFolder: (name) => `files-${name}` });
      return { targets: targetsOf(cluster) };
    },
  },
  {
    title: 'a node says that it has another configuration',
    alerts: ['GatehouseConfigurationsDiffer'],
    async set(stage) {
      const cluster = await stage.cluster({ nodes: 2 });
      const database = databaseOf(stage, cluster);
      return {
        targets: targetsOf(cluster),
        act: () =>
          database.script(`update gatehouse.node set config_hash = sha256(config_hash) where name = 'a'`),
      };
    },
  },
];
