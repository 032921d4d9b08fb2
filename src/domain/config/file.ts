/**
 * The configuration file: its schema with every key and unit in words. Objects are closed: an unknown key is
 * a fault, not a silent nothing.
 */
import {
  array,
  boolean,
  integer,
  object,
  oneOf,
  optional,
  record,
  type Static,
  text,
  union,
  unknown,
} from '../schema.ts';
import { ASKED_METHODS } from './configuration.ts';
import { fileServerSchema } from './file-servers.ts';
import { mcpServerSchema } from './mcp-servers.ts';
import { oauthKeys } from './oauth-keys.ts';
import { closed, logSchema, telemetrySchema, url } from './observability.ts';

const upTo = (maximum: number, description: string) => integer({ minimum: 0, maximum, description });
const port = (description: string) => upTo(65_535, description);
const host = (description: string) => text({ minLength: 1, maxLength: 253, description });
/** Origin of a page, or of a native app as its system names it in `clientDataJSON`. */
const passkeyOrigin = text({
  pattern:
    '^(?:https?://[^\\s/][^\\s]*|android:apk-key-hash:[A-Za-z0-9_-]{43}|ios:bundle-id:[A-Za-z0-9.-]+)$',
  form: 'an http or https address, android:apk-key-hash:… with 43 characters, or ios:bundle-id:…',
  maxLength: 2048,
  description: 'Allowed origin.',
});
const range = text({ maxLength: 64 });
const sealKey = text({ minLength: 1, maxLength: 64, writeOnly: true });

export const moduleSchema = object(
  {
    url: url('Base address of the module.'),
    key: optional(
      text({
        minLength: 16,
        writeOnly: true,
        description: 'Shared key of the module for the events it pushes.',
      }),
    ),
    poll: optional(boolean({ description: 'Fetch the events of the module by polling.' })),
    accountEvents: optional(
      boolean({ description: 'Tell the module of each account that its person removed, until it confirms.' }),
    ),
    public: optional(
      array(text({ pattern: '^/', form: 'a path that begins with /' }), {
        description: 'Path prefixes that are proxied without a session.',
      }),
    ),
    methods: optional(
      array(oneOf(ASKED_METHODS), {
        description: 'Methods that are proxied besides GET, HEAD, POST, PUT, PATCH and DELETE.',
      }),
    ),
    encodedSlashes: optional(
      boolean({
        description: 'Proxied paths and path arguments of tools may hold an encoded slash (`%2F`).',
      }),
    ),
    contactSync: optional(
      boolean({
        description:
          'Devices sync contacts with it (CardDAV) by user name and token; OPTIONS, PROPFIND and REPORT are proxied. One module at most.',
      }),
    ),
  },
  closed,
);
const toolRows = (description: string) => optional(record(text(), unknown(), { description }));

