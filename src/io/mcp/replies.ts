/** HTTP answers with JSON-RPC bodies. */
import { errorRow, GatewayError } from '../../domain/errors.ts';
import { InsufficientScope } from '../../domain/oauth/scopes.ts';
import { scopeChallenge } from '../connect/resources.ts';
import { failure } from '../http/stages/failure.ts';
import { type HeaderList, Reply, type RouteContext } from '../http/table/route.ts';
import { failureOf } from './dispatcher.ts';
import { type RpcAnswer, RpcFailure } from './rpc.ts';

export function rpcReply(status: number, answer: RpcAnswer, headers: HeaderList = []): Reply {
  if (!(answer instanceof RpcFailure)) return new Reply(status, answer, 'application/json', headers);
  return new Reply(status, answer.text, 'application/json', headers, undefined, answer.error);
}

/**
 * A refusal: a limit is 429 with a JSON-RPC error, a scope of a connected host that is too narrow 403, an error of MCP 2026-07-28
 * 400, anything else HTTP 200 (spec 4.1).
 */
export function failureReply(error: unknown, id: string | undefined, context: RouteContext): Reply {
  if (!(error instanceof GatewayError)) throw error;
  return failure(context, error, () => {
    const { status } = errorRow(error.row);
    const isHttpError = error.row === 'AccessRateLimit' || error.row === 'HeaderMismatch';
    const answer = failureOf(error, id);
    if (!(error instanceof InsufficientScope)) return rpcReply(isHttpError ? status : 200, answer);
    const challenge = scopeChallenge(context, context.rawPath, error.needed);
    return rpcReply(status, answer, [['WWW-Authenticate', challenge]]);
  });
}
