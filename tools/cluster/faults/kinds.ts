/** The faults of a cluster, one a round: what is done to a node, and when the others must serve again. */
import { setTimeout as wait } from 'node:timers/promises';
import type { NodeProcess, Nodes } from '../../../kit/cluster/nodes.ts';
import type { Postgres } from '../../../kit/cluster/postgres.ts';
import type { TcpProxy } from '../../../kit/cluster/tcp-proxy.ts';
import { BrokenPromise, GIVE_UP_MS } from './calls.ts';
import type { ServiceProbe } from './service.ts';

export interface FaultTools {
  readonly postgres: Postgres;
  readonly nodes: Nodes;
  readonly victim: NodeProcess;
  readonly others: readonly NodeProcess[];
  readonly random: () => number;
  readonly service: ServiceProbe;
  /** Asks a stopped node about what changed since it stopped; the answers come when it continues. */
  readonly askStopped: (sinceMs: number) => Promise<void>;
  readonly note: (text: string) => void;
}

/** Milliseconds until all accounts were served again. */
type FaultKind = (tools: FaultTools) => Promise<number>;

const FAULT_MS = [300, 1_500] as const;
/** Milliseconds until requests are in the buffers of a stopped node. */
const SENT_MS = 50;
/** Text that the node sends for an append: the name of the prepared statement. */
const APPEND = 'append\0';

export const FAULT_KINDS = {
  /** Every second one starts again before the others have noticed. */
  async kill({ victim, others, nodes, random, service }) {
    const sinceMs = performance.now();
    await victim.gateway.kill();
    const isAtOnce = random() < 0.5;
    const [backMs] = await Promise.all([
      service.back(sinceMs, others),
      isAtOnce ? victim.start() : nodes.isOut(victim),
    ]);
    if (!isAtOnce) await victim.start();
    return backMs;
  },

  async stop({ victim, others, nodes, random, service, askStopped, note }) {
    const sinceMs = performance.now();
    victim.gateway.process.kill('SIGSTOP');
    const backMs = await service.back(sinceMs, others);
    await nodes.isOut(victim);
    await wait(between(random, [0, FAULT_MS[0]]));
    const asked = askStopped(sinceMs);
    await wait(SENT_MS);
    note(`${victim.name} continues`);
    victim.gateway.process.kill('SIGCONT');
    await asked;
    return backMs;
  },

  async database({ victim, others, nodes, random, service }) {
    const sinceMs = performance.now();
    breakProxy(victim.database, random);
    const backMs = await service.back(sinceMs, others);
    await nodes.isOut(victim);
    victim.database.heal();
    return backMs;
  },

  /** No node is expelled: the time counts from when the links are whole. */
  async links({ nodes, victim, random, service, note }) {
    const cut = random() < 0.5 ? [victim] : nodes.nodes;
    for (const node of cut) breakProxy(node.links, random);
    await wait(between(random, FAULT_MS));
    note('links are whole');
    for (const node of cut) node.links.heal();
    return service.back(performance.now(), nodes.nodes);
  },

  /** Without its database, and without what the others send. */
  async apart({ victim, others, nodes, random, service }) {
    const sinceMs = performance.now();
    breakProxy(victim.database, random);
    breakProxy(victim.links, random);
    const backMs = await service.back(sinceMs, others);
    await nodes.isOut(victim);
    victim.database.heal();
    victim.links.heal();
    return backMs;
  },

  answer: (tools) => lose(tools, 'answer'),

  question: (tools) => lose(tools, 'question'),
} as const satisfies Readonly<Record<string, FaultKind>>;

/** Faults of the database itself, which all nodes have: only when they are asked for. */
export const DATABASE_KINDS = {
  /** kill -9 of its first process; it recovers from its log of writes. */
  async crash({ postgres, nodes, service }) {
    const sinceMs = performance.now();
    await postgres.crash('SIGKILL');
    return service.back(sinceMs, nodes.nodes);
  },

  /** A standby that confirms every commit is promoted after kill -9 of the server. */
  async failover({ postgres, nodes, service, note }) {
    await postgres.startStandby();
    note('the standby confirms commits');
    await service.back(performance.now(), nodes.nodes);
    const sinceMs = performance.now();
    await postgres.failOver();
    note('the standby serves');
    return service.back(sinceMs, nodes.nodes);
  },
} as const satisfies Readonly<Record<string, FaultKind>>;

export const ALL_KINDS: Readonly<Record<FaultName, FaultKind>> = { ...FAULT_KINDS, ...DATABASE_KINDS };

export type FaultName = keyof typeof FAULT_KINDS | keyof typeof DATABASE_KINDS;

/** Faults after which another node has the partitions. */
export const TAKEOVERS: ReadonlySet<FaultName> = new Set(['kill', 'stop', 'database', 'apart']);

async function lose({ nodes, victim, service, note }: FaultTools, part: 'answer' | 'question') {
  let sinceMs: number | undefined;
  const lost = victim.database.loseNext(part, APPEND).then(() => {
    sinceMs = performance.now();
    note(`the ${part} is lost`);
  });
  // Accounts of the victim are written too, so it appends.
  await service.back(performance.now(), nodes.nodes);
  await Promise.race([lost, wait(GIVE_UP_MS, undefined, { ref: false })]);
  if (sinceMs === undefined) throw new BrokenPromise('fault', `${victim.name} has appended nothing`);
  return service.back(sinceMs, nodes.nodes);
}

function breakProxy(proxy: TcpProxy, random: () => number): void {
  if (random() < 0.5) proxy.cut();
  else proxy.hold();
}

function between(random: () => number, [least, most]: readonly [number, number]): number {
  return least + random() * (most - least);
}
