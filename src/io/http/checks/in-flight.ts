/** Unanswered requests and the bytes of their bodies: two shared bounds, and the drain at a stop. */
import type { Holder } from '../../../domain/limits/holders.ts';
import type { SharedBounds } from '../../../domain/limits/shared-bounds.ts';
import type { Lease, SharedBound } from '../../../domain/limits/shares.ts';

export interface InFlightCounters {
  readonly requestsInFlight: number;
  readonly bodyBytesInFlight: number;
  /** Refusals of each bound, at its maximum or at a share of it. */
  readonly overloadedRequestsTotal: number;
  readonly overloadedBodiesTotal: number;
}

/** The part of both bounds that one request holds. */
export interface InFlightRequest {
  holder: Holder;
  requestLease: Lease | undefined;
  bodyLease: Lease | undefined;
}

export class InFlight {
  readonly #requests: SharedBound;
  readonly #bodies: SharedBound;
  /** Requests of this pipeline. */
  #open = 0;
  #onEmpty: (() => void) | undefined;

  constructor(bounds: SharedBounds) {
    this.#requests = bounds.of('requests');
    this.#bodies = bounds.of('bodyBytes');
  }

  /** Adds a request. Throws the error of the bound. */
  add(request: InFlightRequest): void {
    request.requestLease = this.#requests.require(request.holder);
    this.#open += 1;
  }

  /** Moves what the request holds to the caller that is now known. Throws the error of the bound. */
  identify(request: InFlightRequest, holder: Holder): void {
    const refusal = request.requestLease?.identify(holder);
    if (refusal !== undefined) throw this.#requests.error(refusal);
    request.holder = holder;
  }

  /** Counts bytes before they are kept. Throws the error of the bound. */
  addBytes(request: InFlightRequest, sizeBytes: number): void {
    if (request.bodyLease === undefined) {
      request.bodyLease = this.#bodies.require(request.holder, sizeBytes);
      return;
    }
    const refusal = request.bodyLease.add(sizeBytes);
    if (refusal !== undefined) throw this.#bodies.error(refusal);
  }

  /** Removes a finished request and its bytes. */
  remove(request: InFlightRequest): void {
    if (request.requestLease === undefined) return;
    request.requestLease.release();
    request.bodyLease?.release();
    request.requestLease = undefined;
    request.bodyLease = undefined;
    this.#open -= 1;
    if (this.#open === 0) this.#onEmpty?.();
  }

  /** Resolves when none is left or at the deadline, with the number that is left. */
  async drained(timeoutMs: number): Promise<number> {
    if (this.#open === 0) return 0;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
    this.#onEmpty = undefined;
    return this.#open;
  }

  counters(): InFlightCounters {
    const requests = this.#requests.counters();
    const bodies = this.#bodies.counters();
    return {
      requestsInFlight: this.#open,
      bodyBytesInFlight: bodies.held,
      overloadedRequestsTotal: sum(requests.refused),
      overloadedBodiesTotal: sum(bodies.refused),
    };
  }
}

function sum(refused: Readonly<Record<string, number>>): number {
  return Object.values(refused).reduce((total, count) => total + count, 0);
}
