/** Requests that are not answered yet and the bytes of their bodies, over all connections: two bounds, both counted. */
import { GatewayError } from '../../domain/errors.ts';

/** architecture.md "Supervision and back-pressure". */
export const REQUESTS_MAX = 20_000;
export const BODIES_BYTES_MAX = 64 * 1024 * 1024;

export interface InFlightBounds {
  /** `REQUESTS_MAX` unless given. */
  readonly requestsMax?: number;
  /** `BODIES_BYTES_MAX` unless given. */
  readonly bodiesBytesMax?: number;
}

export interface InFlightCounters {
  readonly requestsInFlight: number;
  readonly bodyBytesInFlight: number;
  /** Refusals of each bound. */
  readonly overloadedRequestsTotal: number;
  readonly overloadedBodiesTotal: number;
}

export class InFlight {
  readonly #requestsMax: number;
  readonly #bodiesBytesMax: number;
  #requests = 0;
  #bodyBytes = 0;
  #overloadedRequests = 0;
  #overloadedBodies = 0;
  #onEmpty: (() => void) | undefined;

  constructor(bounds: InFlightBounds) {
    this.#requestsMax = bounds.requestsMax ?? REQUESTS_MAX;
    this.#bodiesBytesMax = bounds.bodiesBytesMax ?? BODIES_BYTES_MAX;
  }

  /** One request more. Throws `Overloaded`. */
  enter(): void {
    if (this.#requests >= this.#requestsMax) {
      this.#overloadedRequests += 1;
      throw new GatewayError('Overloaded');
    }
    this.#requests += 1;
  }

  /** Bytes that arrived and will be kept. Throws `Overloaded`. */
  takeBytes(sizeBytes: number): void {
    if (this.#bodyBytes + sizeBytes > this.#bodiesBytesMax) {
      this.#overloadedBodies += 1;
      throw new GatewayError('Overloaded');
    }
    this.#bodyBytes += sizeBytes;
  }

  /** Kept bytes were handed on before their request is over. */
  releaseBytes(sizeBytes: number): void {
    this.#bodyBytes -= sizeBytes;
  }

  /** A request that entered is over, and its bytes with it. */
  leave(sizeBytes: number): void {
    this.#requests -= 1;
    this.#bodyBytes -= sizeBytes;
    if (this.#requests === 0) this.#onEmpty?.();
  }

  /** Resolves when none is left, or at the deadline; with the number that is left. */
  async empty(timeoutMs: number): Promise<number> {
    if (this.#requests === 0) return 0;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
      timer = setTimeout(resolve, timeoutMs);
    });
    clearTimeout(timer);
    this.#onEmpty = undefined;
    return this.#requests;
  }

  counters(): InFlightCounters {
    return {
      requestsInFlight: this.#requests,
      bodyBytesInFlight: this.#bodyBytes,
      overloadedRequestsTotal: this.#overloadedRequests,
      overloadedBodiesTotal: this.#overloadedBodies,
    };
  }
}
