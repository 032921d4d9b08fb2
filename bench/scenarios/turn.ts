/** The actor runtime in a process of its own: durable turns against raw LMDB puts, and volatile turns. No HTTP. */
import { startWorker, type Worker } from '../measure/children.ts';
import type { Subject } from '../measure/measure.ts';
import { figureOfRounds } from '../report/targets.ts';
import type { Bench, Scenario } from '../scenario.ts';
import type { TurnOrder } from '../subjects/servers/turns.ts';
import type { TurnRound } from '../subjects/turn.ts';

const VOLATILE = 'volatile turns';

export const turn: Scenario = {
  name: 'turn',
  summary: 'actor runtime: durable turns against raw LMDB puts at as many clients; volatile turns',
  unit: 'turns',
  noTarget: 'it runs the actor runtime in a process of its own, without a gateway',
  baseline: true,
  targets: [
    {
      against: 'raw LMDB puts',
      by: 'rate',
      atLeast: 0.8,
      row: 'durable turn against raw puts at 64 clients',
    },
    { figure: 'volatile turn', atMost: 0.5, row: 'volatile turn' },
  ],
  async run(bench) {
    const subjects = await startSubjects(bench);
    const comparison = await bench.compare(subjects);
    const volatile = comparison.subjects.find(({ name }) => name === VOLATILE)?.rounds ?? [];
    const times = volatile.map(({ ratePerSecond }) => 1e6 / ratePerSecond);
    return {
      comparison,
      notes: [],
      figures: [figureOfRounds('volatile turn', 'us', times)],
    };
  },
};

async function startSubjects(bench: Bench): Promise<Subject[]> {
  const subjects: Subject[] = [];
  for (const { checkout, suffix } of bench.builds) {
    const worker = await startWorker('server', 'turns', checkout === undefined ? [] : [checkout]);
    bench.onTeardown(() => worker.stop());
    subjects.push(subject(bench, worker, `durable turns${suffix}`, 'durable'));
    if (suffix === '' && bench.optionalPeer('raw-puts'))
      subjects.push(subject(bench, worker, 'raw LMDB puts', 'raw'));
    subjects.push({ ...subject(bench, worker, VOLATILE + suffix, 'volatile'), group: 'volatile' });
  }
  return subjects;
}

/** Each round opens and closes its own journal, outside of the measured time. */
function subject(bench: Bench, worker: Worker, name: string, kind: TurnOrder['kind']): Subject {
  const { durationMs, warmupMs, connections: clients } = bench.options;
  const turns = (forMs: number) => worker.ask<TurnRound>({ kind, clients, durationMs: forMs });
  return {
    name,
    pids: [worker.pid],
    warmUp: () => turns(warmupMs),
    async round() {
      const { perSecond, operations, seconds, cpuMs } = await turns(durationMs);
      return { ratePerSecond: perSecond, details: { answers: operations, seconds, cpuMs } };
    },
  };
}
