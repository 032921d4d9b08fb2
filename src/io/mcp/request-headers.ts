/**
 * Checks that the head of a stateless request says what its body says: `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name`
 * (MCP 2026-07-28, Streamable HTTP, "Server Validation"). Proxies may route by these headers.
 */
import { GatewayError } from '../../domain/errors.ts';
import type { RouteContext } from '../http/table/route.ts';
import { requireHeader } from './header-params.ts';
import { isObject } from './input-schema.ts';
import { VERSION_KEY, versionInMeta } from './revisions.ts';
import type { RpcRequest } from './rpc.ts';

/** The param that `Mcp-Name` repeats, by method. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'resources/read': 'uri',
  'prompts/get': 'name',
};
export const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';

/** Throws `HeaderMismatch`, or `InvalidRequestMeta` for a missing field of `_meta`. */
export function requireMatchingHead(request: RpcRequest, context: RouteContext): void {
  const { method, params } = request;
  const version = context.header('mcp-protocol-version');
  const named = versionInMeta(params);
  if (typeof named !== 'string')
    throw new GatewayError('InvalidRequestMeta', `_meta must hold ${VERSION_KEY}`);
  if (named !== version)
    throw new GatewayError('HeaderMismatch', 'MCP-Protocol-Version is not the version in _meta');
  const meta = params['_meta'];
  if (!isObject(meta) || !isObject(meta[CAPABILITIES_KEY]))
    throw new GatewayError('InvalidRequestMeta', `_meta must hold ${CAPABILITIES_KEY}, an object`);
  requireHeader(context, 'Mcp-Method', method, false);
  const param = Object.hasOwn(NAMED_BY, method) ? NAMED_BY[method] : undefined;
  const value = param === undefined ? undefined : params[param];
  // A missing or malformed name is refused by the method itself.
  if (typeof value === 'string') requireHeader(context, 'Mcp-Name', value, true);
}
