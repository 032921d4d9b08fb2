/**
 * Clusters of 1, 2 and 4 nodes in turns, at one rate in all that is far below what one node can do: processor time for one
 * answer. One machine then says what N machines would do: N times the answers of one, over what an answer costs more.
 */
import { bearersOf } from '../load/requests.ts';
import { startServer } from '../measure/children.ts';
import type { Comparison, Sample, Subject } from '../measure/measure.ts';
import { type Figure, figureOfRounds } from '../report/targets.ts';
import type { Bench, Scenario } from '../scenario.ts';
import { type ClusterUnderLoad, clusterUnderLoad } from '../subjects/cluster.ts';
import { makeAgents } from '../subjects/gateway.ts';
import { STREAM_SETTINGS } from './fan-out/gatehouse.ts';
import { KINDS, type MixedFixture } from './mixed/kinds.ts';
import { type KindReport, type Load, runLoads } from './mixed/run.ts';
import { measureStreams } from './streams-of-clusters.ts';

const SIZES = [1, 2, 4] as const;
const LARGEST = 4;
const WORK = {
  mix: { 'tools/call': 0.95, 'tools/list': 0.04, login: 0.01 },
  logins: { login: 1 },
} as const;
type Work = keyof typeof WORK;
/** In all, where the command line says nothing: a quarter of what one node does, so that no queue forms. */
const RATES: Readonly<Record<Work, number>> = { mix: 2_000, logins: 300 };
/** Before the measured time of each round: connections are open, and the rate is reached. */
const LEAD_IN_MS = 300;
const CALLERS = 64;
/** Each key holds a hundred sessions; one more ends its first. */
const LOGGING_IN = 128;
const MODULE = 'wallet';
const MODULE_KEY = 'bench-module-key-0001';
const MS_US = 1_000;

interface Cluster {
  readonly size: number;
  readonly load: ClusterUnderLoad;
  /** One for each node, with the same accounts. */
  readonly fixtures: readonly MixedFixture[];
  /** Processor time of all nodes without load, in milliseconds of a second. */
  readonly idleMs: number;
}

export const scale: Scenario = {
  name: 'scale',
  summary:
    'a cluster of 1, 2 and 4 nodes at one rate in all: processor time for one answer, for one event at one stream, and what follows',
  // Event streams in all.
  defaults: { durationMs: 2_000, warmupMs: 2_000, connections: 10_000 },
  noTarget: 'it starts clusters of its own',
  notInAll: 'seven nodes take as long to start as other scenarios to run',
  targets: [
    { figure: scaleName('mix', 4), atLeast: 3.2, row: 'four nodes, 95 % calls, 4 % lists, 1 % logins' },
    { figure: scaleName('logins', 4), atLeast: 2.8, row: 'four nodes, logins alone' },
  ],
  async run(bench) {
    const backend = await startServer('wallet');
    bench.onTeardown(() => backend.stop());
    const clusters: Cluster[] = [];
    for (const size of SIZES) clusters.push(await startCluster(bench, size, backend.url));
    const subjects = (Object.keys(WORK) as Work[]).flatMap((work) => [
      ...clusters.map((cluster) => subjectOf(bench, cluster, work)),
      ...clusters.slice(0, 1).map((alone) => subjectOf(bench, alone, work, 1 / LARGEST)),
    ]);
    const comparison = await bench.compare(subjects);
    // Afterwards: what open streams cost is no part of a call.
    const streams = await measureStreams(bench, clusters, { module: MODULE, key: MODULE_KEY });
    return {
      comparison: {
        subjects: [...comparison.subjects, ...streams.comparison.subjects],
        ratios: [...comparison.ratios, ...streams.comparison.ratios],
      },
      notes: notesOf(bench),
      figures: [...figuresOf(comparison, clusters), ...streams.figures],
    };
  },
};

async function startCluster(bench: Bench, size: number, backendUrl: string): Promise<Cluster> {
  bench.announce(`a cluster of ${size}`);
  const modules = { [MODULE]: { url: backendUrl, key: MODULE_KEY } };
  const load = await clusterUnderLoad(bench, size, modules, STREAM_SETTINGS);
  const [first = ''] = load.urls;
  const callers = await makeAgents(bench, first, bench.options.users || CALLERS);
  const loggingIn = await makeAgents(bench, first, LOGGING_IN);
  const accounts = {
    internal: undefined,
    moduleKey: MODULE_KEY,
    bearers: await bearersOf(first, callers),
    cookies: [],
    loginKeys: loggingIn.map(({ key }) => key),
    uploadCookies: [],
    filePath: undefined,
    audience: [],
  };
  const idleMs = await load.idleMs();
  return { size, load, idleMs, fixtures: load.urls.map((url) => ({ url, ...accounts })) };
}

/** `share` of the rate. */
function subjectOf(bench: Bench, cluster: Cluster, work: Work, share = 1): Subject {
  const { warmupMs, durationMs } = bench.options;
  const loads = loadsOf(cluster.fixtures, work, rateOf(bench, work) * share);
  return {
    name: share === 1 ? subjectName(work, cluster.size) : quarterName(work),
    pids: cluster.load.pids,
    group: work,
    warmUp: () => runLoads(loads, { warmupMs: 0, durationMs: warmupMs }),
    async round() {
      let [before, after] = [cluster.load.cost(), cluster.load.cost()];
      const reports = await runLoads(loads, {
        warmupMs: LEAD_IN_MS,
        durationMs,
        onBegin: () => {
          before = cluster.load.cost();
        },
        onEnd: () => {
          after = cluster.load.cost();
        },
      });
      return sampleOf(reports, {
        cpuMs: after.nodesMs - before.nodesMs,
        mainThreadsMs: after.mainThreadsMs - before.mainThreadsMs,
        postgresMs: after.postgresMs - before.postgresMs,
      });
    },
  };
}

