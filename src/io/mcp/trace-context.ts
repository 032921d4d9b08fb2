/** W3C Trace Context that clients write into `_meta` of a request (MCP 2026-07-28, SEP-414), where the head has none. */
import { isTraceparent } from '../http/exchange/request.ts';
import type { RouteContext } from '../http/table/route.ts';
import { isSafe } from '../http-client/headers.ts';
import type { RemoteParent } from '../tracing/span.ts';
import { isObject, type JsonObject } from './input-schema.ts';

/** Undefined where the head has a `traceparent`, or `_meta` none that is well formed. */
export function traceContextOf(params: JsonObject, { traceparent }: RouteContext): RemoteParent | undefined {
  if (traceparent !== undefined) return undefined;
  const meta = params['_meta'];
  if (!isObject(meta)) return undefined;
  const { traceparent: given, tracestate } = meta;
  if (typeof given !== 'string' || !isTraceparent(given)) return undefined;
  return {
    traceparent: given,
    tracestate: typeof tracestate === 'string' && isSafe(tracestate) ? tracestate : undefined,
  };
}
