/** Other MCP servers for the admin panel and the command `mcp-servers`: what is known of them, and decisions on their tools. */
import { digestOf, type JudgeOrigin, mcpServer } from '../../actors/admin/mcp-server.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { toIso } from '../../domain/time.ts';
import { isObject } from '../mcp/input-schema.ts';
import type { ServerLink } from '../mcp/upstreams/link.ts';
import type { UpstreamAdministration } from '../mcp/upstreams/servers.ts';

export interface McpServerView {
  readonly name: string;
  /** Address; for a server by command, `stdio:` and the program. */
  readonly url: string;
  readonly prefix: string;
  readonly state: ServerLink['state'];
  readonly reason: string | null;
  readonly calls: number;
  readonly failed: number;
  readonly p99Milliseconds: number | null;
  readonly served: readonly { readonly tool: string; readonly digest: string }[];
  readonly hidden: readonly {
    readonly tool: string;
    readonly state: 'new' | 'changed' | 'hidden';
    readonly digest: string;
    readonly sinceUtc: string | null;
    /** Sorted JSON, as `listed`. */
    readonly approved: string | null;
    readonly listed: string;
  }[];
  readonly leftOut: readonly { readonly tool: string; readonly reason: string }[];
}

interface Decision {
  readonly server: string;
  /** Its name at the server. */
  readonly tool: string;
  readonly digest: string;
}

/** Requests of the command. */
export type CommandRequest =
  | { readonly action: 'list' }
  | ({ readonly action: 'approve' | 'hide' } & Decision);

/** `error`: the sentence of a refusal. */
export type CommandAnswer =
  | { readonly servers: readonly McpServerView[]; readonly error?: undefined }
  | { readonly error: string };

export function viewsOf(servers: UpstreamAdministration): McpServerView[] {
  return servers.links.map(({ name }) => viewOf(servers, name));
}

/** Decides about a tool; in force at this node when it resolves. Rejects with `NotFound`. */
export async function decide(
  servers: UpstreamAdministration,
  actors: Pick<ActorSystem, 'ask'>,
  type: 'approve' | 'hide',
  { server, tool: name, digest }: Decision,
  origin: JudgeOrigin,
): Promise<McpServerView> {
  requireServer(servers, server);
  await actors.ask(mcpServer, server, { type, server, name, digest, ...origin });
  await servers.settle(server);
  return viewOf(servers, server);
}

/** Answers the command; `uid`: of its user. Refusals are answers. */
export async function answerCommand(
  servers: UpstreamAdministration,
  actors: Pick<ActorSystem, 'ask'>,
  body: string,
  uid: number,
): Promise<string> {
  try {
    const request = commandOf(body);
    const views =
      request.action === 'list'
        ? viewsOf(servers)
        : [await decide(servers, actors, request.action, request, { by: null, from: { uid } })];
    return JSON.stringify({ servers: views } satisfies CommandAnswer);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return JSON.stringify({ error: error.detail ?? error.message } satisfies CommandAnswer);
  }
}

/** Throws TypeError for what no command of this version writes. */
function commandOf(body: string): CommandRequest {
  const request: unknown = JSON.parse(body);
  if (!isObject(request)) throw new TypeError('no request');
  const { action, server, tool, digest } = request;
  if (action === 'list') return { action };
  if (
    (action === 'approve' || action === 'hide') &&
    typeof server === 'string' &&
    typeof tool === 'string' &&
    typeof digest === 'string'
  )
    return { action, server, tool, digest };
  throw new TypeError('no request');
}

export function requireServer({ links }: UpstreamAdministration, server: string) {
  const link = links.find(({ name }) => name === server);
  if (link === undefined) throw new GatewayError('NotFound', 'no such server in the configuration');
  return link;
}

export function viewOf(servers: UpstreamAdministration, server: string): McpServerView {
  const link = requireServer(servers, server);
  const { configuration, state, reason = null, counts, settled } = link;
  const { approved, proposed } = servers.stored(server);
  return {
    name: server,
    // Arguments may hold secrets.
    url: configuration.url ?? `stdio:${configuration.command?.[0]}`,
    prefix: configuration.prefix,
    state,
    reason,
    calls: counts.calls,
    failed: counts.failed,
    p99Milliseconds: link.p99Milliseconds,
    served: settled.served.map(({ ownName: tool, text }) => ({ tool, digest: digestOf(text) })),
    hidden: settled.hidden.map(({ tool: { ownName: tool, text: listed }, state }) => {
      const sinceMs = proposed[tool]?.sinceMs;
      return {
        tool,
        state,
        digest: digestOf(listed),
        sinceUtc: sinceMs === undefined ? null : toIso(sinceMs),
        approved: Object.hasOwn(approved, tool) ? (approved[tool] ?? null) : null,
        listed,
      };
    }),
    leftOut: settled.leftOut.map(({ name: tool, reason }) => ({ tool, reason })),
  };
}