/** The same share of the rate for each node. */
export function loadsOf(fixtures: readonly MixedFixture[], work: Work, ratePerSecond: number): Load[] {
  const shares: Readonly<Record<string, number>> = WORK[work];
  const kinds = KINDS.filter(({ name }) => shares[name] !== undefined);
  return fixtures.flatMap((fixture) =>
    kinds.map((kind) => {
      const share = (shares[kind.name] ?? 0) / fixtures.length;
      return { fixture, kind, ratePerSecond: ratePerSecond * share };
    }),
  );
}

function sampleOf(reports: readonly KindReport[], cost: Readonly<Record<string, number>>): Sample {
  const sum = (of: (each: KindReport) => number) => reports.reduce((total, each) => total + of(each), 0);
  const errors: Record<string, number> = {};
  for (const { report } of reports)
    for (const [name, count] of Object.entries(report.errors)) errors[name] = (errors[name] ?? 0) + count;
  const details = {
    ...cost,
    answers: sum(({ report }) => report.answers),
    answersInAll: sum(({ report }) => report.answersInAll),
    errors,
    generatorBusy: reports[0]?.report.generatorBusy,
  };
  return { ratePerSecond: sum(({ report }) => report.ratePerSecond), details };
}

function rateOf({ options }: Bench, work: Work): number {
  return ((options.ratePerSecond ?? RATES.mix) / RATES.mix) * RATES[work];
}

function subjectName(work: Work, size: number): string {
  return `${work}, ${size} ${size === 1 ? 'node' : 'nodes'}`;
}

/** One node that is under the load of one of four. */
function quarterName(work: Work): string {
  return `${work}, 1 node, a quarter of the rate`;
}

function scaleName(work: Work, size: number): string {
  return `scale at ${size} nodes, ${work}`;
}

function notesOf(bench: Bench): string[] {
  const rates = (Object.keys(WORK) as Work[]).map((work) => `${work} ${Math.round(rateOf(bench, work))}/s`);
  return [
    `Open loop, in all: ${rates.join(', ')}. The scale is N c1 / cN of the processor time c of all nodes for one answer, what nodes do without load included.`,
    'Every cluster has a PostgreSQL of its own; its time is a figure, and no part of the scale.',
    'Connections are event streams. Events are pushed at the first node, each when every stream has the one before. A stream that lacks one or gets one twice ends the run.',
  ];
}

function figuresOf({ subjects }: Comparison, clusters: readonly Cluster[]): Figure[] {
  type Part = 'cpuMs' | 'mainThreadsMs' | 'postgresMs';
  const timesOf = (work: Work, size: number, part: Part, subject = subjectName(work, size)) => {
    const rounds = subjects.find(({ name }) => name === subject)?.rounds ?? [];
    return rounds.map(({ details }) => (Number(details[part]) * MS_US) / Number(details['answers']));
  };
  const works = Object.keys(WORK) as Work[];
  const scales = works.flatMap((work) => {
    const alone = { cpuMs: timesOf(work, 1, 'cpuMs'), mainThreadsMs: timesOf(work, 1, 'mainThreadsMs') };
    return SIZES.slice(1).flatMap((size) =>
      (['cpuMs', 'mainThreadsMs'] as const).map((part) => {
        const times = timesOf(work, size, part);
        const name = scaleName(work, size) + (part === 'cpuMs' ? '' : ', main threads');
        return figureOfRounds(
          name,
          'x',
          alone[part].map((time, round) => (size * time) / (times[round] ?? Number.NaN)),
        );
      }),
    );
  });
  const busy = works.flatMap((work) =>
    SIZES.slice(1).map((size) => {
      const perAnswer = (of: number) => {
        const idleMs = clusters.find((each) => each.size === of)?.idleMs ?? Number.NaN;
        const rounds = subjects.find(({ name }) => name === subjectName(work, of))?.rounds ?? [];
        return timesOf(work, of, 'cpuMs').map(
          (time, round) => time - (idleMs * MS_US) / (rounds[round]?.ratePerSecond ?? Number.NaN),
        );
      };
      const times = perAnswer(size);
      return figureOfRounds(
        `${scaleName(work, size)}, idle time left out`,
        'x',
        perAnswer(1).map((time, round) => (size * time) / (times[round] ?? Number.NaN)),
      );
    }),
  );
  const alike = works.map((work) => {
    const times = timesOf(work, LARGEST, 'cpuMs');
    return figureOfRounds(
      `${scaleName(work, LARGEST)}, against one node under the load of each`,
      'x',
      timesOf(work, 1, 'cpuMs', quarterName(work)).map(
        (time, round) => (LARGEST * time) / (times[round] ?? Number.NaN),
      ),
    );
  });
  const database = works.flatMap((work) =>
    SIZES.map((size) =>
      figureOfRounds(
        `PostgreSQL for one answer, ${subjectName(work, size)}`,
        'us',
        timesOf(work, size, 'postgresMs'),
      ),
    ),
  );
  const idle = clusters.map(({ size, idleMs }) => ({
    name: `a node without load, of ${size}`,
    unit: 'ms/s',
    value: idleMs / size,
  }));
  return [...scales, ...busy, ...alike, ...database, ...idle];
}
