/** Other MCP servers that the person connects with credentials of their own: the list, login there, a personal token, the end. */
import { GatewayError } from '../../domain/errors.ts';
import {
  array,
  boolean,
  named,
  nullable,
  object,
  oneOf,
  optional,
  text,
  utcText,
} from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import { toIso } from '../../domain/time.ts';
import { originOf } from '../accounts/login-parts.ts';
import {
  type AnyRoute,
  defineRoute,
  type HeaderList,
  Reply,
  type RouteContext,
} from '../http/table/route.ts';
import {
  CALLBACK_PATH,
  CLIENT_DOCUMENT_PATH,
  clientDocument,
  gatewayClient,
} from '../mcp/credentials/client-document.ts';
import type { UpstreamAccount, UpstreamCredentials } from '../mcp/credentials/credentials.ts';

export interface UpstreamDeps {
  readonly credentials: UpstreamCredentials;
}

const TOKEN_MAX = 8 * 1024;
const server = text({ maxLength: 32, description: 'Name of the server', examples: ['notion'] });
const accountSchema = named(
  'UpstreamAccount',
  object({
    server: text({ examples: ['notion'] }),
    title: text({ description: 'Its name for people', examples: ['Notion'] }),
    connected: boolean(),
    kind: nullable(oneOf(['oauth', 'token'])),
    connectedUtc: nullable(utcText()),
  }),
);
const own = { group: 'auth', auth: 'session' } as const;

export function createUpstreamRoutes({ credentials }: UpstreamDeps): AnyRoute[] {
  return [
    listRoute(credentials),
    connectRoute(credentials),
    tokenRoute(credentials),
    disconnectRoute(credentials),
    callbackRoute(credentials),
    clientDocumentRoute,
  ];
}

function listRoute(credentials: UpstreamCredentials): AnyRoute {
  return defineRoute({
    ...own,
    method: 'GET',
    path: '/auth/v1/upstreams',
    summary: 'Other MCP servers that each person connects',
    description: 'Those of `McpServers` with `auth`, and whether the account has credentials for them.',
    result: array(accountSchema),
    handle: async ({ session }) => (await credentials.list(session.userId)).map(accountItem),
  });
}

function connectRoute(credentials: UpstreamCredentials): AnyRoute {
  return defineRoute({
    ...own,
    method: 'POST',
    path: '/auth/v1/upstreams/connect',
    summary: 'Begin a login at another MCP server (OAuth)',
    description:
      'The browser goes to `redirect`, and the server sends it back. The login has to be ended within 10 minutes, in the same session. 502 where the server offers none, with the reason.',
    body: object({ server }),
    result: object({ redirect: text({ examples: ['https://login.example/authorize?client_id=…'] }) }),
    errors: ['NotFound', 'ModuleFailed'],
    handle: async (context) => ({
      redirect: await credentials.connect(personOf(context, context.session), context.body.server),
    }),
  });
}

function tokenRoute(credentials: UpstreamCredentials): AnyRoute {
  return defineRoute({
    ...own,
    method: 'POST',
    path: '/auth/v1/upstreams/token',
    summary: 'Connect another MCP server with a personal token',
    description: 'For a server that gives out tokens on a page of its own. It is sent as a bearer.',
    body: object({
      server,
      token: text({ minLength: 1, maxLength: TOKEN_MAX, examples: ['ntn_kQ0WmYxZJ3v8Tc1'] }),
    }),
    result: accountSchema,
    errors: ['NotFound'],
    async handle(context) {
      const { body, session } = context;
      await credentials.setToken(personOf(context, session), body.server, body.token);
      return accountOf(credentials, session.userId, body.server);
    },
  });
}

function disconnectRoute(credentials: UpstreamCredentials): AnyRoute {
  return defineRoute({
    ...own,
    method: 'POST',
    path: '/auth/v1/upstreams/disconnect',
    summary: 'Forget the credentials for another MCP server',
    description: 'Calls of it are refused from then on. The server itself is not told.',
    body: object({ server }),
    result: object({ server: text({ examples: ['notion'] }) }),
    errors: ['NotFound'],
    async handle(context) {
      const { body, session } = context;
      await credentials.disconnect(session.userId, body.server, originOf(context));
      return { server: body.server };
    },
  });
}

