/** Brings a request's body to its route in one call: parsed, as bytes, or opened as a stream. */
import { GatewayError } from '../../../domain/errors.ts';
import { checkJsonType, checkPlainCoding } from '../checks/origin.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { parseJson } from '../exchange/json.ts';
import { sidsOf, withCurrentNames } from '../exchange/request.ts';
import type { PipelineContext, RoutedExchange } from '../stages/stage.ts';

/** Work with a longer body is noted for the watchdog of the event loop. */
const LONG_BODY_BYTES = 4 * 1024;
/** JSON values of a body that a schema checks: the faults of very many would take long to name. */
const BODY_VALUES_MAX = 5_000;

/**
 * True: the body is a stream, which may still fail after its route has started. False: `proceed` follows when it has arrived, or
 * `fail`, or nothing where the client leaves. Throws what the head alone shows.
 */
export function receiveBody(exchange: RoutedExchange, pipeline: PipelineContext): boolean {
  const { head, ready } = exchange;
  const { route, bodyCheck, bodyMaxBytes } = ready;
  // A streamed body is the business of its route: the proxy passes every coding on.
  if (route.body !== undefined && route.body !== 'stream') checkPlainCoding(head);
  if (bodyCheck !== undefined) checkJsonType(head, sidsOf(head).length > 0);
  // The cap is checked on the declared length, then on the bytes that arrive.
  if ((head.contentLength ?? 0) > bodyMaxBytes) throw new GatewayError('BodyTooLarge');
  if (route.body === undefined) {
    discardBody(exchange, pipeline, bodyMaxBytes);
    return false;
  }
  if (route.body === 'stream') {
    openBody(exchange, pipeline, route.ownMinimumRate === true);
    return true;
  }
  exchange.readBody(bodyMaxBytes, bodyCheck === undefined, (result) => {
    // The exchange itself reports that its client left.
    if (result === 'aborted') return;
    if (!Buffer.isBuffer(result)) {
      pipeline.fail(exchange, result.refused);
      return;
    }
    exchange.bodyRead = true;
    if (result.length > LONG_BODY_BYTES) exchange.noteWork();
    try {
      if (bodyCheck === undefined) exchange.rawBody = result;
      else exchange.body = withCurrentNames(route.formerNames, parseJson(result, BODY_VALUES_MAX), 'body');
    } catch (error) {
      pipeline.fail(exchange, error);
      return;
    }
    pipeline.proceed(exchange);
  });
  return false;
}

/** Keeps the bytes that arrive before the route reads within the shared bound, also while an answer is being sent. */
function openBody(exchange: Exchange, pipeline: PipelineContext, ownMinimumRate: boolean): void {
  const failed = (error: unknown) => pipeline.fail(exchange, error);
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
function discardBody(exchange: Exchange, pipeline: PipelineContext, maxBytes: number): void {
  const failed = (error: unknown) => pipeline.fail(exchange, error);
  let sizeBytes = 0;
  exchange.ignoreBody({
    isAwaited: true,
    keep(pieceBytes) {
      sizeBytes += pieceBytes;
      if (sizeBytes > maxBytes) failed(new GatewayError('BodyTooLarge'));
      return false;
    },
    slow: () => failed(new GatewayError('BodyTooSlow')),
    ended() {
      if (exchange.phase === 'open') pipeline.proceed(exchange);
    },
    failed,
  });
}
