/** Keys of the configuration file on other MCP servers (docs/upstreams.md), and their form in the program. */
import { array, boolean, integer, object, oneOf, optional, record, type Static, text } from '../schema.ts';
import { LOGIN_TYPES, type LoginType } from '../sessions.ts';

const closed = { additionalProperties: false };
/** Time-out of a call unless `timeoutMs` says otherwise. */
const TIMEOUT_MAX_MS = 300_000;
const TOOL_NAME_MAX = 64;

const access = {
  restricted: optional(
    array(oneOf(LOGIN_TYPES), { description: 'Login types that are denied. Left out: McpBasic.' }),
  ),
};
const offered = (what: string) =>
  optional(
    object(
      {
        ...access,
        appScope: optional(boolean({ description: `McpApp sessions may use them. Left out: false.` })),
      },
      { ...closed, description: `Who may use its ${what}.` },
    ),
  );

const toolRow = object(
  {
    ...access,
    appScope: optional(boolean({ description: 'McpApp sessions may call it. Left out: false.' })),
    timeoutMs: optional(integer({ minimum: 1, maximum: TIMEOUT_MAX_MS, description: 'Of one call.' })),
    rateLimit: optional(
      object({ rps: integer({ minimum: 1, maximum: 1_000_000, description: 'Calls of one user.' }) }, closed),
    ),
  },
  closed,
);

export const mcpServerSchema = object(
  {
    url: optional(
      text({
        pattern: '^https?://[^\\s/][^\\s]*$',
        form: 'an http or https address',
        maxLength: 2048,
        description: 'Address of the server: MCP over streamable HTTP. This or `command`.',
      }),
    ),
    command: optional(
      array(text({ maxLength: 4096 }), {
        minItems: 1,
        maxItems: 64,
        description:
          'Program of the server and its arguments: MCP over its standard input and output. It is started without a shell.',
      }),
    ),
    env: optional(
      record(text(), text({ maxLength: 32_768 }), {
        description:
          'Variables of `command`, such as a token; best as env:NAME. Of those of the gateway it has few.',
      }),
    ),
    headers: optional(
      record(text(), text({ maxLength: 4096 }), {
        description: 'Headers of every request to it, such as a token; best as env:NAME.',
      }),
    ),
    auth: optional(
      oneOf(
        ['user'],
        'Each person calls it with credentials of their own, which they connect on the home page. Left out: `headers` alone.',
      ),
    ),
    title: optional(
      text({
        minLength: 1,
        maxLength: 64,
        description: 'Its name for people. Left out: the name of the server.',
      }),
    ),
    authClient: optional(
      object(
        {
          id: text({ minLength: 1, maxLength: 1024, description: 'Client id that the server gave out.' }),
          secret: optional(
            text({ minLength: 1, maxLength: 4096, description: 'Its secret; best as env:NAME.' }),
          ),
        },
        {
          ...closed,
          description:
            'With `auth`: the OAuth client, for a server that takes neither metadata documents nor registrations.',
        },
      ),
    ),
    authNetworks: optional(
      array(text({ maxLength: 64 }), {
        maxItems: 32,
        description:
          'With `auth`: networks in which its login may be although they are not public, such as that of an own identity provider. Left out: none.',
      }),
    ),
    prefix: optional(
      text({
        pattern: '^[A-Za-z0-9_-]{0,32}$',
        form: 'up to 32 letters, digits, "_" or "-"',
        description: 'Stands before the name of each of its tools. Left out: the name of the server and "_".',
      }),
    ),
    tools: optional(
      object(
        {
          allow: optional(
            array(text({ minLength: 1, maxLength: TOOL_NAME_MAX }), {
              minItems: 1,
              maxItems: 512,
              description: 'Its tools that are served, by their names there; `*` is any text. Left out: all.',
            }),
          ),
          rows: optional(record(text(), toolRow, { description: 'Who may call a tool, by its name there.' })),
        },
        closed,
      ),
    ),
    prompts: offered('prompts'),
    resources: offered('resources'),
  },
  closed,
);

interface McpServerToolAccess {
  readonly restricted: readonly LoginType[];
  readonly appScope?: boolean;
  readonly timeoutMs?: number;
  readonly rateLimit?: { readonly rps: number };
}

/** OAuth settings by which people get credentials of a server. */
export interface McpServerLogin {
  readonly url: string;
  readonly client: { readonly id: string; readonly secret?: string } | null;
  /** Ranges that are exempt from the rules on addresses that the server names. */
  readonly networks: readonly string[];
}

export interface McpServerConfiguration {
  /** Undefined for a server by command. */
  readonly url: string | undefined;
  readonly command: readonly string[] | undefined;
  /** All variables of the command. */
  readonly environment: Readonly<Record<string, string>>;
  /** Title for people. */
  readonly title: string;
  /** Each caller has credentials of its own; null: `headers` are those of all. */
  readonly login: McpServerLogin | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly prefix: string;
  /** Undefined: all. */
  readonly allow: readonly string[] | undefined;
  readonly rows: Readonly<Record<string, McpServerToolAccess>>;
  readonly promptAccess: McpServerToolAccess;
  readonly resourceAccess: McpServerToolAccess;
}

/** The prefix of a server whose configuration names none. */
export function defaultPrefix(name: string): string {
  return `${name}_`;
}

/** Opening a tool is explicit: a public key is no secret, and an application has its own consent. */
export const DEFAULT_TOOL_ACCESS: McpServerToolAccess = { restricted: ['McpBasic'] };

/** Variables of the gateway that its commands have: what programs need to be found and to run, and no secret. */
const INHERITED = ['HOME', 'LANG', 'LOGNAME', 'PATH', 'TMPDIR', 'TZ', 'USER'];

export function resolveMcpServer(
  name: string,
  {
    url,
    command,
    env,
    headers = {},
    auth,
    title = name,
    authClient,
    authNetworks = [],
    prefix,
    tools = {},
    prompts,
    resources,
  }: Static<typeof mcpServerSchema>,
  variables: Readonly<Record<string, string | undefined>>,
): McpServerConfiguration {
  const rows = Object.entries(tools.rows ?? {}).map(
    ([tool, row]) => [tool, { ...DEFAULT_TOOL_ACCESS, ...row }] as const,
  );
  const inherited = INHERITED.flatMap((each) => {
    const value = variables[each];
    return value === undefined ? [] : [[each, value] as const];
  });
  return {
    url,
    command,
    environment: command === undefined ? {} : { ...Object.fromEntries(inherited), ...env },
    title,
    login:
      auth === undefined || url === undefined
        ? null
        : { url, client: authClient ?? null, networks: authNetworks },
    headers,
    prefix: prefix ?? defaultPrefix(name),
    allow: tools.allow,
    rows: Object.fromEntries(rows),
    promptAccess: { ...DEFAULT_TOOL_ACCESS, ...prompts },
    resourceAccess: { ...DEFAULT_TOOL_ACCESS, ...resources },
  };
}