/** Fields of an answer that a browser follows, with a code in the address before it. */
const FOLLOWED: HeaderList = [
  ['Cache-Control', 'no-store'],
  ['Referrer-Policy', 'no-referrer'],
];

/** Words of the home page for a login that failed. Texts of the server are not shown. */
const FAILURES: Readonly<Record<string, string>> = {
  ChallengeExpired: 'expired',
  AccessDenied: 'refused',
  SessionNotFound: 'session',
};

function callbackRoute(credentials: UpstreamCredentials): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: CALLBACK_PATH,
    summary: 'End of a login at another MCP server',
    description:
      'The server sends the browser here. `state` is good once, in the session that began the login, and `iss` is compared with the issuer. The answer leads to the home page, which says what became of it.',
    docs: {
      query: object({
        state: optional(text({ examples: ['E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'] })),
        code: optional(text({ examples: ['SplxlOBeZQQYbYS6WxSbIA'] })),
        iss: optional(text({ examples: ['https://login.example'] })),
        error: optional(text({ examples: ['access_denied'] })),
      }),
      answers: { 303: { description: 'To the home page' } },
      sends: ['Location', 'Cache-Control'],
    },
    group: 'auth',
    auth: 'optional',
    async handle(context) {
      const to = (hash: string) => Reply.empty(303, [['Location', `/#servers/${hash}`], ...FOLLOWED]);
      const { session } = context;
      if (session === undefined) return to('-/session');
      try {
        return to(
          `${await credentials.finish(personOf(context, session), answerOf(context.search))}/connected`,
        );
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        return to(`-/${FAILURES[error.row] ?? 'failed'}`).withError(error.row);
      }
    },
  });
}

/** Parameters that come once. */
function answerOf(search: string) {
  const query = new URLSearchParams(search);
  const only = (name: string) => {
    const [value, ...more] = query.getAll(name);
    return more.length === 0 ? value : undefined;
  };
  return { state: only('state') ?? '', code: only('code'), iss: only('iss') };
}

const uri = text({ examples: ['https://gate.example/auth/v1/upstreams/callback'] });

const clientDocumentRoute = defineRoute({
  method: 'GET',
  path: CLIENT_DOCUMENT_PATH,
  summary: 'This gateway as a client of other MCP servers',
  description: 'A client-id metadata document: servers that fetch one need no registration.',
  docs: {
    answers: {
      200: {
        description: 'The document',
        type: 'application/json',
        schema: object({
          client_id: uri,
          client_name: text({ examples: ['demo'] }),
          client_uri: uri,
          redirect_uris: array(uri),
          grant_types: array(text({ examples: ['authorization_code'] })),
          response_types: array(text({ examples: ['code'] })),
          token_endpoint_auth_method: text({ examples: ['none'] }),
        }),
      },
    },
  },
  group: 'connect',
  auth: 'none',
  anyOrigin: true,
  handle: ({ site }) =>
    Reply.json(200, clientDocument(gatewayClient(site)), [['Cache-Control', 'public, max-age=300']]),
});

function personOf(context: RouteContext<unknown, unknown>, session: SessionContext) {
  const { id: sessionId, userId } = session;
  return { userId, sessionId, origin: originOf(context), holder: context.holder };
}

async function accountOf(credentials: UpstreamCredentials, userId: string, name: string) {
  const found = (await credentials.list(userId)).find(({ server }) => server === name);
  if (found === undefined) throw new GatewayError('NotFound');
  return accountItem(found);
}

function accountItem({ server, title, kind, connectedMs }: UpstreamAccount) {
  const connectedUtc = connectedMs === null ? null : toIso(connectedMs);
  return { server, title, connected: kind !== null, kind, connectedUtc };
}
