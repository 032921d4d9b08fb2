/** Data of the overview about the past: the ranges, their samples with those that arrive, and the use of names. */
import { get } from '../shared/api.js';
import { useLoad } from '../shared/ui.js';
import { html, useEffect } from '../vendor/preact.js';
import { CHARTS } from './charts.js';

export const RANGES = [
  { name: '5m', title: '5 min', seconds: 300, words: 'five minutes' },
  { name: '1h', title: '1 h', seconds: 3_600, words: 'hour' },
  { name: '24h', title: '24 h', seconds: 86_400, words: 'day' },
];
const MINUTE_MS = 60_000;

/** `usual`: unless the address names one. */
export const rangeOf = (query, usual = '5m') =>
  RANGES.find(({ name }) => name === query.get('range')) ?? RANGES.find(({ name }) => name === usual);

/** Loaded anew each minute, and when the stream of samples is back. */
export function useHistory(range, node, isLost) {
  const history = useLoad(
    () => get('/ProxyAdmin/api/history', { range: range.name, node: node === '' ? undefined : node }),
    [range.name, node],
  );
  useEffect(() => {
    const timer = setInterval(history.reload, MINUTE_MS);
    return () => clearInterval(timer);
  }, [history.reload]);
  useEffect(() => {
    if (!isLost && history.value !== undefined) void history.reload();
  }, [isLost]);
  return history;
}

/**
 * Returns the points of all charts: times in seconds since 1970, and by chart the values of each line. In five minutes
 * with live samples.
 */
export function pointsOf(history, samples, range) {
  const kept = history === undefined ? [] : timesOf(history);
  const newest = kept.at(-1) ?? 0;
  const live = range.name === '5m' ? samples.filter(({ utcMs }) => utcMs / 1000 > newest) : [];
  const past = (line) => (history === undefined ? [] : history.series[line.kept]);
  return {
    times: [...kept, ...live.map(({ utcMs }) => utcMs / 1000)],
    charts: CHARTS.map(({ series }, at) =>
      series.map((line, number) => [
        ...past(line),
        ...live.map(({ shown }) => shown.charts[at][number] ?? null),
      ]),
    ),
  };
}

function timesOf({ endUtc, stepSeconds, series }) {
  const end = Date.parse(endUtc) / 1000;
  const { length } = series.requests;
  return Array.from({ length }, (_, at) => end - (length - 1 - at) * stepSeconds);
}

/** Nodes that began within the range: before that they know nothing. */
export function startsOf({ endUtc, nodes }, { seconds }) {
  const beganMs = Date.parse(endUtc) - seconds * 1000;
  return nodes.filter(({ sinceUtc }) => Date.parse(sinceUtc) > beganMs);
}

/** The switch of a range. */
export function Ranges({ range, choose }) {
  return html`<div class="seg push" role="group" aria-label="Range">${RANGES.map(({ name, title }) => html`<button type="button" key=${name} aria-pressed=${name === range.name ? 'true' : 'false'} onClick=${() => choose(name)}>${title}</button>`)}</div>`;
}
