/**
 * Time for which this node may admit requests after a renewal: 0.8 of the lease, counted from before the renewal was
 * sent, by the clock that moved more. A suspended machine stops the monotonic one; a step of the wall clock, forward or
 * back, ends it.
 */
import { invariant } from '../../../domain/errors.ts';
import type { Schedule } from '../runtime-context.ts';

/** Renewals are sent so often in a lease. */
const RENEWALS_PER_LEASE = 5;
/** Share of the lease within which a node admits; the rest is the margin against clocks of different speed. */
export const ADMITTED_SHARE = 0.8;

interface LeaseClocks {
  /** Milliseconds of the wall clock, which may step. */
  readonly clock: () => number;
  /** Milliseconds of a clock that never steps, and stops while the machine is suspended. */
  readonly monotonicMs: () => number;
}

/** A moment by both clocks. */
export interface LeaseMoment {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

interface RenewalOptions {
  readonly schedule: Schedule;
  readonly leaseMs: number;
}

/** One renewal after the other, each as soon as it is due and the one before it is answered. */
export class Renewals {
  readonly #options: RenewalOptions;
  readonly #renew: () => Promise<void>;
  readonly #onFatal: (error: unknown) => void;
  #isUnderWay = false;
  #isStopped = false;
  #cancel: (() => void) | undefined;

  constructor(options: RenewalOptions, renew: () => Promise<void>, onFatal: (error: unknown) => void) {
    this.#options = options;
    this.#renew = renew;
    this.#onFatal = onFatal;
  }

  start(): void {
    if (this.#isStopped) return;
    const { schedule, leaseMs } = this.#options;
    this.#cancel = schedule.timer(leaseMs / RENEWALS_PER_LEASE, () => this.start());
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    this.#renew().then(() => {
      this.#isUnderWay = false;
    }, this.#onFatal);
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
  }
}

export class NodeLease {
  readonly #clocks: LeaseClocks;
  readonly #admittedMs: number;
  #sent: LeaseMoment | undefined;

  constructor(clocks: LeaseClocks, leaseMs: number) {
    this.#clocks = clocks;
    this.#admittedMs = leaseMs * ADMITTED_SHARE;
  }

  /** Must be taken before a renewal is sent. */
  now(): LeaseMoment {
    return { wallMs: this.#clocks.clock(), monotonicMs: this.#clocks.monotonicMs() };
  }

  /** The renewal that was sent at that moment has succeeded. */
  renewed(sent: LeaseMoment): void {
    const before = this.#sent?.monotonicMs ?? sent.monotonicMs;
    invariant(sent.monotonicMs >= before, 'renewals count in the order in which they were sent');
    this.#sent = sent;
  }

  end(): void {
    this.#sent = undefined;
  }

  get runs(): boolean {
    return this.leftMs > 0;
  }

  /** Milliseconds for which this node may still admit; 0 when that is over. */
  get leftMs(): number {
    const sent = this.#sent;
    if (sent === undefined) return 0;
    const { clock, monotonicMs } = this.#clocks;
    const passedMs = Math.max(monotonicMs() - sent.monotonicMs, Math.abs(clock() - sent.wallMs));
    return Math.max(0, this.#admittedMs - passedMs);
  }
}
