/**
 * Events that a module pushes at one node, to as many streams in clusters of several sizes: processor time of all nodes
 * for one event at one stream. Each stream must get each event once; anything else ends the run.
 */
import type { Comparison, Sample, Subject } from '../measure/measure.ts';
import { type Figure, figureOfRounds } from '../report/targets.ts';
import type { Bench } from '../scenario.ts';
import type { ClusterUnderLoad } from '../subjects/cluster.ts';
import { FanoutReaders } from './fan-out/fanout.ts';
import { publisherOf, streamRequests } from './fan-out/gatehouse.ts';

const MESSAGE_BYTES = 200;
const MS_US = 1_000;

export interface SizedCluster {
  readonly size: number;
  readonly load: ClusterUnderLoad;
}

export interface Publisher {
  readonly module: string;
  readonly key: string;
}

interface Streams extends SizedCluster {
  readonly readers: FanoutReaders;
  /** Processor time of all nodes, in milliseconds of a second, while the streams wait for events. */
  readonly idleMs: number;
}

export interface StreamsMeasured {
  readonly comparison: Comparison;
  readonly figures: readonly Figure[];
}

/** The streams of `--connections` in all, the same number at each node. */
export async function measureStreams(
  bench: Bench,
  clusters: readonly SizedCluster[],
  publisher: Publisher,
): Promise<StreamsMeasured> {
  const total = streamsOf(
    bench.options.connections,
    clusters.map(({ size }) => size),
  );
  const gathered: Streams[] = [];
  for (const cluster of clusters) gathered.push(await gather(bench, cluster, total, publisher));
  const comparison = await bench.compare(gathered.map((streams) => subjectOf(bench, streams)));
  // Messages that came twice after the last round are in no round.
  for (const { readers } of gathered) refuseFaults(readers, { unasked: await readers.unasked() });
  return { comparison, figures: figuresOf(comparison, gathered) };
}

/** Returns the number of streams that clusters of all sizes share evenly. Each size divides the largest. */
export function streamsOf(wanted: number, sizes: readonly number[]): number {
  const largest = Math.max(...sizes);
  return largest * Math.max(1, Math.floor(wanted / largest));
}

/** `events to 4 × 2,500 streams`. */
export function streamsName(size: number, total: number): string {
  return `events to ${size} × ${(total / size).toLocaleString('en')} streams`;
}

async function gather(
  bench: Bench,
  { size, load }: SizedCluster,
  total: number,
  publisher: Publisher,
): Promise<Streams> {
  const clients = total / size;
  const plans = [];
  for (const url of load.urls) {
    const requests = await streamRequests(bench, url, clients);
    plans.push({ port: Number(new URL(url).port), requests, clients });
  }
  const readers = new FanoutReaders({
    name: streamsName(size, total),
    suffix: '',
    pids: load.pids,
    plans,
    publish: publisherOf(load.internal, publisher),
  });
  bench.onTeardown(() => readers.leave());
  bench.announce(`${total} readers come to a cluster of ${size}`);
  await readers.gather();
  return { size, load, readers, idleMs: await load.idleMs() };
}

function subjectOf(bench: Bench, { load, readers }: Streams): Subject {
  const { warmupMs, durationMs } = bench.options;
  const round = async (forMs: number): Promise<Sample> => {
    const before = load.cost();
    const sample = await readers.round({ durationMs: forMs, batch: 1, sizeBytes: MESSAGE_BYTES });
    const postgresMs = load.cost().postgresMs - before.postgresMs;
    refuseFaults(readers, sample.details['errors'] as Record<string, number>);
    return { ...sample, details: { ...sample.details, postgresMs } };
  };
  return {
    name: readers.server.name,
    pids: load.pids,
    group: 'streams',
    warmUp: () => round(warmupMs),
    round: () => round(durationMs),
  };
}

/** A figure of events that were lost or doubled is none. */
function refuseFaults({ server }: FanoutReaders, faults: Readonly<Record<string, number>>): void {
  const found = Object.entries(faults).filter(([, count]) => count > 0);
  if (found.length > 0)
    throw new Error(`${server.name}: ${found.map(([name, count]) => `${count} ${name}`).join(', ')}`);
}

function figuresOf({ subjects }: Comparison, streams: readonly Streams[]): Figure[] {
  const measured = streams.map(({ size, readers: { server }, idleMs }) => {
    const rounds = subjects.find(({ name }) => name === server.name)?.rounds ?? [];
    const timesOf = (part: 'cpuMs' | 'postgresMs', of: 'answers' | 'events') =>
      rounds.map(({ details }) => (Number(details[part]) * MS_US) / Number(details[of]));
    const times = timesOf('cpuMs', 'answers');
    return {
      size,
      idleMs,
      name: server.name,
      times,
      busy: times.map(
        (time, round) => time - (idleMs * MS_US) / (rounds[round]?.ratePerSecond ?? Number.NaN),
      ),
      database: timesOf('postgresMs', 'events'),
    };
  });
  const scaleOf = (part: 'times' | 'busy', size: number, own: readonly number[]) =>
    (measured[0]?.[part] ?? []).map((time, round) => (size * time) / (own[round] ?? Number.NaN));
  return measured.flatMap(({ size, name, times, busy, database, idleMs }) => [
    figureOfRounds(`an event and stream, ${name}`, 'us', times),
    figureOfRounds(`an event and stream, ${name}, idle time left out`, 'us', busy),
    ...(size === measured[0]?.size
      ? []
      : [
          figureOfRounds(`scale, ${name}`, 'x', scaleOf('times', size, times)),
          figureOfRounds(`scale, ${name}, idle time left out`, 'x', scaleOf('busy', size, busy)),
        ]),
    figureOfRounds(`PostgreSQL for one event, ${name}`, 'us', database),
    { name: `a node whose streams wait, ${name}`, unit: 'ms/s', value: idleMs / size },
  ]);
}
