/**
 * Slow work between turns (`next`). Owns the number of calls of an actor in flight; more are queued in order. A call
 * resolves with the next command of the chain.
 */

import type { AnyOutcome } from './actor.ts';
import type { Cell, Chain } from './cell.ts';
import type { Ports } from './ports.ts';
import type { Typed } from './protocol.ts';

type Next = NonNullable<AnyOutcome['next']>;

interface PortCallRunnerOptions {
  readonly ports: Ports;
  readonly callsPerActorMax: number;
  readonly ended: (cell: Cell, chain: Chain, command: Typed) => void;
  /** Ports never reject: a rejection is a bug. */
  readonly failed: (cell: Cell, chain: Chain, error: unknown) => void;
}

export class PortCallRunner {
  readonly #options: PortCallRunnerOptions;

  constructor(options: PortCallRunnerOptions) {
    this.#options = options;
  }

  /** A call that the turn has counted in `cell.calls`. */
  start(cell: Cell, chain: Chain, next: Next): void {
    if (cell.running < this.#options.callsPerActorMax) this.#run(cell, chain, next);
    else {
      cell.queuedCalls ??= [];
      cell.queuedCalls.push(() => this.#run(cell, chain, next));
    }
  }

  #run(cell: Cell, chain: Chain, next: Next): void {
    cell.running += 1;
    const { ports } = this.#options;
    const observer = cell.waiting?.get(chain.commandId)?.observer;
    let promise: Promise<Typed>;
    try {
      promise = next(observer === undefined ? ports : observer.portsOf(ports));
    } catch (error) {
      promise = Promise.reject(error);
    }
    promise.then(
      (command) => {
        this.#leave(cell);
        this.#options.ended(cell, chain, command);
      },
      (error: unknown) => {
        this.#leave(cell);
        this.#options.failed(cell, chain, error);
      },
    );
  }

  #leave(cell: Cell): void {
    cell.calls -= 1;
    cell.running -= 1;
    cell.queuedCalls?.shift()?.();
  }
}
