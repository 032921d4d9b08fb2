/** Links of one node on loopback for tests: a clock that the test moves, and a record of what happened to its links. */

import { randomBytes } from 'node:crypto';
import type { LogRow } from '../../../src/actors/runtime/replication/port.ts';
import type { Schedule } from '../../../src/actors/runtime/runtime-context.ts';
import type { HostPort } from '../../../src/domain/host-port.ts';
import { linkKeys } from '../../../src/io/cluster/handshake.ts';
import { PeerLinks } from '../../../src/io/cluster/peers.ts';
import type { Verbs } from '../../../src/io/cluster/rpc.ts';
import type { Transport } from '../../../src/io/cluster/transport.ts';
import { ManualClock } from '../actors/actors.ts';

export const LOG_ID = '5f0c7f0e-3c0b-4d7e-8d5e-2f6f3f1f9a10';
export const SECRET = 'a secret of the cluster, long enough';
const HOST = '127.0.0.1';

export interface TestNodeOptions {
  readonly node: number;
  readonly incarnation?: number;
  readonly logId?: string;
  readonly secrets?: readonly string[];
  readonly verbs?: Verbs;
  readonly transport?: Transport;
  /** Default: a free one. */
  readonly port?: number;
}

export interface TestNode {
  readonly node: number;
  readonly links: PeerLinks;
  readonly address: HostPort;
  readonly clock: ManualClock;
  /** Rows that other nodes have sent. */
  readonly rows: LogRow[];
  /** Positions that other nodes have said, as `node position`. */
  readonly positions: string[];
  /** Events of links, in order: `opened 2 out`, `closed 2 in silent`, `failed 2 unreachable`, `refused secret`. */
  readonly events: string[];
  readonly bugs: unknown[];
  /** Resolves when the condition holds; asked again whenever something has happened at this node. */
  until(condition: () => boolean): Promise<void>;
  /** Resolves when the event has happened, counted from now. */
  next(event: string): Promise<void>;
  /** Lets so many milliseconds pass at this node. */
  pass(durationMs: number): void;
}

interface Teardown {
  teardown(handler: () => unknown): void;
}

/** Listens on a free port of loopback. */
export async function startNode(t: Teardown, options: TestNodeOptions): Promise<TestNode> {
  const { node, incarnation = 1, logId = LOG_ID, secrets = [SECRET], verbs = {} } = options;
  const clock = new ManualClock();
  const schedule: Schedule = { immediate: (run) => void setImmediate(run), timer: clock.timer };
  const rows: LogRow[] = [];
  const positions: string[] = [];
  const events: string[] = [];
  const bugs: unknown[] = [];
  const waiting = new Set<() => void>();
  const record = <Item>(list: Item[], item: Item) => {
    list.push(item);
    for (const check of [...waiting]) check();
  };
  const until = (condition: () => boolean) =>
    new Promise<void>((resolve) => {
      const check = () => {
        if (!condition()) return;
        waiting.delete(check);
        resolve();
      };
      waiting.add(check);
      check();
    });
  const links = new PeerLinks({
    self: () => ({ node, incarnation, logId, version: '0.2.0' }),
    keys: linkKeys(secrets),
    randomBytes,
    schedule,
    transport: options.transport ?? { plain: false },
    random: () => 0,
    verbs,
    position: () => 1_000 + node,
    listener: {
      onPush: (row) => record(rows, row),
      onApplied: (from, position) => record(positions, `${from} ${position}`),
    },
    observer: {
      onOpened: (peer, outgoing) => record(events, `opened ${peer.node} ${outgoing ? 'out' : 'in'}`),
      onClosed: (peer, outgoing, reason) =>
        record(events, `closed ${peer} ${outgoing ? 'out' : 'in'} ${reason}`),
      onFailed: (peer, failure) =>
        record(events, `failed ${peer} ${'lost' in failure ? failure.lost : failure.refused}`),
      onRefused: (_address, reason) => record(events, `refused ${reason}`),
      onBug: (_verb, error) => record(bugs, error),
    },
  });
  const port = await links.listen({ host: HOST, port: options.port ?? 0 });
  t.teardown(() => links.close());
  return {
    ...{ node, links, address: { host: HOST, port }, clock, rows, positions, events, bugs, until },
    next(event) {
      const seen = events.length;
      return until(() => events.includes(event, seen));
    },
    pass(durationMs) {
      const untilMs = clock.nowMs + durationMs;
      while (clock.fireNext(untilMs));
      clock.nowMs = untilMs;
    },
  };
}

/** Opens links between all of them, in both directions. */
export async function join(...nodes: readonly TestNode[]): Promise<void> {
  for (const { node, links } of nodes) {
    const others = nodes.filter((each) => each.node !== node);
    links.follow(new Map(others.map(({ node: number, address }) => [number, address])));
  }
  const isLinked = ({ links }: TestNode) =>
    links.linked.outgoing.length === nodes.length - 1 && links.linked.incoming.length === nodes.length - 1;
  await Promise.all(nodes.map((each) => each.until(() => isLinked(each))));
}
