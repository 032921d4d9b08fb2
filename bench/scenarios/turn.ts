/** The actor runtime in this process: durable turns against raw LMDB puts, and volatile turns. No HTTP. */
import { type Subject, spreadOf } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { durableTurns, rawPuts, type TurnRound, volatileTurns } from '../turn.ts';

export const turn: Scenario = {
  name: 'turn',
  summary: 'actor runtime: durable turns against raw LMDB puts at as many clients; volatile turns',
  unit: 'turns',
  noTarget: 'it runs in this process, without a gateway',
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
    const { durationMs, connections: clients } = bench.options;
    const options = { clients, durationMs };
    bench.invite('raw-puts');
    const comparison = await bench.compare([
      subject('durable turns', () => durableTurns(options)),
      subject('raw LMDB puts', () => rawPuts(options)),
      { ...subject('volatile turns', () => volatileTurns({ durationMs })), group: 'volatile' },
    ]);
    const times = comparison.subjects[2]?.rounds.map(({ ratePerSecond }) => 1e6 / ratePerSecond) ?? [];
    const { median: value, lowest, highest } = spreadOf(times);
    return {
      comparison,
      notes: [],
      figures: [{ name: 'volatile turn', unit: 'us', value, lowest, highest }],
    };
  },
};

function subject(name: string, round: () => Promise<TurnRound>): Subject {
  return {
    name,
    pids: [process.pid],
    async round() {
      const { perSecond, operations, seconds } = await round();
      return { ratePerSecond: perSecond, details: { answersInAll: operations, seconds } };
    },
  };
}
