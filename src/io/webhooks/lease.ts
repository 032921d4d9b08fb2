/**
 * The right of a node to deliver: its lease, and the ownership of an application. An attempt ends with it, because another
 * node may make the next one from then on. One machine has that right for ever.
 */
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import { GatewayError } from '../../domain/errors.ts';
import { SECOND_MS } from '../../domain/time.ts';

export interface DeliveryLease {
  /** Milliseconds for which this node may deliver, counted from now; 0 when it may not. */
  readonly leftMs: number;
}

export const ENDLESS: DeliveryLease = { leftMs: Number.POSITIVE_INFINITY };

/** Milliseconds until a node repeats what it could not do without a lease, which may be back at any time. */
export const NO_LEASE_MS = SECOND_MS;
/** Longest time between two checks of a lease. */
const CHECK_INTERVAL_MS = SECOND_MS;

/** The state of the delivery stays as it was: the owner that is known then repeats it with the same id and bytes. */
export class LeaseOver extends GatewayError {
  constructor() {
    super('Overloaded', undefined, 1);
    this.name = 'LeaseOver';
  }
}

export interface LeasedAttempt {
  /** Aborted when the right has ended. */
  readonly signal: AbortSignal;
  /** Asked again when the request is about to be written: a process that was paused finds out then. */
  readonly mayBegin: () => boolean;
  /** It is over; to be called once. */
  end(): void;
}

export class LeasedAttempts {
  readonly #lease: DeliveryLease;
  readonly #owns: (appId: string) => boolean;
  readonly #timer: Schedule['timer'];
  readonly #underWay = new Map<AbortController, string>();
  #cancelCheck: (() => void) | undefined;
  /** Attempts that ended with the right. */
  ended = 0;

  constructor(lease: DeliveryLease, owns: (appId: string) => boolean, { timer }: Pick<Schedule, 'timer'>) {
    this.#lease = lease;
    this.#owns = owns;
    this.#timer = timer;
  }

  get runs(): boolean {
    return this.#lease.leftMs > 0;
  }

  /** Throws `LeaseOver` when this node may not deliver to the application. */
  begin(appId: string): LeasedAttempt {
    if (!this.#holds(appId)) throw new LeaseOver();
    const over = new AbortController();
    this.#underWay.set(over, appId);
    this.#watch();
    const mayBegin = () => {
      if (!this.#holds(appId)) this.#end(over);
      return !over.signal.aborted;
    };
    return { signal: over.signal, mayBegin, end: () => this.#underWay.delete(over) };
  }

  /** Ends what this node has no right to any more. */
  look(): void {
    for (const [over, appId] of this.#underWay) if (!this.#holds(appId)) this.#end(over);
  }

  stop(): void {
    this.#cancelCheck?.();
  }

  #end(over: AbortController): void {
    if (this.#underWay.delete(over)) this.ended += 1;
    over.abort();
  }

  #holds(appId: string): boolean {
    return this.runs && this.#owns(appId);
  }

  #watch(): void {
    if (this.#cancelCheck !== undefined || this.#lease === ENDLESS || this.#underWay.size === 0) return;
    this.#cancelCheck = this.#timer(Math.min(this.#lease.leftMs, CHECK_INTERVAL_MS), () => {
      this.#cancelCheck = undefined;
      this.look();
      this.#watch();
    });
  }
}
