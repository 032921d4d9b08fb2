/**
 * Names of a client's fields that no module receives, as one table: docs/modules.md shows it. A name that ends or begins
 * with `*` stands for all with that beginning or end.
 */

interface NameRow {
  readonly why: string;
  readonly names: readonly string[];
}

/** Set by the gateway only. */
const GATEWAY_NAMES: ReadonlySet<string> = new Set([
  'x-crm',
  'x-scopes',
  'x-keytype',
  'x-project',
  'x-mcp-app-id',
  'x-user-id',
  'x-request-id',
  'x-module-key',
  'x-forwarded-for',
  'x-device-guid',
  'traceparent',
  'tracestate',
]);

/** RFC 9110 7.6.1, with the framing headers that the HTTP client writes itself. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-authentication-info',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
  'host',
  'content-length',
  'expect',
  'accept-encoding',
]);

/** Headers that other software trusts because a front server usually sets them; here a client would. */
export const NAMES_KEPT_BACK: readonly NameRow[] = [
  {
    why: 'Credentials for the gateway',
    names: [
      ...['Authorization', 'Cookie', 'Idempotency-Key', 'MCP-Session-Id', 'pkey', 'X-API-Key', 'X-App-Id'],
      ...['X-MCP-Code', 'X-PublicKey', 'X-Signature', 'X-Timestamp'],
    ],
  },
  {
    why: 'Fetch metadata, pages and hops',
    names: ['Origin', 'Referer', 'Sec-*', 'Via'],
  },
  {
    why: 'The user, as front servers and web servers name it',
    names: [
      ...['Impersonate-*', 'Remote-*', 'X-Authenticated-*', 'X-Auth-Email', 'X-Auth-Group*', 'X-Auth-Name'],
      ...[
        'X-Auth-Request-*',
        'X-Auth-Role*',
        'X-Auth-User*',
        'X-Email',
        'X-Groups',
        'X-Proxy-*',
        'X-ProxyUser-*',
      ],
      ...['X-Remote-*', 'X-Roles', 'X-User', 'X-User-*', 'X-Userinfo', 'X-Username', 'X-WebAuth-*'],
    ],
  },
  {
    why: 'The user, as products name it',
    names: [
      ...[
        'CAS-*',
        'Iv-*',
        'Ngrok-Auth-*',
        'OAM-*',
        'OIDC-*',
        'Osso-*',
        'Shib-*',
        'SM-*',
        'SMUser',
        'Tailscale-*',
      ],
      ...[
        'X-Access-Token',
        'X-Amzn-*',
        'X-Anonymous-Consumer',
        'X-Apigateway-*',
        'X-Authentik-*',
        'X-Consumer-*',
      ],
      ...['X-Credential-*', 'X-Endpoint-API-*', 'X-Goog-Authenticated-*', 'X-Goog-IAP-*', 'X-ID-Token'],
      ...['X-JWT-*', 'X-MS-Client-*', 'X-MS-Token-*', 'X-Pomerium-*', 'X-Shib-*', 'X-Vouch-*'],
    ],
  },
  {
    why: "The client's certificate",
    names: [
      'Client-Cert*',
      'SSL-*',
      'X-Client-Cert*',
      'X-Client-DN',
      'X-Client-Verify',
      'X-SSL-*',
      'X-TLS-*',
    ],
  },
  {
    why: "The client's address",
    names: [
      ...['*Client-IP', '*ClientIP', '*Connecting-IP', '*Connecting-IPv6', '*Origin-IP', '*Originating-IP'],
      ...[
        '*Real-IP',
        '*Remote-Addr',
        '*Remote-IP',
        'Forwarded',
        'Forwarded-*',
        'X-Forwarded',
        'X-Forwarded-*',
      ],
      ...['X-Forwarder-*', 'X-NF-*', 'X-Real-*', 'WL-Proxy-*'],
    ],
  },
  {
    why: 'Facts of networks and clouds in front of a module',
    names: [
      'CF-*',
      'Fastly-*',
      'X-Appengine-*',
      'X-ARR-*',
      'X-Azure-*',
      'X-Envoy-*',
      'X-Vercel-*',
      'X-WAWS-*',
    ],
  },
  {
    why: 'Another method, host, scheme or path than the one that was checked',
    names: [
      ...['Disguised-Host', 'Front-End-Https', 'X-Host', 'X-HTTP-Host-Override', 'X-HTTP-Method'],
      ...['X-HTTP-Method-Override', 'X-Invoke-*', 'X-Matched-Path', 'X-Method-Override', 'X-Middleware-*'],
      ...['X-Original-*', 'X-Rewrite-*', 'X-Scheme', 'X-Script-Name', 'X-URL-Scheme'],
    ],
  },
  {
    why: 'Directives: proxies of a module, files and includes',
    names: ['Proxy', 'Surrogate-*', 'X-Accel-*', 'X-Sendfile-*'],
  },
];

interface NamePatterns {
  readonly exact: ReadonlySet<string>;
  readonly beginnings: readonly string[];
  readonly ends: readonly string[];
}

const KEPT_BACK = patternsOf(NAMES_KEPT_BACK.flatMap(({ names }) => names));

function patternsOf(names: readonly string[]): NamePatterns {
  const lower = names.map((name) => name.toLowerCase());
  return {
    exact: new Set(lower.filter((name) => !name.includes('*'))),
    beginnings: lower.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1)),
    ends: lower.filter((name) => name.startsWith('*')).map((name) => name.slice(1)),
  };
}

export function isGatewayHeader(name: string): boolean {
  return GATEWAY_NAMES.has(name.toLowerCase());
}

/** Belongs to one connection, or is written by the HTTP client itself. */
export function isHopByHop(name: string): boolean {
  return HOP_BY_HOP.has(name.toLowerCase());
}

/**
 * Letters, digits and `-`. CGI, WSGI and PHP fold other characters: `X.Crm` and `X_Crm` would be `X-Crm` there.
 */
export function isPlainName(name: string): boolean {
  return /^[0-9A-Za-z-]+$/.test(name);
}

/** May a module receive a client's field of this plain name, in lower case? */
export function isForwardable(name: string): boolean {
  if (GATEWAY_NAMES.has(name) || HOP_BY_HOP.has(name) || KEPT_BACK.exact.has(name)) return false;
  return (
    !KEPT_BACK.beginnings.some((beginning) => name.startsWith(beginning)) &&
    !KEPT_BACK.ends.some((end) => name.endsWith(end))
  );
}
