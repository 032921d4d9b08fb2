/** The one scenario of units that need no gateway: it starts the processes of its rows and compares what they do in a time. */
import { startServer, startWorker, type Worker } from '../measure/children.ts';
import type { Round, Subject } from '../measure/measure.ts';
import { figureOfRounds } from '../report/targets.ts';
import type { Bench, LoopPart, Scenario, ScenarioResult } from '../scenario.ts';
import type { Build } from '../subjects/baseline.ts';
import type { ParticipantId } from '../subjects/participants.ts';

/** A file of `bench/subjects` and its arguments. */
type Process = readonly ['server' | 'peer', string, ...string[]];

export interface Row {
  /** docs/BENCHMARKS.md shows it. */
  readonly name: string;
  /** Rows of one process share it. */
  readonly process: Process;
  /** A server that starts first: its address is the further arguments, its processor time part of the row's. */
  readonly callee?: string;
  /** Sent to the process with a duration and a number of clients. */
  readonly order?: object;
  readonly group?: string;
  /** The row is a counterpart: it takes part once, and only where it is installed. */
  readonly peer?: ParticipantId;
  readonly figures?: readonly {
    readonly name: string;
    readonly unit: string;
    /** The value of one round; the figure is their median. */
    of(round: Round): number;
  }[];
}

interface Started {
  readonly worker: Worker;
  readonly pids: readonly number[];
}

interface Unit extends Omit<Scenario, 'run'> {
  readonly rows: readonly Row[];
  /** Says why a checkout cannot take part as the baseline, as one sentence; undefined where it can. */
  baselineFault?(checkout: string): string | undefined;
  /** Measures once, when the rounds are over. */
  after?(
    bench: Bench,
    start: (process: Process) => Promise<Started>,
  ): Promise<Partial<Omit<ScenarioResult, 'comparison'>>>;
}

export function unit({ rows, baselineFault, after, ...traits }: Unit): Scenario {
  return {
    ...traits,
    async run(bench) {
      const start = starter(bench);
      const builds = bench.builds.filter(({ checkout }) => {
        const fault = checkout === undefined ? undefined : baselineFault?.(checkout);
        if (fault !== undefined) bench.remarks.push(fault);
        return fault === undefined;
      });
      const comparison = await bench.compare(await subjectsOf(bench, builds, rows, start));
      const figures = rows.flatMap((row) => {
        const rounds = comparison.subjects.find(({ name }) => name === row.name)?.rounds ?? [];
        return (row.figures ?? []).map(({ name, unit, of }) => figureOfRounds(name, unit, rounds.map(of)));
      });
      const { notes = [], figures: more = [] } = (await after?.(bench, start)) ?? {};
      return { comparison, notes, figures: [...figures, ...more] };
    },
  };
}

/** Starts each process once. */
function starter(bench: Bench): (process: Process, callee?: string) => Promise<Started> {
  const started = new Map<string, Started>();
  return async ([kind, file, ...args], callee) => {
    const key = JSON.stringify([kind, file, args, callee]);
    const known = started.get(key);
    if (known !== undefined) return known;
    const pids: number[] = [];
    if (callee !== undefined) {
      const server = await startServer(callee);
      bench.onTeardown(() => server.stop());
      pids.push(server.pid);
      args.push(...server.url.split(' '));
    }
    const worker = await startWorker(kind, file, args);
    bench.onTeardown(() => worker.stop());
    const one = { worker, pids: [worker.pid, ...pids] };
    started.set(key, one);
    return one;
  };
}

async function subjectsOf(
  bench: Bench,
  builds: readonly Build[],
  rows: readonly Row[],
  start: ReturnType<typeof starter>,
): Promise<Subject[]> {
  const clients = bench.options.connections;
  const subjects: Subject[] = [];
  for (const { checkout, suffix } of builds)
    for (const { name, process, callee, order = {}, group, peer } of rows) {
      if (peer !== undefined && (suffix !== '' || !bench.optionalPeer(peer))) continue;
      const [kind, file, ...args] = process;
      const ofBuild = checkout === undefined ? [] : [checkout];
      const { worker, pids } = await start([kind, file, ...args, ...ofBuild], callee);
      const run = (durationMs: number) => worker.ask<LoopPart>({ ...order, clients, durationMs });
      subjects.push(
        bench.loop({ name: name + suffix, pids, ...(group === undefined ? {} : { group }), run }),
      );
    }
  return subjects;
}
