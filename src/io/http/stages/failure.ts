/** The way from an error to its answer, the same for REST, MCP and OAuth: each brings its form, and all else is here. */
import { errorRow, type GatewayError } from '../../../domain/errors.ts';
import { errorReply } from '../reply.ts';
import type { FailureForm, HeaderList, Reply, RouteContext } from '../route.ts';

/**
 * Shows a limit in `X-RateLimit`. To an answer with the status of its error it adds what the caller can do; other forms, such as
 * JSON-RPC with HTTP 200, say it themselves.
 */
export function failure(context: RouteContext, error: GatewayError, form: FailureForm): Reply {
  context.limiter.noteRefusal(error, context.holder);
  const reply = form(error, context) ?? errorReply(error);
  const hints = reply.status === errorRow(error.row).status ? hintsOf(error) : NONE;
  return reply.withError(reply.error ?? error.row, [...reply.headers, ...hints]);
}

const NONE: HeaderList = [];

/** `Retry-After` if a repeat may succeed; the coding that is taken, where another one was refused and there alone. */
function hintsOf({ row, retryAfterSeconds }: GatewayError): HeaderList {
  if (row === 'UnsupportedContentCoding') return [['Accept-Encoding', 'identity']];
  return retryAfterSeconds === undefined ? [] : [['Retry-After', String(retryAfterSeconds)]];
}
