/**
 * THE runtime settings (spec 8 with its ids; Gatehouse's own from 40). A row is all that a setting needs: the admin
 * panel, the configuration check and the readers walk this table.
 */
import {
  bytesPerSecond,
  checkValue,
  count,
  flag,
  ofFiles,
  ofScope,
  rps,
  type SettingCheck,
  type SettingRow,
  type SettingValue,
  seconds,
  type TextSetting,
} from './definitions.ts';

export type { SettingValue } from './definitions.ts';

export const SETTINGS = {
  ApiRPSLimit: ofScope(
    'Connection',
    'id of the connection',
    rps(
      7,
      2,
      'Requests of one connection without a session. Clients of trusted proxies are not counted. 0 turns the scope off.',
    ),
  ),
  IpRPSLimit: ofScope(
    'IP',
    'IPv4 address of the client',
    rps(23, 12, 'Requests of one address without a session. 0 turns the scope off.'),
  ),
  PubKeyApiRPSLimit: ofScope(
    'Public key',
    'header `pkey`',
    rps(10, 2, 'Requests that name one public key, and /mcp calls of one key. 0 turns the scope off.'),
  ),
  SessionApiRPSLimit: ofScope(
    'Session',
    'id of the session',
    rps(11, 3, 'Requests of one session. 0 turns the scope off.'),
  ),
  McpApiRPSLimit: ofScope(
    'MCP login',
    '`X-PublicKey`',
    rps(16, 2, 'mcp_login attempts of one public key. 0 turns the scope off.'),
  ),
  RateLimitWindowSeconds: ofScope(
    'Window',
    '',
    seconds(25, 5, 1, 3600, 'Length of the fixed window that all scopes share.'),
  ),
  RateLimitShadowScopes: {
    id: 78,
    type: 'text',
    default: '',
    maxLength: 32,
    items: 'scope',
    summary:
      'Scopes in shadow mode, separated by semicolons: c connection, i address, p public key, s session, m mcp_login. They count, refuse nothing and show in no header; the metrics tell what they would have refused.',
  },
  ActiveKeysLimit: count(40, 20, 1, 1000, 'Active keys of one user.'),
  UploadInactivitySeconds: seconds(41, 600, 10, 86_400, 'A v1 upload without a part for so long expires.'),
  DraftLifetimeSeconds: seconds(
    42,
    3600,
    60,
    604_800,
    'A v2 draft that was not completed by then is removed.',
  ),
  BrowserSessionIdleSeconds: seconds(
    43,
    86_400,
    60,
    31_536_000,
    'A browser session that is not used for so long ends.',
  ),
  BrowserSessionSeconds: seconds(44, 2_592_000, 60, 31_536_000, 'Longest life of a browser session.'),
  McpSessionSeconds: seconds(45, 86_400, 60, 31_536_000, 'Life of an MCP session, reported as expiresUtc.'),
  ChallengeSeconds: seconds(46, 300, 10, 3600, 'Life of a login or registration challenge.'),
  UnknownKeyFailuresPerMinute: count(
    47,
    120,
    0,
    1_000_000,
    'Logins with unknown keys, failed and claimed registrations of keys from one address a minute. 0: no budget.',
  ),
  KeyChangeFreshLoginSeconds: seconds(
    48,
    0,
    0,
    86_400,
    'Key changes need a login at most this old. 0 turns the rule off.',
  ),
  ConnectionsMax: count(49, 10_000, 10, 1_000_000, 'Open connections of the public listener of this node.'),
  SseStreamsPerSession: count(
    50,
    8,
    1,
    100,
    'Event streams of one session at this node; the oldest gives way.',
  ),
  FileMaxSizeBytes: ofFiles('The largest upload. It cannot exceed 100 MiB.', {
    id: 51,
    type: 'number',
    unit: 'bytes',
    default: 20_971_520,
    min: 1,
    max: 104_857_600,
    clamps: true,
    summary: 'Largest file that is accepted. The hard cap is 100 MiB.',
  }),
  FileBlockedExtensions: ofFiles('Extensions that are refused, a string with semicolons.', {
    id: 52,
    type: 'text',
    default: '',
    maxLength: 4096,
    summary: 'Denied file extensions, separated by semicolons; the dot is optional, case is ignored.',
  }),
  FileDownloadBytesPerSecond: ofFiles(
    'The quota that v2 downloads share. 0 is no quota.',
    bytesPerSecond(53, 5_242_880, 'Shared quota of v2 downloads. 0 turns throttling off.'),
  ),
  FileUploadBytesPerSecond: ofFiles(
    'The quota that v2 uploads share. 0 is no quota.',
    bytesPerSecond(54, 2_097_152, 'Shared quota of v2 uploads. 0 turns throttling off.'),
  ),
  FileDownloadByIdEnabled: ofFiles(
    'If set, anonymous v2 downloads by id are allowed.',
    flag(55, 'Anonymous v2 downloads by raw file id.'),
  ),
  FileDownloadAuthRequired: ofFiles(
    'If set, no v2 download works without a session.',
    flag(56, 'Every v2 download needs a session.'),
  ),
  LastKeyProtection: flag(
    57,
    'The last key of an account cannot be removed, unless its person can log in by phone or e-mail.',
  ),
  OneTimeCodesPerContactHour: count(
    58,
    5,
    1,
    1000,
    'One-time codes sent to one phone number or e-mail address an hour.',
  ),
  OneTimeCodesPerIpHour: count(59, 10, 1, 10_000, 'One-time codes asked for by one address an hour.'),
  OneTimeCodesPerDay: count(60, 10_000, 1, 100_000, 'One-time codes sent in one day (UTC), to all.'),
  AuditRowsMax: count(
    61,
    1_000_000,
    1000,
    1_000_000,
    'Records of calls, files and deliveries in the audit log; the oldest go first.',
  ),
  AuditRingRowsMax: count(
    85,
    250_000,
    1000,
    1_000_000,
    'Records of each other ring of the audit log (admin acts; keys and applications; logins; refusals); the oldest go first.',
  ),
  AuditDays: {
    id: 62,
    type: 'number',
    unit: 'days',
    default: 365,
    min: 1,
    max: 3650,
    summary: 'Records of the audit log that are older are removed.',
  },
  AnonymousRefusalsPerMinute: count(
    63,
    60,
    0,
    10_000,
    'Refusals at this node without an account that enter the audit log one by one; further ones are counted.',
  ),
  EventReorderMilliseconds: {
    id: 64,
    type: 'number',
    unit: 'ms',
    default: 500,
    min: 0,
    max: 60_000,
    summary: 'An event waits so long for earlier ones of all modules. 0: the order of arrival.',
  },
  EventDays: {
    id: 65,
    type: 'number',
    unit: 'days',
    default: 7,
    min: 1,
    max: 365,
    summary: 'Events that are older leave the log.',
  },
  EventRowsMax: count(66, 1_000_000, 1000, 10_000_000, 'Events in the log; the oldest go first.'),
  DraftsPerUser: count(77, 20, 1, 1000, 'v2 drafts of one user that are open at the same time.'),
  FileBandwidthKey: {
    id: 70,
    type: 'text',
    default: 'shared',
    maxLength: 64,
    summary:
      'Which streams share a quota of file bytes per second: those with the same text. {user} and {address} (IPv6: its /64) are filled in, so {user} gives every user a quota of their own. Within a quota users share evenly, then the streams of each.',
  },
  SseStreamsPerAddress: count(67, 500, 1, 1_000_000, 'Event streams of one address at this node.'),
  SseStreamsMax: count(
    68,
    8_000,
    1,
    1_000_000,
    'Event streams of this node. Keep it below ConnectionsMax: each stream is an open connection.',
  ),
  RelayedCallsPerSession: count(80, 32, 1, 10_000, 'Proxied calls of a session at one module; as many wait.'),
  RelayedCallsPerUser: count(81, 64, 1, 10_000, 'Proxied calls of a user at one module; as many wait.'),
  ConnectionsPerNetworkPercent: {
    id: 82,
    type: 'number',
    unit: '%',
    default: 10,
    min: 0,
    max: 100,
    summary:
      'Share of ConnectionsMax that one network may take while more than half of them are open: those it opened within 12 s, its requests and its streams. Trusted proxies have no share. 0: off.',
  },
  UserApiRPSLimit: rps(83, 30, 'Requests of all sessions of one user together. 0: off.'),
  SignUpsPerNetworkPerDay: count(
    84,
    1000,
    0,
    1_000_000,
    'Accounts that one network creates in a day (UTC); loopback outside Production is not counted. 0: off.',
  ),
  OAuthAccessSeconds: seconds(86, 3600, 60, 86_400, 'Life of an access token of a connected host.'),
  FileV1DownloadBytesPerSecond: bytesPerSecond(87, 0, 'Shared quota of v1 downloads. 0: off.'),
  FileV1UploadBytesPerSecond: bytesPerSecond(88, 0, 'Shared quota of v1 uploads. 0: off.'),
  WebSocketsPerSession: count(89, 8, 1, 10_000, 'WebSockets of one session at this node.'),
  WebSocketsMax: count(
    90,
    5_000,
    1,
    1_000_000,
    'WebSockets of this node. Each has two connections, of which ConnectionsMax counts the one of its client.',
  ),
  WebSocketIdleSeconds: seconds(
    91,
    300,
    10,
    86_400,
    'A WebSocket whose client or module sends nothing for so long is closed. From half of it on that side gets pings, whose answers count.',
  ),
  WebhookPorts: {
    id: 79,
    type: 'text',
    default: '',
    maxLength: 256,
    items: 'port',
    summary:
      "Ports of webhook addresses besides the scheme's own (443; 80 for http), separated by semicolons.",
  },
} as const satisfies Record<string, SettingRow>;

export type SettingName = keyof typeof SETTINGS;
type SettingOf<N extends SettingName> = (typeof SETTINGS)[N] extends TextSetting ? string : number;

export const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];

export function isSettingName(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}

/** The live values. Readers ask at every use, so a change takes effect at once. */
export interface SettingsReader {
  /** Rises with every change. */
  readonly revision: number;
  get<N extends SettingName>(name: N): SettingOf<N>;
}

/** Validates a value from a file or an admin; returns the value that is used. */
export function checkSetting(name: SettingName, value: unknown): SettingCheck {
  return checkValue(SETTINGS[name], value);
}

/** Values in memory over the defaults: published by the settings actor, or given by tests. */
export class LiveSettings implements SettingsReader {
  readonly #values = new Map<SettingName, SettingValue>();
  revision = 0;

  constructor(first: Partial<Record<SettingName, SettingValue>> = {}) {
    for (const name of SETTING_NAMES) this.#values.set(name, first[name] ?? SETTINGS[name].default);
  }

  get<N extends SettingName>(name: N): SettingOf<N> {
    return this.#values.get(name) as SettingOf<N>;
  }

  set(name: SettingName, value: SettingValue): void {
    this.#values.set(name, value);
    this.revision += 1;
  }
}
