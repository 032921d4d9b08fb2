/** Runs scenarios: one at a time has the machine, those of `all` in turns. One that fails does not stop the others. */
import { checkGenerator } from './generator-check.ts';
import { ALL, type CommandLine } from './options.ts';
import { othersBusy } from './others-busy.ts';
import type { ProgressBar } from './progress.ts';
import {
  type BenchReport,
  gatewayVersion,
  machine,
  SCHEMA,
  type ScenarioReport,
  targetVersion,
} from './report.ts';
import { messageOf, runScenario } from './run-scenario.ts';
import type { Scenario } from './scenario.ts';
import { Turns } from './turns.ts';
import type { WarmMemory } from './warm-memory.ts';

/** `all` measures for so long at most; what is left of twenty minutes is for what follows the last rounds. */
const ALL_BUDGET_MS = 18.5 * 60_000;
/** Of a scenario that others take turns with: a gateway, a load generator and peers, all of which stay meanwhile. */
const SCENARIO_BYTES = 2 ** 30;
/** Of scenarios in one piece. */
const WHOLE_LANES = 2;

export interface RunParts {
  readonly stop?: AbortSignal;
  /** Makes memory ready before anything starts. */
  readonly warm?: (stop: AbortSignal) => Promise<WarmMemory>;
}

export async function runScenarios(
  line: CommandLine,
  command: string,
  scenarios: readonly Scenario[],
  progress: ProgressBar,
  { stop = new AbortController().signal, warm }: RunParts = {},
): Promise<BenchReport> {
  const startedMs = performance.now();
  const startedUtc = new Date().toISOString();
  const busyAtFirst = await othersBusy();
  const chosen = scenarios.filter(({ name }) => line.scenario === ALL || line.scenario === name);
  const skipped = chosen.flatMap(({ name, noTarget }) =>
    line.common.target === undefined || noTarget === undefined ? [] : [{ name, reason: noTarget }],
  );
  const runnable = chosen.filter(({ name }) => !skipped.some((each) => each.name === name));
  const { target, baseline } = line.common;
  // Before any load: a target that nobody can reach is no target.
  const gateway = target === undefined ? gatewayVersion() : await targetVersion(target);
  let memory: WarmMemory | undefined;
  if (warm !== undefined) {
    progress.begin('memory');
    progress.step('taken and freed, so that the host leaves it here');
    memory = await warm(stop);
  }
  progress.begin('the load generator');
  progress.step('against an empty handler');
  const generator = await checkGenerator();
  const turns = new Turns(startedMs + ALL_BUDGET_MS);
  const places = runnable.map((scenario, index) => ({
    scenario,
    turn: turns.join(scenario.share),
    faults: [] as string[],
    title: runnable.length === 1 ? scenario.name : `${scenario.name} (${index + 1} of ${runnable.length})`,
  }));
  const interrupted = new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener('abort', () => resolve());
  });
  // A promise that nobody waits for any more, of a scenario that failed or was given up, is its fault too.
  const stray = (error: unknown) => {
    for (const { turn, faults } of places) if (turn.isOn) faults.push(messageOf(error));
  };
  process.on('unhandledRejection', stray);
  const reports = new Map<Scenario, ScenarioReport>();
  // The first one starts on the machine as it was before the generator was tried.
  let busyNow: number | undefined = busyAtFirst;
  const lane = async (queue: Iterable<(typeof places)[number]>) => {
    for (const { scenario, ...stage } of queue) {
      await Promise.race([stage.turn.begin(), interrupted]);
      if (stop.aborted) return;
      progress.begin(stage.title);
      const busy = busyNow ?? (await othersBusy());
      busyNow = undefined;
      reports.set(scenario, await runScenario(line, scenario, { ...stage, progress, busy, interrupted }));
    }
  };
  await Promise.all(
    lanesOf(places, together(line)).flatMap(({ queue, count }) => {
      const left = queue.values();
      return Array.from({ length: count }, () => lane(left));
    }),
  );
  process.off('unhandledRejection', stray);
  await memory?.release();
  progress.end();
  return {
    schema: SCHEMA,
    command,
    startedUtc,
    elapsedMs: performance.now() - startedMs,
    machine: machine(),
    gateway,
    ...(baseline === undefined ? {} : { baseline: gatewayVersion(baseline) }),
    ...(memory === undefined ? {} : { warmBytes: memory.bytes }),
    generator,
    scenarios: runnable.flatMap((scenario) => reports.get(scenario) ?? []),
    skipped,
  };
}

/** How many scenarios take turns: all, where memory suffices. A target is measured by one after the other. */
export function together(
  { common: { target } }: { readonly common: Pick<CommandLine['common'], 'target'> },
  availableBytes: number = process.availableMemory(),
): number {
  return target === undefined ? Math.max(1, Math.floor(availableBytes / SCENARIO_BYTES)) : 1;
}

/** Those in one piece come in between the turns of the others, few at a time: the turns are to fill the whole run. */
export function lanesOf<Place extends { readonly scenario: Pick<Scenario, 'inOnePiece'> }>(
  places: readonly Place[],
  count: number,
): { readonly queue: readonly Place[]; readonly count: number }[] {
  if (count <= WHOLE_LANES) return [{ queue: places, count: 1 }];
  const isWhole = ({ scenario }: Place) => scenario.inOnePiece === true;
  return [
    { queue: places.filter((place) => !isWhole(place)), count: count - WHOLE_LANES },
    { queue: places.filter(isWhole), count: WHOLE_LANES },
  ];
}
