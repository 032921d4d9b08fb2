/**
 * The table of bounds that callers share: how much there is in all, and how much of it one session, user or network
 * may hold. `SharedBound` (shares.ts) keeps the accounts.
 */
import type { ErrorName } from '../errors.ts';
import { UPLOAD_SESSIONS_MAX } from '../files/files.ts';
import type { SettingName, SettingsReader } from '../settings/settings.ts';

/**
 * Units of the bound: a number, `{ part }` of its maximum, the name of a runtime setting, or `{ percent }` with the
 * name of one in percent, where 0 leaves the whole.
 */
export type Amount = number | SettingName | { readonly part: number } | { readonly percent: SettingName };

/** The holder whose share of a bound is used up; `maximum`: the bound itself is. */
export type ShareKind = 'session' | 'user' | 'network';
export type RefusedBy = ShareKind | 'maximum';

export interface Bound {
  readonly unit: string;
  readonly maximum: Exclude<Amount, object>;
  readonly session?: Amount;
  readonly user?: Amount;
  /** Share of one IPv4 address or IPv6 /64; a /56 has 4 of them and a /48 has 16, within `WIDE_NETWORK_PART`. */
  readonly network: Amount;
  /** Error when the maximum is reached. A share that is used up is `AccessRateLimit`, or `shareError`. */
  readonly error: ErrorName;
  readonly shareError?: ErrorName;
  readonly summary: string;
}

/** A connection that is silent, slow or idle is closed by then (decision 0104). */
export const SILENT_LIFE_SECONDS = 12;

/** No network of several shares holds more of a bound than this part, however many shares it has. */
const WIDE_NETWORK_PART = 3 / 4;

const MEBIBYTE = 1024 * 1024;

export const BOUNDS = {
  requests: {
    unit: 'requests',
    maximum: 20_000,
    user: { part: 1 / 4 },
    network: { part: 1 / 2 },
    error: 'Overloaded',
    summary: 'Requests that are not answered yet.',
  },
  bodyBytes: {
    unit: 'bytes',
    maximum: 64 * MEBIBYTE,
    user: { part: 1 / 4 },
    network: { part: 1 / 2 },
    error: 'Overloaded',
    summary: 'Request bodies in memory.',
  },
  moduleCalls: {
    unit: 'calls',
    maximum: 2_048,
    user: { part: 1 / 8 },
    network: { part: 1 / 2 },
    error: 'Overloaded',
    summary: 'Tool calls and resource reads at one module, waiting ones included.',
  },
  relayedCalls: {
    unit: 'calls',
    maximum: 2_048,
    session: 'RelayedCallsPerSession',
    user: 'RelayedCallsPerUser',
    network: 64,
    error: 'Overloaded',
    summary: 'Proxied calls at one module whose bodies are read or whose answers are due.',
  },
  relayedWaiting: {
    unit: 'calls',
    maximum: 2_048,
    session: 'RelayedCallsPerSession',
    user: 'RelayedCallsPerUser',
    network: 64,
    error: 'Overloaded',
    summary:
      'Proxied calls at one module beyond the shares of their callers: they wait with their bodies unread.',
  },
  relayedConnections: {
    unit: 'connections',
    maximum: 128,
    network: { part: 1 / 2 },
    error: 'Overloaded',
    summary:
      'Connections to one module for proxied calls. A call takes one when 64 KiB of its body are here, or all.',
  },
  uploadSlots: {
    unit: 'uploads',
    maximum: UPLOAD_SESSIONS_MAX,
    user: 1,
    network: { part: 1 / 2 },
    error: 'TooManyDownloads',
    shareError: 'TooManyDownloads',
    summary: 'Active v1 uploads. Loopback addresses outside Production have no share of a network.',
  },
  eventStreams: {
    unit: 'streams',
    maximum: 'SseStreamsMax',
    session: 'SseStreamsPerSession',
    user: { part: 1 / 4 },
    network: 'SseStreamsPerAddress',
    error: 'Overloaded',
    summary:
      'Event streams, and streams of MCP clients that are notified of changed lists. A new one closes the oldest event stream of its session.',
  },
  webSockets: {
    unit: 'WebSockets',
    maximum: 'WebSocketsMax',
    session: 'WebSocketsPerSession',
    user: { part: 1 / 50 },
    network: { percent: 'ConnectionsPerNetworkPercent' },
    error: 'Overloaded',
    summary: 'WebSockets, from the handshake to the end of both connections.',
  },
  connections: {
    unit: 'connections',
    maximum: 'ConnectionsMax',
    network: { percent: 'ConnectionsPerNetworkPercent' },
    error: 'Overloaded',
    summary:
      'Connections of the public listener, closed at once when refused. A network: see the setting. Trusted proxies have no share.',
  },
  challenges: {
    unit: 'challenges',
    maximum: 100_000,
    network: 1_000,
    error: 'AccessRateLimit',
    summary: 'Challenges of registrations and logins: open ones, and used ones that opened nothing.',
  },
  clientDocuments: {
    unit: 'documents',
    maximum: 32,
    user: 2,
    network: { part: 1 / 4 },
    error: 'AccessRateLimit',
    summary: 'Client-id metadata documents that are fetched: each for at most 3 s.',
  },
  upstreamLogins: {
    unit: 'logins',
    maximum: 32,
    user: 2,
    network: { part: 1 / 4 },
    error: 'AccessRateLimit',
    summary: 'Logins at other MCP servers that wait for these: each for at most 15 s.',
  },
} as const satisfies Record<string, Bound>;

export type BoundName = keyof typeof BOUNDS;

export const BOUND_NAMES = Object.keys(BOUNDS) as BoundName[];

export function boundRow(name: BoundName): Bound {
  return BOUNDS[name];
}

/** The figures of a row as they are now; undefined: no share of that kind. */
export interface BoundLimits {
  readonly maximum: number;
  readonly session: number | undefined;
  readonly user: number | undefined;
  readonly network: number;
}

/** `maximum` replaces that of the row, for tests and for parts that were given their own. */
export function limitsOf(row: Bound, settings: SettingsReader, maximum?: number): BoundLimits {
  const most = maximum ?? figure(row.maximum, settings, 0);
  const share = (amount: Amount | undefined) =>
    amount === undefined ? undefined : figure(amount, settings, most);
  return {
    maximum: most,
    session: share(row.session),
    user: share(row.user),
    network: figure(row.network, settings, most),
  };
}

function figure(amount: Amount, settings: SettingsReader, maximum: number): number {
  if (typeof amount === 'number') return amount;
  if (typeof amount === 'object') return Math.ceil(maximum * partOf(amount, settings));
  return Number(settings.get(amount));
}

function partOf(
  amount: { readonly part: number } | { readonly percent: SettingName },
  settings: SettingsReader,
): number {
  if ('part' in amount) return amount.part;
  const percent = Number(settings.get(amount.percent));
  return percent === 0 ? 1 : percent / 100;
}

/** Returns the most that a network of so many shares may hold. */
export function networkLimit(
  { maximum, network }: Pick<BoundLimits, 'maximum' | 'network'>,
  shares: number,
): number {
  if (shares === 1) return network;
  return Math.max(network, Math.min(network * shares, Math.floor(maximum * WIDE_NETWORK_PART)));
}