export const configurationSchema = object(
  {
    Project: optional(
      text({
        minLength: 1,
        maxLength: 64,
        pattern: '^[\\x21-\\x7e]([\\x20-\\x7e]*[\\x21-\\x7e])?$',
        form: 'ASCII text without blanks at its ends',
        description: 'Name in get_info and X-Project.',
      }),
    ),
    BaseUrl: optional(
      url('Public address: scheme, host and port. Left out: http://localhost with the actual port.'),
    ),
    Production: optional(boolean({ description: 'https for webhooks, Secure cookies, Host check.' })),
    Listen: optional(
      object(
        {
          host: optional(host('Address to bind.')),
          port: optional(port('Public port; 0 picks a free one.')),
          tls: optional(
            object(
              { cert: text({ description: 'PEM file.' }), key: text({ description: 'PEM file.' }) },
              closed,
            ),
          ),
          receiveBufferBytes: optional(
            upTo(
              64 * 1024 * 1024,
              'What the kernel takes of one connection ahead of the gateway; 0: its choice.',
            ),
          ),
          proxyProtocol: optional(
            boolean({
              description:
                'TrustedProxies put a PROXY protocol header (version 2) before each connection; it carries one request. Not with Listen.tls.',
            }),
          ),
        },
        closed,
      ),
    ),
    Internal: optional(
      object(
        {
          host: optional(host('Address of the internal listener: /metrics and /health in full.')),
          port: optional(port('0 picks a free one.')),
          allowHosts: optional(
            array(host('Host name.'), {
              description:
                'Names that Host may hold there beside addresses, loopback names and Internal.host; others: 403.',
            }),
          ),
        },
        { ...closed, description: "Listener for /metrics, full /health and the modules' events." },
      ),
    ),
    DataPath: optional(text({ minLength: 1, description: 'Folder of the journal.' })),
    TrustedProxies: optional(array(range, { description: 'Ranges whose X-Forwarded-For counts.' })),
    Modules: optional(
      record(text(), moduleSchema, {
        description:
          'Backend modules by name. Any name that is not the first segment of a path of the gateway; chat, wallet, payments, markets and core are those of the built-in tools.',
      }),
    ),
    McpTools: toolRows('Custom tools by name (spec 2.5).'),
    McpResources: toolRows('Custom resources by URI (spec 2.5).'),
    McpProfiles: toolRows(
      'Named subsets of tools and resources, `{"shop": {"tools": ["wallet_*"], "resources": ["shop://*"], "title": "…", "instructions": "…"}}`, at /mcp/p/shop and /connect/p/shop/mcp (docs/mcp.md)..',
    ),
    McpServers: optional(
      record(text(), mcpServerSchema, {
        description:
          'Other MCP servers by name, whose tools are served beside those of modules (docs/upstreams.md). Read again at a reload.',
      }),
    ),
    Config: optional(
      object(
        {
          McpTools: toolRows('The same as `McpTools`, where spec 2.5 writes it; a file may have both.'),
          McpResources: toolRows('The same as `McpResources`, where spec 2.5 writes it.'),
        },
        closed,
      ),
    ),
    McpBasicPersonalReads: optional(
      boolean({
        description:
          'Sessions without proof of their key (McpBasic, McpApp without a signature) read balances, history, addresses and the like. Left out: true, in Production false..',
      }),
    ),
    ...oauthKeys,
    Fido2: optional(
      object(
        {
          serverDomain: optional(host('Relying-party domain. Left out: the host of BaseUrl.')),
          serverName: optional(text({ minLength: 1, maxLength: 64, description: 'Display name.' })),
          timestampDriftTolerance: optional(upTo(3_600_000, 'Clock drift tolerance in milliseconds.')),
          serverIcon: optional(text({ maxLength: 2048, description: 'Icon URL shown by authenticators.' })),
          origins: optional(
            array(passkeyOrigin, {
              description:
                'Origins whose passkeys are taken: pages, and native apps (`android:apk-key-hash:…`, `ios:bundle-id:…`). Left out: the origin of BaseUrl.',
            }),
          ),
        },
        closed,
      ),
    ),
    LocalFileStoragePath: optional(
      text({ minLength: 1, description: 'Folder of file bytes; wins over FileServers.' }),
    ),
    FileStagingPath: optional(
      text({
        minLength: 1,
        description:
          'Folder of uploads on their way to FileServers; `uploads` in DataPath unless given. With Cluster all nodes share it.',
      }),
    ),
    FileServers: optional(
      record(text({ pattern: '^[0-9]+$', form: 'a number' }), fileServerSchema, {
        description:
          'Storage servers by threshold, `{"0": {"Host": "http://…"}}`: a file is on the server with the highest threshold below its id (spec 4.8). Each has `Host` or `S3`.',
      }),
    ),
    SendfileBehind: optional(
      object(
        {
          header: text({
            pattern: '^[Xx]-[A-Za-z0-9-]+$',
            form: 'a field name that begins with X-',
            maxLength: 64,
            description: 'Request header by which a proxy of TrustedProxies says that it sends files itself.',
          }),
          prefix: text({
            pattern: '^/([A-Za-z0-9_~-]+/)+$',
            form: 'a path that begins and ends with /',
            maxLength: 256,
            description: 'Internal location of the proxy whose root is the folder of file bytes.',
          }),
        },
        {
          ...closed,
          description:
            'nginx sends the bytes of authorized downloads (X-Accel-Redirect), while FileDownloadBytesPerSecond is 0 and the bytes are in a local folder.',
        },
      ),
    ),
    Settings: optional(
      record(text(), unknown(), { description: 'First values of runtime settings, by name.' }),
    ),
    WebhookAllow: optional(
      array(range, {
        description: 'Destinations exempt from the address rules of webhooks; loopback unless Production.',
      }),
    ),
    AllowedOrigins: optional(
      array(url('Origin.'), { description: 'Further browser origins for CORS and cookie POSTs.' }),
    ),
    Admin: optional(
      object(
        {
          publicKeys: optional(
            array(text({ pattern: '^[A-Za-z0-9_-]{43}$', form: '32 bytes in base64url' }), {
              description: 'Accounts that hold one of these keys are admins.',
            }),
          ),
          allow: optional(array(range, { description: 'Ranges from which admin routes answer.' })),
        },
        closed,
      ),
    ),
    Secrets: optional(
      object(
        {
          sealKey: optional(
            union([sealKey, array(sealKey, { minItems: 1, maxItems: 8 })], {
              description:
                'Seals the API keys of applications outside the journal: 32 bytes in base64url or hex, best as env:NAME or file:/PATH. A list: the first seals, all open. Once used it is needed at every start.',
            }),
          ),
          sealKeyLost: optional(
            boolean({
              description:
                'Start although no key opens what was sealed: those applications get no webhooks until their owners rotate their API keys.',
            }),
          ),
        },
        closed,
      ),
    ),
    Cluster: optional(
      object(
        {
          url: text({
            pattern: '^(postgres|postgresql|socket):',
            form: 'an address that begins with postgres:// or socket:',
            maxLength: 2048,
            description:
              'PostgreSQL 15 or later, which holds the shared log; best as env:NAME or file:/PATH. `?sslmode=verify-full` checks its certificate.',
          }),
          name: text({
            pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$',
            form: 'up to 32 of a to z, 0 to 9 and "-"',
            description: 'Name of this node; no other node that lives has it.',
          }),
          listen: optional(
            text({
              maxLength: 300,
              description: 'Address and port for links of other nodes; port 0 picks a free one.',
            }),
          ),
          advertise: optional(
            text({
              maxLength: 300,
              description: 'Address and port under which other nodes reach it. Left out: what `listen` got.',
            }),
          ),
          secret: union([sealKey, array(sealKey, { minItems: 1, maxItems: 8 })], {
            description:
              'Seals what the database holds and proves nodes to each other: 32 bytes in base64url or hex, the same at all nodes, best as env:NAME or file:/PATH. A list: the first seals, all open.',
          }),
          tls: optional(
            object(
              {
                cert: text({ description: 'PEM file: the certificate of this node.' }),
                key: text({ description: 'PEM file.' }),
                ca: text({ description: 'PEM file: who signs the certificates of all nodes.' }),
              },
              closed,
            ),
          ),
          plain: optional(
            boolean({ description: 'Links without TLS beyond loopback: for a private network alone.' }),
          ),
          leaseMilliseconds: optional(
            integer({
              minimum: 300,
              maximum: 60_000,
              description:
                'A node that has not renewed for so long is expelled. A larger value bridges longer pauses and delays takeovers.',
            }),
          ),
          logHours: optional(
            integer({
              minimum: 1,
              maximum: 8_760,
              description: 'Rows of the log are kept for so long at least, and at least 4 GiB of them.',
            }),
          ),
          audit: optional(
            oneOf(
              ['node', 'table'],
              'Where audit records of calls are kept: in the journal of the node that served the call, or in the database.',
            ),
          ),
          sharedFiles: optional(
            boolean({
              description:
                'LocalFileStoragePath is one folder that all nodes share. Needed unless there are FileServers.',
            }),
          ),
        },
        {
          ...closed,
          description: 'One of several nodes that serve the same accounts. Left out: one process alone.',
        },
      ),
    ),
    Workers: optional(
      object(
        {
          threads: optional(upTo(256, '0: cores - 1, at least 1.')),
        },
        closed,
      ),
    ),
    Log: optional(logSchema),
    Telemetry: optional(telemetrySchema),
    StaticPath: optional(
      text({ minLength: 1, description: 'Served at / instead of the built-in home page.' }),
    ),
  },
  closed,
);

export type ConfigurationFile = Static<typeof configurationSchema>;
