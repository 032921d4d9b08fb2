/**
 * Tiles and charts of the dashboard with the values that they show, read by the page and the tests. A value is named
 * by its field of a sample (`requests`) or by its metric and labels (`gatehouse_sessions.browser`); several are summed.
 * `kept`: the series of the history. `as`: `now` as it is, `perSecond` counted since the sample before, `growth` the increase of a counter, per second.
 */
const MEGABYTE = 1024 * 1024;

const limited = (scope) => `gatehouse_limiter_decisions_total.${scope}.limited`;

/** All scopes but `key_proof`: its refusals are counted by the scope that asked for the proof. */
const REFUSED = [
  'connection',
  'address',
  'key',
  'login',
  'session',
  'proven_key',
  'unknown_key',
  'sign_up',
].map(limited);

const now = (names, more) => ({ names: [names].flat(), as: 'now', ...more });
const perSecond = (name, more) => ({ names: [name], as: 'perSecond', ...more });
const growth = (names, more) => ({ names: [names].flat(), as: 'growth', ...more });

export const TILES = [
  { title: 'Requests / s', ...perSecond('requests', { digits: 1 }) },
  { title: 'Latency p99', ...now('p99', { digits: 1, unit: 'ms' }) },
  { title: 'Refused by limits', ...now(REFUSED, { digits: 0 }) },
  { title: 'Connections', ...now('gatehouse_connections_open', { digits: 0 }) },
  { title: 'In flight', ...now('gatehouse_http_requests_in_flight', { digits: 0 }) },
  { title: 'Memory', ...now('rssBytes', { unit: 'bytes' }) },
];

/** Title and lines of each chart. `feature`: shown where the gateway offers it. */
export const CHARTS = [
  {
    title: 'Requests per second',
    series: [
      perSecond('requests', { label: 'all', kept: 'requests' }),
      perSecond('errors', { label: 'errors', kept: 'errors', color: '--c3' }),
    ],
  },
  {
    title: 'Latency, ms',
    series: [
      now('p50', { label: 'p50', kept: 'p50' }),
      now('p99', { label: 'p99', kept: 'p99', color: '--c2' }),
    ],
  },
  {
    title: 'Refused by limits per second',
    series: [
      growth(REFUSED, { label: 'all', kept: 'refused' }),
      growth(limited('connection'), { label: 'connection', kept: 'refusedConnection', color: '--c4' }),
      growth(limited('address'), { label: 'address', kept: 'refusedAddress', color: '--c2' }),
      growth(['key', 'proven_key'].map(limited), { label: 'key', kept: 'refusedKey', color: '--c3' }),
      growth(limited('session'), { label: 'session', kept: 'refusedSession', color: '--ink' }),
      growth(limited('login'), { label: 'login', kept: 'refusedLogin', color: '--soft' }),
    ],
  },
  {
    title: 'Sessions',
    series: [
      now('gatehouse_sessions.browser', { label: 'browsers', kept: 'browsers' }),
      now('gatehouse_sessions.mcp', { label: 'agents', kept: 'agents', color: '--c4' }),
    ],
  },
  {
    title: 'Connections and streams',
    series: [
      now('gatehouse_connections_open', { label: 'connections', kept: 'connections' }),
      now('gatehouse_streams_open', { label: 'event streams', kept: 'streams', color: '--c4' }),
      now('gatehouse_websockets_open', { label: 'WebSockets', kept: 'webSockets', color: '--c2' }),
    ],
  },
  {
    title: 'Files, MB per second',
    feature: 'files',
    series: [
      growth('gatehouse_upload_received_bytes_total', {
        label: 'received',
        kept: 'receivedMegabytes',
        scale: MEGABYTE,
      }),
      growth('gatehouse_throttle_charged_bytes_total', {
        label: 'through the limiter',
        kept: 'limitedMegabytes',
        color: '--c4',
        scale: MEGABYTE,
      }),
    ],
  },
  {
    title: 'Uploads',
    feature: 'files',
    series: [
      now('gatehouse_uploads_active', { label: 'receiving', kept: 'uploads' }),
      now('gatehouse_throttle_streams_waiting', {
        label: 'waiting for bandwidth',
        kept: 'uploadsWaiting',
        color: '--c2',
      }),
    ],
  },
  {
    title: 'Webhooks',
    feature: 'webhooks',
    series: [
      growth('gatehouse_webhook_attempts_total.delivered', {
        label: 'delivered per second',
        kept: 'delivered',
      }),
      now('gatehouse_webhook_applications_pending', {
        label: 'applications waiting',
        kept: 'applicationsWaiting',
        color: '--c2',
      }),
    ],
  },
  { title: 'Event loop delay p99, ms', series: [now('loopDelayP99', { label: 'delay', kept: 'loopDelay' })] },
  {
    title: 'Memory and journal, MB',
    series: [
      now('rssBytes', { label: 'memory', kept: 'memoryMegabytes', scale: MEGABYTE }),
      now('gatehouse_journal_file_bytes', {
        label: 'journal',
        kept: 'journalMegabytes',
        color: '--c4',
        scale: MEGABYTE,
      }),
    ],
  },
];

/** Undefined for an unknown name; null for one that has no value now. */
export function readingOf(sample, name) {
  const [first, ...labels] = name.split('.');
  if (!first.startsWith('gatehouse_')) return sample[first];
  return labels.reduce((reading, label) => reading?.[label], sample.metrics[first]);
}

/** The value of a tile or a line in a sample; `before`: the sample before, undefined at the first, null where that is of other nodes. */
export function read({ names, as, scale = 1 }, sample, before) {
  const sum = (of) => names.reduce((total, name) => total + readingOf(of, name), 0);
  if (names.some((name) => readingOf(sample, name) === undefined)) return undefined;
  if (names.some((name) => readingOf(sample, name) === null)) return null;
  if (as === 'now') return sum(sample) / scale;
  if (as === 'perSecond') return sum(sample) / sample.seconds / scale;
  if (before === null) return null;
  return before === undefined ? 0 : Math.max(0, sum(sample) - sum(before)) / sample.seconds / scale;
}
