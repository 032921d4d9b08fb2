/** Brings a request's body to its route in one call: parsed, as bytes, or opened as a stream. */
import { GatewayError } from '../../../domain/errors.ts';
import { requireValid, withCurrentNames } from '../access.ts';
import type { Exchange } from '../exchange.ts';
import { parseJson } from '../json.ts';
import { checkJsonType, checkPlainCoding } from '../origin.ts';
import { sidsOf } from '../request.ts';
import type { AnyRoute } from '../route.ts';
import type { ReadyRoute } from '../router.ts';

/** Work with a longer body is noted for the watchdog of the event loop. */
const LONG_BODY_BYTES = 4 * 1024;
/** JSON values of a body that a schema checks: the faults of very many would take long to name. */
const BODY_VALUES_MAX = 5_000;
/** Cap of a body if the route names none. */
export const BODY_BYTES_MAX = 64 * 1024;
/** The same of a body that no route reads. */
const IGNORED_BYTES_MAX = 1024 * 1024;

/**
 * Without `failure` the route may run: its body is in the exchange. Otherwise `error` is answered; a streamed body may
 * still fail after the route has started. Not called when the client leaves.
 */
export type BodyCallback = (exchange: Exchange, failure?: { readonly error: unknown }) => void;

/** The cap is checked on the declared length, then on the bytes that arrive. Throws what the head alone shows. */
export function receiveBody(exchange: Exchange, ready: ReadyRoute, onBody: BodyCallback): void {
  const { route, bodyCheck } = ready;
  const maxBytes = maxBytesOf(route);
  // A streamed body is the business of its route: the proxy passes every coding on.
  if (route.body !== undefined && route.body !== 'stream') checkPlainCoding(exchange.head);
  if (bodyCheck !== undefined) checkJsonType(exchange.head, sidsOf(exchange.head).length > 0);
  if ((exchange.head.contentLength ?? 0) > maxBytes) throw new GatewayError('BodyTooLarge');
  if (route.body === undefined) {
    discardBody(exchange, onBody);
    return;
  }
  if (route.body === 'stream') {
    openBody(exchange, route.ownMinimumRate === true, onBody);
    onBody(exchange);
    return;
  }
  exchange.readBody(maxBytes, bodyCheck === undefined, (result) => {
    // The exchange itself reports that its client left.
    if (result === 'aborted') return;
    if (!Buffer.isBuffer(result)) {
      onBody(exchange, { error: result.refused });
      return;
    }
    exchange.bodyRead = true;
    if (result.length > LONG_BODY_BYTES) exchange.noteWork();
    try {
      if (bodyCheck === undefined) exchange.rawBody = result;
      else {
        exchange.body = withCurrentNames(route, parseJson(result, BODY_VALUES_MAX), 'body');
        requireValid(bodyCheck, exchange.body, 'body');
      }
      onBody(exchange);
    } catch (error) {
      onBody(exchange, { error });
    }
  });
}

function maxBytesOf({ body, bodyMaxBytes }: AnyRoute): number {
  if (body === undefined) return IGNORED_BYTES_MAX;
  return bodyMaxBytes ?? (body === 'stream' ? Infinity : BODY_BYTES_MAX);
}

/** What arrives before the route reads is kept within the shared bound, also while an answer is being sent. */
function openBody(exchange: Exchange, ownMinimumRate: boolean, onBody: BodyCallback): void {
  const failed = (error: unknown) => onBody(exchange, { error });
  exchange.openBody({
    ...(ownMinimumRate ? {} : { slow: () => refuseSlow(exchange, failed) }),
    keep(sizeBytes) {
      try {
        exchange.reserve(sizeBytes, Infinity);
        return true;
      } catch (error) {
        failed(error);
        return false;
      }
    },
    release(sizeBytes) {
      exchange.bodyBytes -= sizeBytes;
      exchange.bodyLease?.reduce(sizeBytes);
    },
    ended() {
      exchange.bodyRead = true;
    },
    failed,
  });
}

/** If an answer is already being sent, the connection is closed at once. */
function refuseSlow(exchange: Exchange, failed: (error: unknown) => void): void {
  if (exchange.isOver) exchange.cut();
  else failed(new GatewayError('BodyTooSlow'));
  exchange.abandon();
}

/** A body that the route does not read: the route runs once it has arrived. */
function discardBody(exchange: Exchange, onBody: BodyCallback): void {
  const failed = (error: unknown) => onBody(exchange, { error });
  let sizeBytes = 0;
  exchange.ignoreBody({
    isAwaited: true,
    keep(pieceBytes) {
      sizeBytes += pieceBytes;
      if (sizeBytes > IGNORED_BYTES_MAX) failed(new GatewayError('BodyTooLarge'));
      return false;
    },
    slow: () => failed(new GatewayError('BodyTooSlow')),
    ended() {
      if (exchange.phase === 'open') onBody(exchange);
    },
    failed,
  });
}
