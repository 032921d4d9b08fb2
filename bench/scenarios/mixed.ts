/**
 * Everything at once against one gateway, each kind at its own rate in the open loop: tools, lists, session checks, REST
 * calls, ranges of a file, logins, uploads, and events that go to streams and webhooks.
 */
import type { Comparison, Measured } from '../measure/measure.ts';
import { median } from '../measure/statistics.ts';
import type { Figure } from '../report/targets.ts';
import type { Bench, Scenario, Series } from '../scenario.ts';
import type { WebhookReport } from '../subjects/servers/webhooks.ts';
import { EventReaders, type EventReport } from './mixed/event-readers.ts';
import { isUndeclared } from './mixed/kinds.ts';
import { type KindReport, runMixed } from './mixed/run.ts';
import { type MixedSetup, prepareMixed } from './mixed/setup.ts';
import { growthOver, Watch, type WatchSample } from './mixed/watch.ts';

/** All kinds together, unless given. */
const RATE_PER_SECOND = 400;
const MEBIBYTE = 1_048_576;
/** Time for events under way. */
const DRAIN_MS = 500;
/** Shorter loads say nothing about growth: code is still being compiled. */
const GROWTH_MIN_MS = 60_000;
export const UNDECLARED = 'answers 5xx that are no declared refusal';
export const RSS_GROWTH = 'RSS, last fifth over first';
export const JOURNAL_GROWTH = 'journal file, last fifth less first';
const ROW = 'soak: mixed load';

interface Outcome {
  readonly kinds: readonly KindReport[];
  readonly events: EventReport | undefined;
  readonly webhooks: WebhookReport | undefined;
  readonly samples: readonly WatchSample[];
}

export const mixed: Scenario = {
  name: 'mixed',
  summary:
    'all kinds of work at once, each at its own rate (--rate for all; 400); errors, memory and processor over time',
  defaults: { durationMs: 15_000, warmupMs: 3_000, rounds: 1, roundsMax: 1 },
  targets: [
    { figure: UNDECLARED, atMost: 0, row: ROW },
    { figure: RSS_GROWTH, atMost: 1.2, row: ROW, whereTaken: true },
    { figure: JOURNAL_GROWTH, atMost: 0, row: ROW, whereTaken: true },
  ],
  async run(bench) {
    const setup = await prepareMixed(bench);
    const { ratePerSecond, maxRatePerSecond, durationMs } = bench.options;
    const rate = Math.min(ratePerSecond ?? RATE_PER_SECOND, maxRatePerSecond ?? Number.POSITIVE_INFINITY);
    const outcome = await play(bench, setup, rate);
    return {
      comparison: comparisonOf(outcome),
      notes: notesOf(bench, setup, rate, outcome),
      figures: figuresOf(outcome, durationMs),
      series: outcome.samples.length === 0 ? [] : seriesOf(outcome.samples),
    };
  },
};

async function play(bench: Bench, setup: MixedSetup, ratePerSecond: number): Promise<Outcome> {
  const { url, internal, pids, fixture, streamCookies, receiver } = setup;
  const { warmupMs, durationMs } = bench.options;
  bench.announce(`${Math.round(ratePerSecond)} a second for ${(warmupMs + durationMs) / 1_000} s`);
  const readers = receiver === undefined ? undefined : new EventReaders(url, streamCookies);
  const [pid] = pids;
  let watch: Watch | undefined;
  let forgotten: Promise<unknown> = Promise.resolve();
  const kinds = await runMixed({
    fixture,
    ratePerSecond,
    warmupMs,
    durationMs,
    onBegin() {
      readers?.begin();
      if (receiver !== undefined) forgotten = reportOf(receiver);
      if (pid !== undefined && internal !== undefined) watch = new Watch(pid, internal);
    },
  });
  watch?.stop();
  await forgotten;
  await new Promise((resolve) => setTimeout(resolve, DRAIN_MS));
  const webhooks = receiver === undefined ? undefined : await reportOf(receiver);
  return { kinds, events: readers?.end(), webhooks, samples: watch?.samples ?? [] };
}

