/** The actor runtime in this process: durable turns against raw LMDB puts, and volatile turns. No HTTP. */
import type { Subject } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { spreadOf } from '../statistics.ts';
import { durableTurns, rawPuts, type TurnRound, volatileTurns } from '../turn.ts';

export const turn: Scenario = {
  name: 'turn',
  summary: 'actor runtime: durable turns against raw LMDB puts at as many clients; volatile turns',
  unit: 'turns',
  noTarget: 'it runs in this process, without a gateway',
  // A round is many syncs of the disk, not a few.
  inAll: { durationMs: 100 },
  share: 0.5,
  targets: [
    {
      against: 'raw LMDB puts',
      by: 'rate',
      atLeast: 0.5,
      row: 'durable turn against raw puts at 64 clients',
    },
    { figure: 'volatile turn', atMost: 1, row: 'volatile turn' },
  ],
  async run(bench) {
    const { durationMs, warmupMs, connections: clients } = bench.options;
    const rounds = { durationMs, warmupMs };
    bench.invite('raw-puts');
    const comparison = await bench.compare([
      subject('durable turns', rounds, (ms) => durableTurns({ clients, durationMs: ms })),
      subject('raw LMDB puts', rounds, (ms) => rawPuts({ clients, durationMs: ms })),
      { ...subject('volatile turns', rounds, (ms) => volatileTurns({ durationMs: ms })), group: 'volatile' },
    ]);
    const times = comparison.subjects[2]?.rounds.map(({ ratePerSecond }) => 1e6 / ratePerSecond) ?? [];
    const { median: value, from, to } = spreadOf(times);
    return {
      comparison,
      notes: [],
      figures: [{ name: 'volatile turn', unit: 'us', value, from, to }],
    };
  },
};

/** Each round opens and closes its own journal, outside of the measured time. */
function subject(
  name: string,
  { durationMs, warmupMs }: { readonly durationMs: number; readonly warmupMs: number },
  turns: (durationMs: number) => Promise<TurnRound>,
): Subject {
  return {
    name,
    pids: [process.pid],
    warmUp: () => turns(warmupMs),
    async round() {
      const { perSecond, operations, seconds, cpuMs } = await turns(durationMs);
      return { ratePerSecond: perSecond, details: { answers: operations, seconds, cpuMs } };
    },
  };
}
