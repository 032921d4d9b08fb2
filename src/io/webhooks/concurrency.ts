/**
 * Bounds concurrent deliveries, in total and per host, and assigns slots round-robin over the hosts. Failing receivers
 * have a quota of their own: many dead receivers delay no healthy one, and a minimum keeps them from starving.
 */

export interface ConcurrencyLimits {
  readonly inFlightMax: number;
  readonly perHostMax: number;
  /** Slots that failing receivers may hold at most, and slots reserved for them. */
  readonly failingMax: number;
  readonly failingMin: number;
}

/** One dead host holds at most 8 of 128 slots, all failing ones together half of them. */
export const CONCURRENCY_LIMITS: ConcurrencyLimits = {
  inFlightMax: 128,
  perHostMax: 8,
  failingMax: 64,
  failingMin: 8,
};

type Health = 'healthy' | 'failing';

interface Host {
  readonly name: string;
  inFlight: number;
  readonly waiting: Record<Health, string[]>;
}

export class HostConcurrency {
  readonly #limits: ConcurrencyLimits;
  /** Starts a delivery, which calls `release` at its end. */
  readonly #begin: (appId: string, release: () => void) => void;
  readonly #hosts = new Map<string, Host>();
  /** Hosts with a waiting application and a free slot, in round-robin order. */
  readonly #rotation: Record<Health, Set<Host>> = { healthy: new Set(), failing: new Set() };
  readonly #inFlight: Record<Health, number> = { healthy: 0, failing: 0 };
  #pumping = false;

  constructor(limits: ConcurrencyLimits, begin: (appId: string, release: () => void) => void) {
    this.#limits = limits;
    this.#begin = begin;
  }

  get inFlight(): number {
    return this.#inFlight.healthy + this.#inFlight.failing;
  }

  get waiting(): number {
    let sum = 0;
    for (const { waiting } of this.#hosts.values()) sum += waiting.healthy.length + waiting.failing.length;
    return sum;
  }

  /** Queues the application for a slot. The caller must not queue it twice. */
  add(appId: string, hostName: string, failing: boolean): void {
    const health: Health = failing ? 'failing' : 'healthy';
    let host = this.#hosts.get(hostName);
    if (host === undefined) {
      host = { name: hostName, inFlight: 0, waiting: { healthy: [], failing: [] } };
      this.#hosts.set(hostName, host);
    }
    host.waiting[health].push(appId);
    this.#enqueue(host);
    this.#pump();
  }

  #enqueue(host: Host): void {
    if (host.inFlight >= this.#limits.perHostMax) return;
    if (host.waiting.healthy.length > 0) this.#rotation.healthy.add(host);
    if (host.waiting.failing.length > 0) this.#rotation.failing.add(host);
  }

  #pump(): void {
    if (this.#pumping) return;
    this.#pumping = true;
    for (let health = this.#next(); health !== undefined; health = this.#next()) this.#start(health);
    this.#pumping = false;
  }

  #next(): Health | undefined {
    const { inFlightMax, failingMax, failingMin } = this.#limits;
    const { healthy, failing } = this.#inFlight;
    if (healthy + failing >= inFlightMax) return undefined;
    const failingWaits = this.#rotation.failing.size > 0 && failing < failingMax;
    if (failingWaits && failing < failingMin) return 'failing';
    const kept = failingMin - Math.min(failing, failingMin);
    if (this.#rotation.healthy.size > 0 && healthy + failing + kept < inFlightMax) return 'healthy';
    return failingWaits ? 'failing' : undefined;
  }

  #start(health: Health): void {
    const [host] = this.#rotation[health];
    if (host === undefined) return;
    // Moves the host to the end of the rotation.
    this.#rotation[health].delete(host);
    const appId = host.waiting[health].shift();
    if (appId === undefined) return;
    host.inFlight += 1;
    this.#inFlight[health] += 1;
    if (host.inFlight >= this.#limits.perHostMax) {
      this.#rotation.healthy.delete(host);
      this.#rotation.failing.delete(host);
    } else this.#enqueue(host);
    let held = true;
    this.#begin(appId, () => {
      if (!held) return;
      held = false;
      this.#release(host, health);
    });
  }

  #release(host: Host, health: Health): void {
    host.inFlight -= 1;
    this.#inFlight[health] -= 1;
    const { healthy, failing } = host.waiting;
    if (host.inFlight === 0 && healthy.length + failing.length === 0) this.#hosts.delete(host.name);
    else this.#enqueue(host);
    this.#pump();
  }
}
