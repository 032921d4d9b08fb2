/** The record of a finished request for the log, the metrics and the channels that instrumentation subscribes to. */
import { channel } from 'node:diagnostics_channel';
import type { ErrorName } from '../../../domain/errors.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { AnyRoute } from '../table/route.ts';
import type { Exchange } from './exchange.ts';

export interface FinishedRequest {
  readonly method: string;
  /** The route's pattern; '' when none matched. */
  readonly route: string;
  /** Path as sent, without the query and without segments that may hold a code; see `pathShown`. */
  readonly path: string;
  /** 0 when the client left before the answer. */
  readonly status: number;
  readonly error: ErrorName | undefined;
  readonly durationMs: number;
  /** Unix milliseconds. */
  readonly finishedMs: number;
  /** Bytes of the answer's body. */
  readonly responseBytes: number;
  readonly clientAddress: string;
  readonly userAgent: string;
  readonly userId: string | undefined;
  readonly requestId: string;
  /** The caller's own id of the request. */
  readonly clientRequestId: string | undefined;
  /** Header of a sampled request's own span, else that of the caller. */
  readonly traceparent: string | undefined;
}

/** Gets each `FinishedRequest` (docs/operations.md). */
const REQUESTS = channel('gatehouse.request');

/** Three segments show the intention; later ones may be a code at the end of a mistyped path. */
const UNROUTED_SEGMENTS_SHOWN = 3;
/** Characters of a segment that is shown; codes of files and sessions are longer. */
const WORD_LENGTH_MAX = 20;

/**
 * A short request does without a read of the clock, which costs 50 ns. During a long one the clock
 * may have been set, or the machine have slept.
 */
export function recordOf(exchange: Exchange, elapsedMs: number, clock: () => number): FinishedRequest {
  const { head, client } = exchange;
  const route = exchange.ready?.route;
  const durationMs = elapsedMs - exchange.startedMs;
  const record: FinishedRequest = {
    method: head.method,
    route: route?.path ?? '',
    path: pathShown(route, head.path),
    status: exchange.status,
    error: exchange.error,
    durationMs,
    finishedMs: durationMs < SECOND_MS ? Math.floor(exchange.nowMs + durationMs) : clock(),
    responseBytes: exchange.sentBytes,
    clientAddress: client.address,
    userAgent: client.userAgent,
    userId: exchange.session?.userId,
    requestId: exchange.requestId,
    clientRequestId: exchange.clientRequestId,
    traceparent: exchange.span?.root.traceparent ?? exchange.traceparent,
  };
  if (REQUESTS.hasSubscribers) REQUESTS.publish(record);
  return record;
}

/** The path for the log: without the secret of a route, and only the beginning of an unrouted path. */
function pathShown(route: AnyRoute | undefined, path: string): string {
  if (route?.secretPath === true) return withoutLast(route.path, path);
  return route === undefined ? unrouted(path) : path;
}

/** The last parameter by its name, the segments before it as sent: `/wallet/v1/:path`. */
function withoutLast(pattern: string, path: string): string {
  const nameAt = pattern.lastIndexOf('/') + 1;
  let shownTo = 0;
  for (let at = pattern.indexOf('/'); at >= 0; at = pattern.indexOf('/', at + 1)) {
    shownTo = path.indexOf('/', shownTo) + 1;
    // A path with fewer segments than its route has no parameter to hide.
    if (shownTo === 0) return pattern;
  }
  return path.slice(0, shownTo) + pattern.slice(nameAt);
}

function unrouted(path: string): string {
  const [, ...segments] = path.split('/', UNROUTED_SEGMENTS_SHOWN + 2);
  const shown = segments
    .slice(0, UNROUTED_SEGMENTS_SHOWN)
    .map((segment) => (segment.length > WORD_LENGTH_MAX ? '...' : segment));
  return `/${[...shown, ...(segments.length > UNROUTED_SEGMENTS_SHOWN ? ['...'] : [])].join('/')}`;
}
