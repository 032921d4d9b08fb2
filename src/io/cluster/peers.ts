/**
 * All links of this node: one that it opens to every other node, for rows, positions and its calls, and one that every
 * other node opens to it.
 */

import { ownerUnavailable, type RemoteReply } from '../../actors/routed-system.ts';
import type { LogRow, PeerListener, Peers } from '../../actors/runtime/replication/port.ts';
import type { HostPort } from '../../domain/host-port.ts';
import { Acceptor, type RefusedConnection } from './acceptor.ts';
import { Dialer, type DialFailure } from './dialer.ts';
import { BadFrame, packFrame } from './frames.ts';
import type { Identity } from './handshake.ts';
import type { HandshakeDeps } from './handshaking.ts';
import type { CloseReason, Link } from './link.ts';
import { Answerer, CALL, type CallCounts, Calls, type Verbs } from './rpc.ts';
import type { Transport } from './transport.ts';

/** First element of frames that are no call. */
const ROW = 10;
const APPLIED = 11;

/** Called at every change of a link. */
export interface LinkObserver {
  /** `outgoing`: this node opened it. */
  onOpened(peer: Identity, outgoing: boolean): void;
  onClosed(node: number, outgoing: boolean, reason: CloseReason): void;
  /** A node could not be reached; it is tried again. */
  onFailed(node: number, failure: DialFailure): void;
  /** A connection to this node became no link. */
  onRefused(address: string, reason: RefusedConnection): void;
  /** A call of another node failed with something that is no row of the error table. */
  onBug(verb: string, error: unknown): void;
}

interface PeerLinksOptions extends HandshakeDeps {
  readonly transport: Transport;
  /** 0 to 1. */
  readonly random: () => number;
  readonly listener: PeerListener;
  readonly verbs: Verbs;
  /** Position of the log that this node has applied. */
  readonly position: () => number;
  readonly observer: LinkObserver;
}

/** Figures for metrics and tests. */
interface PeerCounts {
  readonly calls: Readonly<CallCounts> & {
    /** There was no link to the node: nothing was sent. */
    readonly unreachable: number;
  };
  /** Rows that were not sent to a node because its link was full: it fetches them from the log. */
  readonly rowsDropped: number;
  /** Connections to this node that became no link, by reason. */
  readonly refused: Readonly<Partial<Record<RefusedConnection, number>>>;
}

interface Outgoing {
  readonly dialer: Dialer;
  calls: Calls | undefined;
}

export class PeerLinks implements Peers {
  readonly #options: PeerLinksOptions;
  readonly #acceptor: Acceptor;
  readonly #outgoing = new Map<number, Outgoing>();
  readonly #calls: CallCounts = { answered: 0, timedOut: 0, lost: 0, full: 0 };
  #unreachable = 0;
  #rowsDropped = 0;
  readonly #refused: Partial<Record<RefusedConnection, number>> = {};
  #applied = 0;
  /** Asked at each link that opens. */
  readonly #waiting = new Set<() => void>();

