/**
 * Revisions of MCP that are served, and the one of a request: the header `MCP-Protocol-Version` names it, and from 2026-07-28
 * on `_meta` repeats it. `initialize` always answers 2024-11-05 (spec 9).
 */
import { GatewayError } from '../../domain/errors.ts';
import type { RouteContext } from '../http/table/route.ts';
import { isObject, type JsonObject } from './input-schema.ts';
import type { RpcRequest } from './rpc.ts';

interface Revision {
  /** Each request carries version and capabilities in `_meta`; there is no handshake and no session. */
  readonly isStateless: boolean;
}

/** The newest first. Revisions with a handshake get the same bytes, those of 2024-11-05. */
const REVISIONS: Readonly<Record<string, Revision>> = {
  '2026-07-28': { isStateless: true },
  '2025-11-25': { isStateless: false },
  '2025-06-18': { isStateless: false },
  '2025-03-26': { isStateless: false },
  '2024-11-05': { isStateless: false },
};

export const REVISION_NAMES: readonly string[] = Object.keys(REVISIONS);
export const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const HEADER = 'mcp-protocol-version';

/**
 * Revision that the head of a request asks for. Without the header it is 2024-11-05, unless `_meta` names a stateless
 * revision.
 */
export type AskedRevision = 'handshake' | 'stateless' | { readonly unknown: string };

export function askedRevision(context: RouteContext): AskedRevision {
  const name = context.header(HEADER);
  if (name === undefined)
    return context.repeatedHeaders.has(HEADER) ? { unknown: 'sent twice' } : 'handshake';
  if (!Object.hasOwn(REVISIONS, name)) return { unknown: name };
  return REVISIONS[name]?.isStateless === true ? 'stateless' : 'handshake';
}

/** Does the head name a revision? The field came with 2025-03-26. */
export function namesRevision({ header }: Pick<RouteContext, 'header'>): boolean {
  return header(HEADER) !== undefined;
}

/** Throws `HeaderMismatch` when `_meta` names a stateless revision, which the head must name too. */
export function requireHandshake({ params }: RpcRequest): void {
  const named = versionInMeta(params);
  if (typeof named !== 'string' || !Object.hasOwn(REVISIONS, named)) return;
  if (REVISIONS[named]?.isStateless === true)
    throw new GatewayError('HeaderMismatch', `MCP-Protocol-Version must be ${named}, as in _meta`);
}

/** The version that `params._meta` names; undefined without one. */
export function versionInMeta(params: JsonObject): unknown {
  const meta = params['_meta'];
  return isObject(meta) ? meta[VERSION_KEY] : undefined;
}
