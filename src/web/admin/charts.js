/**
 * The table of the dashboard: tiles and charts, each with the figures that it reads. The page and the tests walk it, so
 * it imports nothing.
 *
 * A figure is named by its place in a look: `requests`, or `connections.open` for one of a part, as in /metrics. `as`
 * says what is shown of it: `now` as it is, `perSecond` what was counted since the look before, `growth` what a count
 * since the start has grown by, both divided by the seconds between the looks. Several figures are added up.
 */
const MEGABYTE = 1024 * 1024;

/** Every count of refusals. `keyProof` is left out: who is refused a proof is counted by the scope that asked for it. */
const REFUSED = ['c', 'i', 'p', 'm', 's', 'provenKey', 'unknownKey', 'signUp'].map(
  (scope) => `limiter.${scope}_limited`,
);

const now = (figures, more) => ({ figures: [figures].flat(), as: 'now', ...more });
const perSecond = (figure, more) => ({ figures: [figure], as: 'perSecond', ...more });
const growth = (figures, more) => ({ figures: [figures].flat(), as: 'growth', ...more });

export const TILES = [
  { title: 'Requests / s', ...perSecond('requests', { digits: 1 }) },
  { title: 'Latency p99', ...now('p99', { digits: 1, unit: 'ms' }) },
  { title: 'Refused by limits', ...now(REFUSED, { digits: 0 }) },
  { title: 'Connections', ...now('connections.open', { digits: 0 }) },
  { title: 'In flight', ...now('requests.requestsInFlight', { digits: 0 }) },
  { title: 'Memory', ...now('rssBytes', { unit: 'bytes' }) },
];

/** One chart a row: its title and the lines in it. */
export const CHARTS = [
  {
    title: 'Requests a second',
    series: [
      perSecond('requests', { label: 'all' }),
      perSecond('errors', { label: 'errors', color: '--bad' }),
    ],
  },
  {
    title: 'Latency, ms',
    series: [now('p50', { label: 'p50' }), now('p99', { label: 'p99', color: '--warn' })],
  },
  {
    title: 'Refused by limits a second',
    series: [
      growth(REFUSED, { label: 'all' }),
      growth('limiter.c_limited', { label: 'connection', color: '--good' }),
      growth('limiter.i_limited', { label: 'address', color: '--warn' }),
      growth(['limiter.p_limited', 'limiter.provenKey_limited'], { label: 'key', color: '--bad' }),
      growth('limiter.s_limited', { label: 'session', color: '--ink' }),
      growth('limiter.m_limited', { label: 'login', color: '--ink-soft' }),
    ],
  },
  {
    title: 'Sessions',
    series: [
      now('gateway.browserSessions', { label: 'browsers' }),
      now('gateway.mcpSessions', { label: 'agents', color: '--good' }),
    ],
  },
  {
    title: 'Connections and streams',
    series: [
      now('connections.open', { label: 'connections' }),
      now('streams.streams', { label: 'event streams', color: '--good' }),
    ],
  },
  {
    title: 'Files, MB a second',
    series: [
      growth('files.uploads_receivedBytes', { label: 'received', scale: MEGABYTE }),
      growth('files.bandwidth_chargedBytes', {
        label: 'through the limiter',
        color: '--good',
        scale: MEGABYTE,
      }),
    ],
  },
  {
    title: 'Uploads',
    series: [
      now('files.uploads_active', { label: 'receiving' }),
      now('files.bandwidth_waiting', { label: 'waiting for bandwidth', color: '--warn' }),
    ],
  },
  {
    title: 'Webhooks',
    series: [
      growth('webhooks.delivered', { label: 'delivered a second' }),
      now('webhooks.pending', { label: 'applications that wait', color: '--warn' }),
    ],
  },
  { title: 'Event loop delay p99, ms', series: [now('loopDelayP99', { label: 'delay' })] },
  {
    title: 'Memory and journal, MB',
    series: [
      now('rssBytes', { label: 'memory', scale: MEGABYTE }),
      now('gateway.journalFileBytes', { label: 'journal', color: '--good', scale: MEGABYTE }),
    ],
  },
];

/** Undefined for a name that the gateway does not have; null for one that has no value now. */
export function figureOf(look, name) {
  const [part, ...rest] = name.split('.');
  return rest.length === 0 ? look[part] : look.parts[part]?.[rest.join('.')];
}

/** What a tile or a line shows at a look; `before`: the look before it, undefined at the first. */
export function read({ figures, as, scale = 1 }, look, before) {
  const sum = (of) => figures.reduce((total, name) => total + figureOf(of, name), 0);
  if (figures.some((name) => figureOf(look, name) === undefined)) return undefined;
  if (figures.some((name) => figureOf(look, name) === null)) return null;
  if (as === 'now') return sum(look) / scale;
  if (as === 'perSecond') return sum(look) / look.seconds / scale;
  return before === undefined ? 0 : Math.max(0, sum(look) - sum(before)) / look.seconds / scale;
}
