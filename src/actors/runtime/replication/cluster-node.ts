/** A node of a cluster, put together: its copy of the state, its place in the log, and its journal. */
import type { ClusterView, NewestIds } from '../cluster-view.ts';
import type { Journal } from '../journal/port.ts';
import { encodeMember } from './entry.ts';
import { LogNode } from './node.ts';
import type { LogNodeOptions } from './node-options.ts';
import { Replica, type ReplicaOptions } from './replica.ts';
import { ReplicaJournal } from './replica-journal.ts';

/** Hears how long parts of a write took. Milliseconds. */
interface NodeObserver {
  /** From the order to append a row until it is in the log. */
  appended(durationMs: number): void;
  /** Time that an answer was held back until it was in effect on every node. */
  gateOpened(durationMs: number): void;
}

interface ClusterNodeOptions extends Omit<LogNodeOptions, 'sink' | 'logId' | 'encodeMember'> {
  /** Store of this node, to which rows are applied. */
  readonly store: Journal;
  readonly sampleRows?: number | undefined;
  /** Planted faults of the simulation: the verdict that is used instead. */
  readonly judge?: ReplicaOptions['judge'];
  readonly eventWrites?: ReplicaOptions['eventWrites'];
  readonly onBug: ReplicaOptions['onBug'];
  readonly observer?: NodeObserver;
}

export interface ClusterNode {
  readonly node: LogNode;
  readonly replica: Replica;
  /** Journal for `createActorSystem`, after `node.start()`. */
  readonly journal: ReplicaJournal;
  readonly view: ClusterView;
}

export function createClusterNode(options: ClusterNodeOptions): ClusterNode {
  const { store, observer, monotonicMs } = options;
  const replica: Replica = new Replica({
    ...options,
    isOwn: (row) => node.isOwn(row),
    logId: options.log.logId,
  });
  const { logId } = replica;
  const node: LogNode = new LogNode({
    ...options,
    sink: replica,
    encodeMember,
    ...(logId === undefined ? {} : { logId }),
  });
  const newestIds: NewestIds = {
    get applied() {
      return replica.newestId;
    },
    given: 0n,
  };
  const view: ClusterView = {
    newestIds,
    owns: (kind, id) => replica.members.ownerOf(kind, id) === node.node,
    get isMember() {
      return replica.members.member(node.node) !== undefined;
    },
    get admits() {
      return node.admits;
    },
    get position() {
      return replica.position;
    },
    reached(position, run) {
      const beganMs = monotonicMs();
      node.reached(position, () => {
        observer?.gateOpened(monotonicMs() - beganMs);
        run();
      });
    },
    isReached: (position) => node.isReached(position),
    follow: (listener) => replica.follow(listener),
  };
  const writer = {
    nextSeq: () => node.nextSeq(),
    async append(nodeSeq: number, body: Uint8Array) {
      const beganMs = monotonicMs();
      const position = await node.append(nodeSeq, body);
      observer?.appended(monotonicMs() - beganMs);
      return position;
    },
  };
  return { node, replica, journal: new ReplicaJournal(store, replica, writer, () => newestIds.given), view };
}
