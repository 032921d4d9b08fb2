/** Admin JSON of other MCP servers: their state, and the decision on definitions of tools that are new or changed. */
import { array, integer, named, nullable, object, oneOf, text, utcText } from '../../../domain/schema.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import { decide, requireServer, viewOf, viewsOf } from '../../admin/mcp-servers.ts';
import { requireFresh } from '../../admin/pagination.ts';
import { type AnyRoute, adminRoute, type RouteContext } from '../../http/table/route.ts';
import { UPSTREAM_STATES } from '../../mcp/upstreams/link.ts';
import type { UpstreamAdministration } from '../../mcp/upstreams/servers.ts';

const name = (description: string, example: string) =>
  text({ minLength: 1, maxLength: 64, description, examples: [example] });
const digest = text({
  pattern: '^[A-Za-z0-9_-]{43}$',
  form: 'SHA-256 in base64url',
  examples: ['47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU'],
});
const definition = text({ description: 'Sorted JSON', examples: ['{"name":"get_forecast"}'] });

const serverView = named(
  'McpServer',
  object({
    name: text({ examples: ['weather'] }),
    url: text({
      description: 'Of a server by command `stdio:` and the program',
      examples: ['https://mcp.weather.example/mcp'],
    }),
    prefix: text({ examples: ['weather_'] }),
    state: oneOf(UPSTREAM_STATES),
    reason: nullable(text({ examples: ['connect ECONNREFUSED 127.0.0.1:9'] })),
    calls: integer(),
    failed: integer(),
    p99Milliseconds: nullable(integer({ description: 'Of the last calls that were answered' })),
    served: array(object({ tool: text({ examples: ['get_forecast'] }), digest })),
    hidden: array(
      object({
        tool: text({ examples: ['get_history'] }),
        state: oneOf(['new', 'changed', 'hidden']),
        digest,
        sinceUtc: nullable(utcText()),
        approved: nullable(definition),
        listed: definition,
      }),
    ),
    leftOut: array(
      object({ tool: text({ examples: ['delete all'] }), reason: text({ examples: ['has no name'] }) }),
    ),
  }),
);

const decisionBody = object({
  server: name('Name in the configuration', 'weather'),
  tool: name('Name of the tool at the server', 'get_forecast'),
  digest,
});

type AdminContext = RouteContext<unknown, unknown, SessionContext>;

export function createAdminMcpServerRoutes(servers: UpstreamAdministration): AnyRoute[] {
  const decision = (type: 'approve' | 'hide', summary: string) =>
    adminRoute({
      method: 'POST',
      path: `/ProxyAdmin/api/mcp_servers/${type}`,
      summary,
      description:
        '`digest` is that of the definition that was seen; 404 when the server lists another one by now. Effective at once. Needs a recent login.',
      body: decisionBody,
      result: serverView,
      errors: ['FreshLoginRequired', 'NotFound'],
      handle(context) {
        requireFresh(context);
        const { actors, session, client, body } = context;
        const origin = { by: session.userId, from: { address: client.address } };
        return decide(servers, actors, type, body, origin);
      },
    });
  return [
    adminRoute({
      method: 'GET',
      path: '/ProxyAdmin/api/mcp_servers',
      summary: 'Other MCP servers: state, calls, tools, and definitions that wait for a decision',
      description: '`approved` is null for a tool that is new. `leftOut` are tools with a fault.',
      result: array(serverView),
      handle: () => viewsOf(servers),
    }),
    decision('approve', 'Approve the definition of a tool, which is served from now on'),
    decision('hide', 'Hide a tool: one that waits, or one that is served'),
    adminRoute({
      method: 'POST',
      path: '/ProxyAdmin/api/mcp_servers/reload',
      summary: 'Ask a server for its tools again',
      description: 'The answer shows what is known so far; the list follows. Needs a recent login.',
      body: object({ server: name('Name in the configuration', 'weather') }),
      result: serverView,
      errors: ['FreshLoginRequired', 'NotFound'],
      handle(context) {
        requireFresh(context as AdminContext);
        const { server } = context.body;
        requireServer(servers, server).relist();
        return viewOf(servers, server);
      },
    }),
  ];
}
