/** The way from an error to its answer, the same for REST, MCP and OAuth: each brings its form, and all else is here. */
import { type ErrorName, errorRow, GatewayError } from '../../../domain/errors.ts';
import { clearSid } from '../checks/sid-cookie.ts';
import type { Exchange } from '../exchange/exchange.ts';
import { errorReply } from '../exchange/reply.ts';
import type { FailureForm, HeaderList, Reply, RouteContext } from '../table/route.ts';
import { isStale } from './authenticate.ts';
import { answer } from './send.ts';
import type { PipelineContext } from './stage.ts';

/** Errors that close the connection: more of the body may follow, or the gateway stops. */
const CLOSING: ReadonlySet<ErrorName> = new Set<ErrorName>(['BodyTooLarge', 'BodyTooSlow', 'Stopping']);

/**
 * Shows a limit in `X-RateLimit`. To an answer with the status of its error it adds what the caller can do; other forms, such as
 * JSON-RPC with HTTP 200, say it themselves.
 */
export function failure(context: RouteContext, error: GatewayError, form: FailureForm): Reply {
  context.limiter.noteRefusal(error, context.holder);
  const reply = form(error, context) ?? errorReply(error);
  const hints = reply.status === errorRow(error.row).status ? hintsOf(error, context) : NONE;
  return reply.withError(reply.error ?? error.row, [...reply.headers, ...hints]);
}

const NONE: HeaderList = [];

/** Fields that devices which sync contacts wait for. */
const BASIC_CHALLENGE: HeaderList = [['WWW-Authenticate', 'Basic realm="contacts", charset="UTF-8"']];

/**
 * `Retry-After` if a repeat may succeed; the coding that is taken, where another one was refused and there alone; the scheme
 * that a device of contact sync waits for.
 */
function hintsOf({ row, retryAfterSeconds }: GatewayError, { asksForBasic }: RouteContext): HeaderList {
  if (row === 'SessionNotFound' && asksForBasic) return BASIC_CHALLENGE;
  if (row === 'UnsupportedContentCoding') return [['Accept-Encoding', 'identity']];
  return retryAfterSeconds === undefined ? [] : [['Retry-After', String(retryAfterSeconds)]];
}

/** Answers an error of the table; anything else is a bug, which is logged and never shown to the caller. */
export function fail(exchange: Exchange, pipeline: PipelineContext, thrown: unknown): void {
  if (exchange.phase === 'decided' || (exchange.last && exchange.hasAnswer)) return;
  const charged = chargeRefusal(exchange, thrown);
  const known = charged instanceof GatewayError ? charged : pipeline.bug(exchange, charged);
  const reply = failure(exchange, known, (error) => formOf(error, exchange));
  answer(exchange, pipeline, reply, CLOSING.has(known.row));
}

/**
 * Charges a refusal before the limits of a route (Host, Origin, admin address, parameter) as a request without a
 * session. Returns the error to answer: the refusal, or that of the limit.
 */
function chargeRefusal(exchange: Exchange, refusal: unknown): unknown {
  if (!exchange.inAccessCheck || !(refusal instanceof GatewayError) || refusal.row === 'Stopping')
    return refusal;
  try {
    exchange.limiter.chargeAnonymous(1);
    return refusal;
  } catch (limited) {
    return limited;
  }
}

/** The form of an error: the route's own, or the envelope. A refused expired cookie is cleared, so that a repeated request signs up. */
function formOf(error: GatewayError, exchange: Exchange): Reply | undefined {
  const route = exchange.ready?.route;
  if (route === undefined)
    return error.row === 'NotFound' ? exchange.services.notFound?.(exchange.head) : undefined;
  const own = route.refusal?.(error, exchange);
  if (own !== undefined || error.row !== 'SessionNotFound' || !isStale(exchange, route)) return own;
  return errorReply(error, clearSid(exchange.site.secureCookies));
}
