/** Lists of another MCP server, read with the official client: all pages, within bounds. */
import type { Client } from '@modelcontextprotocol/client';
import type { McpServerConfiguration } from '../../../domain/config/mcp-servers.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { YieldToLoop } from '../batch.ts';
import { isObject } from '../input-schema.ts';
import { type ReadTools, readTools, TOOLS_MAX } from './definitions.ts';
import { OFFER_KINDS, readOffers } from './offers.ts';
import type { OfferKind, UpstreamServer } from './types.ts';

/** Time for one request that opens a session or lists. */
export const REQUEST_MS = 10 * SECOND_MS;
const PAGES_MAX = 64;
const REASON_MAX = 200;
/** JSON-RPC: of a server that has resources and no templates. */
const METHOD_NOT_FOUND = -32601;
const ANY_RESULT = {
  '~standard': { version: 1, vendor: 'gatehouse', validate: (value: unknown) => ({ value }) },
} as const;

interface ListSource {
  readonly client: Client;
  readonly server: UpstreamServer;
  readonly configuration: McpServerConfiguration;
  /** A list begins: its pages have the whole bound of bytes. */
  readonly renew: () => void;
  readonly yieldToLoop: YieldToLoop;
}

export async function listTools(source: ListSource): Promise<ReadTools> {
  const { client, server, configuration, renew, yieldToLoop } = source;
  renew();
  const hasTools = client.getServerCapabilities()?.tools !== undefined;
  const definitions = hasTools ? await listed(client, 'tools/list', 'tools') : [];
  return readTools(server, configuration, definitions, yieldToLoop);
}

/** A list that fails leaves out what it would have: the tools are served all the same. */
export async function listOffers(
  { client, server, configuration, renew, yieldToLoop }: ListSource,
  kind: OfferKind,
): Promise<ReturnType<typeof readOffers>> {
  const { method, capability } = OFFER_KINDS[kind];
  if (client.getServerCapabilities()?.[capability] === undefined) return { offers: [], leftOut: [] };
  renew();
  try {
    const items = await listed(client, method, kind);
    await yieldToLoop();
    return readOffers(server, configuration, kind, items);
  } catch (error) {
    if (isObject(error) && error['code'] === METHOD_NOT_FOUND) return { offers: [], leftOut: [] };
    return { offers: [], leftOut: [{ name: method, reason: reasonOf(error) }] };
  }
}

export function noEffect(): void {
  // Reported to its own caller, or of no interest: the server is gone.
}

/** All pages. One item too many shows that there are more. */
async function listed(client: Client, method: string, member: string): Promise<unknown[]> {
  const items: unknown[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < PAGES_MAX && items.length <= TOOLS_MAX; page += 1) {
    const params = cursor === undefined ? {} : { cursor };
    const result: unknown = await client.request({ method, params }, ANY_RESULT, {
      timeout: REQUEST_MS,
    });
    const list = isObject(result) ? result[member] : undefined;
    if (!isObject(result) || !Array.isArray(list)) throw new TypeError(`${method} has no list`);
    items.push(...list.slice(0, TOOLS_MAX + 1));
    const next = result['nextCursor'];
    if (typeof next !== 'string') return items;
    cursor = next;
  }
  return items;
}

/** Returns the message of the cause, which says more: a connection refused is only "fetch failed" at the top. */
export function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  const named = cause instanceof Error && cause.message !== '' ? cause : error;
  const text = named instanceof Error ? named.message : String(named);
  return text.replace(/[^\x20-\x7e]/g, ' ').slice(0, REASON_MAX);
}
