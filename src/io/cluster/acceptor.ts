/** Links that other nodes open to this one: the listener, its bounds, and one link of each node. */

import type { AddressInfo, Server, Socket } from 'node:net';
import { CallerNetworks } from '../../actors/limits/limiter-keys.ts';
import type { HostPort } from '../../domain/host-port.ts';
import type { Identity, RefusalReason } from './handshake.ts';
import { accept, type Failure, type HandshakeDeps } from './handshaking.ts';
import { type CloseReason, Link } from './link.ts';
import { canonical, createListener, isExposed, type Transport } from './transport.ts';

/** Connections whose handshake is not over, in all and of one network (an IPv4 address, a /64). */
const HANDSHAKES_MAX = 128;
const HANDSHAKES_PER_NETWORK_MAX = 32;

/** The reason why a connection became no link. `full`: too many handshakes. `plain`: TLS is missing. */
export type RefusedConnection = RefusalReason | CloseReason | 'full' | 'plain';

interface AcceptorOptions extends HandshakeDeps {
  readonly transport: Transport;
  /** The handshake of a link is over; what takes its frames. */
  readonly onLink: (link: Link, peer: Identity) => (frame: unknown) => void;
  readonly onRefused: (address: string, reason: RefusedConnection) => void;
}

export class Acceptor {
  readonly #options: AcceptorOptions;
  readonly #server: Server;
  readonly #networks = new CallerNetworks();
  /** Handshakes under way by network. */
  readonly #handshakes = new Map<string, number>();
  #handshakesInAll = 0;
  /** Calls for the end of each connection's handshake, by its ports. */
  readonly #releases = new Map<string, () => void>();
  readonly #sockets = new Set<Socket>();
  readonly #links = new Map<number, { readonly link: Link; readonly incarnation: number }>();

  constructor(options: AcceptorOptions) {
    this.#options = options;
    this.#server = createListener(
      options.transport,
      (socket) => this.#admit(socket),
      (socket) => this.#shake(socket),
    );
  }

  /** Nodes that have a link to this one. */
  get nodes(): readonly number[] {
    return [...this.#links.keys()];
  }

  has(node: number): boolean {
    return this.#links.has(node);
  }

  /** Resolves with the port. Rejects with the error of the system. */
  listen({ host, port }: HostPort): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', reject);
        // Errors of a connection that ended before it was accepted, or of no free descriptor, change nothing: the
        // listener stays.
        this.#server.on('error', () => undefined);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Ends the links too. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const { link } of this.#links.values()) link.close('stopped');
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #admit(socket: Socket): void {
    this.#sockets.add(socket);
    const { transport, onRefused } = this.#options;
    const address = addressOf(socket);
    const network = this.#networks.narrowestOf(address);
    const held = this.#handshakes.get(network) ?? 0;
    const isFull = this.#handshakesInAll >= HANDSHAKES_MAX || held >= HANDSHAKES_PER_NETWORK_MAX;
    const refused = isFull ? 'full' : isExposed(transport, address) ? 'plain' : undefined;
    // Before an end of the connection can be an error that no listener takes.
    socket.on('error', () => undefined);
    socket.once('close', () => this.#sockets.delete(socket));
    if (refused !== undefined) {
      socket.destroy();
      onRefused(address, refused);
      return;
    }
    this.#count(network, 1);
    const key = keyOf(socket);
    const release = () => {
      if (this.#releases.get(key) !== release) return;
      this.#releases.delete(key);
      this.#count(network, -1);
    };
    this.#releases.set(key, release);
    socket.once('close', release);
  }

  #count(network: string, change: 1 | -1): void {
    this.#handshakesInAll += change;
    const held = (this.#handshakes.get(network) ?? 0) + change;
    if (held === 0) this.#handshakes.delete(network);
    else this.#handshakes.set(network, held);
  }

  #shake(socket: Socket): void {
    const { schedule, onLink, onRefused } = this.#options;
    const address = addressOf(socket);
    const release = this.#releases.get(keyOf(socket));
    const link = new Link({ socket, schedule, answers: true });
    const admit = ({ node, incarnation }: Identity): RefusalReason | undefined =>
      incarnation < (this.#links.get(node)?.incarnation ?? 0) ? 'incarnation' : undefined;
    const onOpen = (peer: Identity) => {
      release?.();
      this.#links.get(peer.node)?.link.close('replaced');
      const entry = { link, incarnation: peer.incarnation };
      this.#links.set(peer.node, entry);
      link.onClose(() => {
        if (this.#links.get(peer.node) === entry) this.#links.delete(peer.node);
      });
      link.open(onLink(link, peer));
    };
    accept(link, socket, this.#options, admit, onOpen, (failure) => onRefused(address, reasonOf(failure)));
  }
}

function reasonOf(failure: Failure): RefusedConnection {
  return 'lost' in failure ? failure.lost : failure.refused;
}

function addressOf({ remoteAddress }: Socket): string {
  return canonical(remoteAddress ?? '');
}

/** The same for a connection and the TLS session over it. */
function keyOf({ remoteAddress, remotePort, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localPort}`;
}
