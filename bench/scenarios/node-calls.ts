/** Calls between two nodes over a link, without an actor behind them: what each side pays for one. */
import { startServer, startWorker } from '../measure/children.ts';
import type { Comparison, Subject } from '../measure/measure.ts';
import { costOf } from '../measure/process-cost.ts';
import { type Figure, figureOfRounds } from '../report/targets.ts';
import type { Scenario } from '../scenario.ts';
import type { CallOrder } from '../subjects/servers/node-calls.ts';
import type { TurnRound } from '../subjects/turn.ts';

const CALLS = 'calls over a link';
const BARE = 'bare frames';
const MS_US = 1_000;

export const nodeCalls: Scenario = {
  name: 'node-calls',
  summary: 'calls between two nodes over a link: processor time of caller and callee, beside bare frames',
  unit: 'calls',
  noTarget: 'it runs two ends of a link in processes of its own',
  targets: [
    { figure: 'caller', atMost: 10, row: 'call between nodes' },
    { figure: 'callee', atMost: 10, row: 'call between nodes' },
  ],
  async run(bench) {
    const callee = await startServer('node-calls');
    bench.onTeardown(() => callee.stop());
    const caller = await startWorker('server', 'node-calls', callee.url.split(' '));
    bench.onTeardown(() => caller.stop());
    const { durationMs, warmupMs, connections: clients } = bench.options;
    const subject = (name: string, kind: CallOrder['kind']): Subject => ({
      name,
      pids: [caller.pid, callee.pid],
      warmUp: () => caller.ask({ kind, clients, durationMs: warmupMs }),
      async round() {
        const beforeMs = costOf(callee.pid)?.cpuMs ?? Number.NaN;
        const round = await caller.ask<TurnRound>({ kind, clients, durationMs });
        const { perSecond, operations, seconds, cpuMs } = round;
        const calleeMs = (costOf(callee.pid)?.cpuMs ?? Number.NaN) - beforeMs;
        const callerUs = (cpuMs * MS_US) / operations;
        const calleeUs = (calleeMs * MS_US) / operations;
        const details = { answersInAll: operations, seconds, callerUs, calleeUs };
        return { ratePerSecond: perSecond, details };
      },
    });
    const subjects = [subject(CALLS, 'link')];
    if (bench.optionalPeer('bare-frames')) subjects.push(subject(BARE, 'bare'));
    const comparison = await bench.compare(subjects);
    return { comparison, notes: [], figures: figuresOf(comparison) };
  },
};

function figuresOf({ subjects }: Comparison): Figure[] {
  const rounds = subjects.find(({ name }) => name === CALLS)?.rounds ?? [];
  return (['caller', 'callee'] as const).map((side) => {
    const times = rounds.map(({ details }) => Number(details[`${side}Us`]));
    return figureOfRounds(side, 'us', times);
  });
}
