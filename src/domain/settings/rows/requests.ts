/** Settings of requests: how many of whom, and how many connections and streams. */
import { count, inGroup, ofScope, rps, seconds } from '../definitions.ts';

export const REQUEST_ROWS = {
  ...inGroup('Rate limits', {
    ApiRPSLimit: ofScope(
      'Connection',
      'id of the connection',
      rps(
        7,
        'Requests of a connection',
        2,
        'Requests of one connection without a session. Clients of trusted proxies are not counted. 0 turns the scope off.',
      ),
    ),
    IpRPSLimit: ofScope(
      'IP',
      'IPv4 address of the client',
      rps(
        23,
        'Requests of an address',
        12,
        'Requests of one address without a session. 0 turns the scope off.',
      ),
    ),
    PubKeyApiRPSLimit: ofScope(
      'Public key',
      'header `pkey`',
      rps(
        10,
        'Requests of a public key',
        2,
        'Requests that name one public key, and /mcp calls of one key. 0 turns the scope off.',
      ),
    ),
    SessionApiRPSLimit: ofScope(
      'Session',
      'id of the session',
      rps(11, 'Requests of a session', 3, 'Requests of one session. 0 turns the scope off.'),
    ),
    McpApiRPSLimit: ofScope(
      'MCP login',
      '`X-PublicKey`',
      rps(
        16,
        'MCP logins of a public key',
        2,
        'mcp_login attempts of one public key. 0 turns the scope off.',
      ),
    ),
    UserApiRPSLimit: rps(
      83,
      'Requests of an account',
      30,
      'Requests of all sessions of one user together. 0: off.',
    ),
    RateLimitWindowSeconds: ofScope(
      'Window',
      '',
      seconds(25, 'Window', [5, 1, 3600], 'Length of the fixed window that all scopes share.'),
    ),
    RateLimitShadowScopes: {
      id: 78,
      type: 'text',
      title: 'Scopes in shadow mode',
      default: '',
      maxLength: 32,
      items: 'scope',
      summary:
        'Scopes in shadow mode, separated by semicolons: c connection, i address, p public key, s session, m mcp_login. They count, refuse nothing and show in no header; the metrics tell what they would have refused.',
    },
  }),
  ...inGroup('Connections and streams', {
    ConnectionsMax: count(
      49,
      'Open connections',
      'connections',
      [10_000, 10, 1_000_000],
      'Open connections of the public listener of this node.',
    ),
    ConnectionsPerNetworkPercent: count(
      82,
      'Share of one network',
      '%',
      [10, 0, 100],
      'Share of ConnectionsMax that one network may take while more than half of them are open: those it opened within 12 s, its requests and its streams. Trusted proxies have no share. 0: off.',
    ),
    SseStreamsPerSession: count(
      50,
      'Event streams of a session',
      'streams',
      [8, 1, 100],
      'Event streams of one session at this node; a further one closes the oldest.',
    ),
    SseStreamsPerAddress: count(
      67,
      'Event streams of an address',
      'streams',
      [500, 1, 1_000_000],
      'Event streams of one address at this node.',
    ),
    SseStreamsMax: count(
      68,
      'Event streams',
      'streams',
      [8_000, 1, 1_000_000],
      'Event streams of this node. Keep it below ConnectionsMax: each stream is an open connection.',
    ),
    RelayedCallsPerSession: count(
      80,
      'Proxied calls of a session',
      'calls',
      [32, 1, 10_000],
      'Proxied calls of a session at one module; as many wait.',
    ),
    RelayedCallsPerUser: count(
      81,
      'Proxied calls of an account',
      'calls',
      [64, 1, 10_000],
      'Proxied calls of a user at one module; as many wait.',
    ),
    WebSocketsPerSession: count(
      89,
      'WebSockets of a session',
      'WebSockets',
      [8, 1, 10_000],
      'WebSockets of one session at this node.',
    ),
    WebSocketsMax: count(
      90,
      'WebSockets',
      'WebSockets',
      [5_000, 1, 1_000_000],
      'WebSockets of this node. Each has two connections, of which ConnectionsMax counts the one of its client.',
    ),
    WebSocketIdleSeconds: seconds(
      91,
      'Idle WebSocket ends after',
      [300, 10, 86_400],
      'A WebSocket whose client or module sends nothing for so long is closed. From half of it on that side gets pings, whose answers count.',
    ),
  }),
} as const;
