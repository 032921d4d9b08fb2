/**
 * How a request's body reaches its route: read whole within a cap and parsed, handed on as bytes, or opened as a
 * stream. What is kept of it counts among the bytes in flight.
 */
import { GatewayError } from '../../../domain/errors.ts';
import { requireValid, withCurrentNames } from '../access.ts';
import type { Exchange } from '../exchange.ts';
import type { InFlight } from '../in-flight.ts';
import { parseJson } from '../json.ts';
import { checkJsonType } from '../origin.ts';
import { sidOf } from '../request.ts';
import type { ReadyRoute } from '../router.ts';

/** Cap of a body where the route names none (auth.md A10). */
export const BODY_BYTES_MAX = 64 * 1024;

interface IntakeListener {
  /** The route may run: its body is here, or open. May throw what the route throws. */
  ready(exchange: Exchange, ready: ReadyRoute): void;
  failed(exchange: Exchange, error: unknown): void;
}

export class BodyIntake {
  readonly #inFlight: InFlight;
  readonly #listener: IntakeListener;

  constructor(inFlight: InFlight, listener: IntakeListener) {
    this.#inFlight = inFlight;
    this.#listener = listener;
  }

  /** The cap is checked on the declared length first, then on what arrives. Throws what the head alone shows. */
  receive(exchange: Exchange, ready: ReadyRoute): void {
    const { route, bodyCheck } = ready;
    const capBytes = route.bodyMaxBytes ?? (route.body === 'stream' ? Infinity : BODY_BYTES_MAX);
    if (bodyCheck !== undefined) checkJsonType(exchange.head, sidOf(exchange.head) !== undefined);
    if ((exchange.head.contentLength ?? 0) > capBytes) throw new GatewayError('BodyTooLarge');
    if (route.body === 'stream') {
      this.#open(exchange, route.ownMinimumRate === true);
      this.#listener.ready(exchange, ready);
      return;
    }
    exchange.read({
      take: (sizeBytes) => !exchange.over && this.#take(exchange, sizeBytes, capBytes),
      done: (bytes, borrowed) => {
        exchange.bodyRead = true;
        try {
          if (bodyCheck === undefined) {
            // The memory is the socket's again when this returns.
            exchange.rawBody = borrowed ? Buffer.from(bytes) : bytes;
          } else {
            exchange.body = withCurrentNames(route, parseJson(bytes), 'body');
            requireValid(bodyCheck, exchange.body, 'body');
          }
          this.#listener.ready(exchange, ready);
        } catch (error) {
          this.#listener.failed(exchange, error);
        }
      },
      slow: () => this.#slow(exchange),
    });
  }

  /** What arrives before the route reads is kept, also while its answer is leaving; a route that streams bounds the rest by itself. */
  #open(exchange: Exchange, ownFloor: boolean): void {
    exchange.openBody({
      ...(ownFloor ? {} : { slow: () => this.#slow(exchange) }),
      keep: (sizeBytes) => this.#take(exchange, sizeBytes, Infinity),
      release: (sizeBytes) => {
        exchange.bodyBytes -= sizeBytes;
        exchange.bodyLease?.reduce(sizeBytes);
      },
      ended: () => {
        exchange.bodyRead = true;
      },
      failed: (error) => this.#listener.failed(exchange, error),
    });
  }

  /** Beside an answer that is leaving already the connection ends at once. */
  #slow(exchange: Exchange): void {
    if (exchange.over) exchange.cut();
    else this.#listener.failed(exchange, new GatewayError('BodyTooSlow'));
    exchange.abandon();
  }

  #take(exchange: Exchange, sizeBytes: number, capBytes: number): boolean {
    try {
      if (exchange.bodyBytes + sizeBytes > capBytes) throw new GatewayError('BodyTooLarge');
      this.#inFlight.addBytes(exchange, sizeBytes);
    } catch (error) {
      this.#listener.failed(exchange, error);
      return false;
    }
    exchange.bodyBytes += sizeBytes;
    return true;
  }
}