  constructor(options: PeerLinksOptions) {
    this.#options = options;
    this.#acceptor = new Acceptor({
      ...options,
      onLink: (link, peer) => this.#accepted(link, peer),
      onRefused: (address, reason) => {
        this.#refused[reason] = (this.#refused[reason] ?? 0) + 1;
        options.observer.onRefused(address, reason);
      },
    });
  }

  get counts(): PeerCounts {
    return {
      calls: { ...this.#calls, unreachable: this.#unreachable },
      rowsDropped: this.#rowsDropped,
      refused: { ...this.#refused },
    };
  }

  /** Nodes with a link in each direction. */
  get linked(): { readonly outgoing: readonly number[]; readonly incoming: readonly number[] } {
    const outgoing = [...this.#outgoing].flatMap(([node, { dialer }]) =>
      dialer.link === undefined ? [] : [node],
    );
    return { outgoing, incoming: this.#acceptor.nodes };
  }

  isFedBy(node: number): boolean {
    return this.#acceptor.has(node);
  }

  /** Resolves when there are links to and from all of these nodes, at the latest after `longestMs`. */
  linkedWith(nodes: Iterable<number>, longestMs: number): Promise<void> {
    const wanted = [...nodes];
    const isLinked = (node: number) =>
      this.isFedBy(node) && this.#outgoing.get(node)?.dialer.link !== undefined;
    return new Promise((resolve) => {
      const end = () => {
        this.#waiting.delete(check);
        cancel();
        resolve();
      };
      const check = () => (wanted.every(isLinked) ? end() : undefined);
      const cancel = this.#options.schedule.timer(longestMs, end);
      this.#waiting.add(check);
      check();
    });
  }

  /** Resolves with the port; for 0 the system picks one. Rejects with the error of the system. */
  listen(address: HostPort): Promise<number> {
    return this.#acceptor.listen(address);
  }

  /** The other nodes and where they are: links to new ones are opened, to others closed. */
  follow(nodes: ReadonlyMap<number, HostPort>): void {
    for (const [node, { dialer }] of this.#outgoing) {
      const address = nodes.get(node);
      const { host, port } = dialer.address;
      if (address?.host === host && address.port === port) continue;
      this.#outgoing.delete(node);
      dialer.stop('stopped');
    }
    for (const [node, address] of nodes) if (!this.#outgoing.has(node)) this.#dial(node, address);
  }

  push({ position, node, incarnation, nodeSeq, body }: LogRow): void {
    let frame: Buffer;
    try {
      frame = packFrame([ROW, position, node, incarnation, nodeSeq, body]);
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error;
      this.#rowsDropped += this.#outgoing.size;
      return;
    }
    for (const { dialer } of this.#outgoing.values())
      if (dialer.link?.sendPacked(frame) === false) this.#rowsDropped += 1;
  }

  applied(position: number): void {
    this.#applied = position;
    for (const { dialer } of this.#outgoing.values()) dialer.link?.sendLatest([APPLIED, position]);
  }

  /** Calls a verb of a node. Rejects at once without a link to it, and with the loss of the link. */
  readonly call = (node: number, verb: string, ...args: readonly unknown[]): Promise<RemoteReply> => {
    const calls = this.#outgoing.get(node)?.calls;
    if (calls !== undefined) return calls.call(verb, ...args);
    this.#unreachable += 1;
    return Promise.reject(ownerUnavailable());
  };

  /** Calls a verb of every node that there is a link to. Resolves when each has answered or will not; never rejects. */
  readonly callAll = (
    verb: string,
    ...args: readonly unknown[]
  ): Promise<PromiseSettledResult<RemoteReply | undefined>[]> =>
    Promise.allSettled([...this.#outgoing.values()].map(({ calls }) => calls?.call(verb, ...args)));

  async close(): Promise<void> {
    for (const { dialer } of this.#outgoing.values()) dialer.stop('stopped');
    this.#outgoing.clear();
    await this.#acceptor.close();
  }

  #changed(): void {
    for (const check of [...this.#waiting]) check();
  }

  #dial(node: number, address: HostPort): void {
    const { observer } = this.#options;
    const dialer = new Dialer({
      ...this.#options,
      node,
      address,
      onLink: (link, peer) => this.#dialed(entry, link, peer),
      onFailed: (failure) => observer.onFailed(node, failure),
    });
    const entry: Outgoing = { dialer, calls: undefined };
    this.#outgoing.set(node, entry);
  }

  #dialed(entry: Outgoing, link: Link, peer: Identity): (frame: unknown) => void {
    const { schedule, observer } = this.#options;
    const calls = new Calls(link, schedule, this.#calls);
    entry.calls = calls;
    link.onClose((reason) => {
      entry.calls = undefined;
      observer.onClosed(peer.node, true, reason);
    });
    // The position that was sent on an earlier link may be lost.
    if (this.#applied > 0) link.sendLatest([APPLIED, this.#applied]);
    observer.onOpened(peer, true);
    this.#changed();
    return (frame) => calls.take(frame);
  }

  #accepted(link: Link, peer: Identity): (frame: unknown) => void {
    const { verbs, position, listener, observer } = this.#options;
    const answerer = new Answerer({ link, verbs, position, onBug: observer.onBug });
    link.onClose((reason) => observer.onClosed(peer.node, false, reason));
    observer.onOpened(peer, false);
    this.#outgoing.get(peer.node)?.dialer.dialNow();
    this.#changed();
    return (frame) => {
      if (!Array.isArray(frame)) throw new BadFrame('no frame of a link');
      const [type] = frame as unknown[];
      if (type === CALL) answerer.take(frame);
      else if (type === ROW) listener.onPush(rowOf(frame));
      else if (type === APPLIED) listener.onApplied(peer.node, numberAt(frame, 1));
      else throw new BadFrame('no frame of a link');
    };
  }
}

function rowOf(frame: readonly unknown[]): LogRow {
  const body = frame[5];
  if (!(body instanceof Uint8Array)) throw new BadFrame('no row of the log');
  return {
    position: numberAt(frame, 1),
    node: numberAt(frame, 2),
    incarnation: numberAt(frame, 3),
    nodeSeq: numberAt(frame, 4),
    body,
  };
}

function numberAt(frame: readonly unknown[], index: number): number {
  const value = frame[index];
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new BadFrame('no number of a row');
  return value as number;
}
