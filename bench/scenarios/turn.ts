/** The actor runtime in this process: durable turns against raw LMDB puts, and volatile turns. No HTTP. */
import { compare, type Subject } from '../measure.ts';
import type { Scenario } from '../scenario.ts';
import { durableTurns, rawPuts, type TurnRound, volatileTurns } from '../turn.ts';

export const turn: Scenario = {
  name: 'turn',
  summary: 'actor runtime: durable turns against raw LMDB puts at as many clients; volatile turns',
  async run(bench) {
    if (bench.options.target !== undefined)
      throw new Error('turn runs in this process: it takes no --target');
    const { durationMs, connections: clients } = bench.options;
    const options = { clients, durationMs };
    const comparison = await compare(
      [
        subject('durable turns', () => durableTurns(options)),
        subject('raw LMDB puts', () => rawPuts(options)),
        subject('volatile turns', () => volatileTurns({ durationMs })),
      ],
      bench.options.rounds,
      bench.announce,
    );
    const volatilePerSecond = comparison.subjects[2]?.medianPerSecond ?? Number.NaN;
    return {
      // Volatile turns stand for themselves: a ratio of the two kinds of turn says nothing.
      comparison: { ...comparison, ratios: comparison.ratios.slice(0, 1) },
      notes: [
        `One volatile turn: ${(1e6 / volatilePerSecond).toFixed(3)} us.`,
        'Targets: durable at least 0.5 of the raw puts; volatile at most 1 us.',
      ],
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