async function reportOf(receiver: string): Promise<WebhookReport> {
  return (await (await fetch(`${receiver}/report`)).json()) as WebhookReport;
}

/** Each kind as a subject of one round: they ran together, so no ratio of them says anything. */
function comparisonOf({ kinds }: Outcome): Comparison {
  const subjects = kinds.map(
    ({ name, report }): Measured => ({
      name,
      medianPerSecond: report.ratePerSecond,
      rounds: [
        {
          ratePerSecond: report.ratePerSecond,
          details: { ...report },
          cpuMs: undefined,
          cpuUsPerAnswer: undefined,
          rssBytes: undefined,
        },
      ],
    }),
  );
  return { subjects, ratios: [] };
}

function figuresOf({ kinds, events, webhooks, samples }: Outcome, durationMs: number): Figure[] {
  const count = (wanted: (error: string) => boolean) =>
    kinds
      .flatMap(({ report }) => Object.entries(report.errors))
      .reduce((sum, [error, times]) => sum + (wanted(error) ? times : 0), 0);
  const figures: Figure[] = [
    { name: UNDECLARED, unit: '', value: count(isUndeclared) },
    { name: 'declared refusals', unit: '', value: count((error) => error.startsWith('refused ')) },
  ];
  if (events !== undefined) figures.push(ms('event to its stream, p99', events.latencyUs.p99 / 1_000));
  if (webhooks !== undefined && webhooks.events > 0) {
    const at = Math.floor((webhooks.events - 1) * 0.99);
    figures.push(ms('event to its webhook, p99', webhooks.latenciesMs[at] ?? Number.NaN));
  }
  if (samples.length > 0) {
    const cpu = median(samples.map((sample) => sample.cpu * 100));
    figures.push({ name: 'processor of the gateway', unit: '% of a core', value: cpu });
  }
  return durationMs >= GROWTH_MIN_MS && samples.length > 0
    ? [...figures, ...growthFigures(samples)]
    : figures;
}

function growthFigures(samples: readonly WatchSample[]): Figure[] {
  const rss = growthOver(samples.map(({ rssBytes }) => rssBytes));
  const journal = growthOver(samples.map(({ journalBytes }) => journalBytes));
  return [
    { name: RSS_GROWTH, unit: 'x', value: rss.to / rss.from },
    { name: JOURNAL_GROWTH, unit: 'MiB', value: (journal.to - journal.from) / MEBIBYTE },
  ];
}

function ms(name: string, value: number): Figure {
  return { name, unit: 'ms', value };
}

function notesOf(
  bench: Bench,
  { receiver }: MixedSetup,
  rate: number,
  { kinds, events, webhooks }: Outcome,
): string[] {
  const notes = kinds.map(
    ({ name, duePerSecond, report }) =>
      `${name}: ${duePerSecond.toFixed(1)}/s were due, ${report.ratePerSecond.toFixed(1)}/s were good.`,
  );
  if (bench.options.rounds > 1) notes.push('Everything runs at once, in one round.');
  if (receiver === undefined)
    notes.push(
      'Without files, events and webhooks: files would stay behind, and only its own gateway takes pushes from the suite.',
    );
  if (events !== undefined)
    notes.push(
      `${events.events} events on streams, ${webhooks?.events ?? 0} at webhooks; ${events.cameBack} streams came back.`,
    );
  return [`${Math.round(rate)} requests a second in all, open loop.`, ...notes];
}

function seriesOf(samples: readonly WatchSample[]): Series[] {
  const chart = (title: string, unit: string, figureOf: (sample: WatchSample) => number): Series => ({
    title,
    x: { label: 's' },
    y: { label: unit },
    lines: [{ label: 'gatehouse', points: samples.map((sample) => [sample.atS, figureOf(sample)] as const) }],
  });
  return [
    chart('Processor over time', '% of a core', ({ cpu }) => cpu * 100),
    chart('Resident memory over time', 'MiB', ({ rssBytes }) => rssBytes / MEBIBYTE),
    chart('Journal file over time', 'MiB', ({ journalBytes }) => journalBytes / MEBIBYTE),
  ];
}
