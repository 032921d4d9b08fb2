/** The link that this node opens to another one: dialed again with growing delays until it is stopped. */

import type { HostPort } from '../../domain/host-port.ts';
import type { Identity } from './handshake.ts';
import type { Failure, HandshakeDeps } from './handshaking.ts';
import { dial, HANDSHAKE_MS } from './handshaking.ts';
import { type CloseReason, Link } from './link.ts';
import { isExposed, openSocket, type Transport } from './transport.ts';

/** Delays between attempts: the first, doubled each time, and the longest. A random half of each is left out. */
const DELAY_MS_MIN = 100;
const DELAY_MS_MAX = 2_000;

/** `unreachable`: no connection. `plain`: TLS is missing. */
export type DialFailure = Failure | { readonly lost: 'unreachable' | 'plain' };

interface DialerOptions extends HandshakeDeps {
  readonly node: number;
  readonly address: HostPort;
  readonly transport: Transport;
  /** 0 to 1. */
  readonly random: () => number;
  /** The handshake is over; what takes the frames of the link. */
  readonly onLink: (link: Link, peer: Identity) => (frame: unknown) => void;
  readonly onFailed: (failure: DialFailure) => void;
}

export class Dialer {
  readonly #options: DialerOptions;
  #link: Link | undefined;
  #open: Link | undefined;
  /** Attempts in a row without a link. */
  #failures = 0;
  #cancelRetry: (() => void) | undefined;
  #isStopped = false;

  constructor(options: DialerOptions) {
    this.#options = options;
    this.#dial();
  }

  get address(): HostPort {
    return this.#options.address;
  }

  /** Undefined while there is none. */
  get link(): Link | undefined {
    return this.#open;
  }

  /** The node was just seen: a delay before the next attempt ends. */
  dialNow(): void {
    if (this.#cancelRetry === undefined || this.#isStopped) return;
    this.#cancelRetry();
    this.#dial();
  }

  stop(reason: CloseReason): void {
    this.#isStopped = true;
    this.#cancelRetry?.();
    this.#link?.close(reason);
  }

  #dial(): void {
    this.#cancelRetry = undefined;
    const { address, transport } = this.#options;
    if (isExposed(transport, address.host)) {
      this.#failed({ lost: 'plain' });
      return;
    }
    const { schedule, node } = this.#options;
    let isReady = false;
    const socket = openSocket(transport, address, () => {
      isReady = true;
      cancel();
      dial(
        link,
        socket,
        this.#options,
        node,
        (peer) => this.#opened(link, peer),
        (failure) => this.#failed(failure),
      );
    });
    const link = new Link({ socket, schedule, answers: false });
    this.#link = link;
    const cancel = schedule.timer(HANDSHAKE_MS, () => link.close('late'));
    link.onClose(() => {
      cancel();
      if (!isReady) this.#failed({ lost: 'unreachable' });
    });
  }

  #opened(link: Link, peer: Identity): void {
    this.#failures = 0;
    this.#open = link;
    link.onClose(() => {
      this.#open = undefined;
      this.#retryLater();
    });
    link.open(this.#options.onLink(link, peer));
  }

  #failed(failure: DialFailure): void {
    if (this.#isStopped) return;
    this.#options.onFailed(failure);
    this.#failures += 1;
    this.#retryLater();
  }

  #retryLater(): void {
    if (this.#isStopped) return;
    const { schedule, random } = this.#options;
    const longest = Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** Math.min(this.#failures, 10));
    this.#cancelRetry = schedule.timer(longest * (1 - random() / 2), () => this.#dial());
  }
}
