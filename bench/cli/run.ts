/** Runs scenarios, one after the other. One that fails does not stop the others. */

import { checkGenerator } from '../load/generator-check.ts';
import { othersBusy } from '../measure/busy-machine.ts';
import { ALL, type CommandLine } from '../options.ts';
import type { ProgressBar } from '../progress.ts';
import {
  type BenchReport,
  gatewayVersion,
  machine,
  SCHEMA,
  type ScenarioReport,
  targetVersion,
} from '../report/report.ts';
import type { Scenario } from '../scenario.ts';
import { endsOf, expectation, secondsOf } from './budget.ts';
import { runScenario } from './run-scenario.ts';

export async function runScenarios(
  line: CommandLine,
  command: string,
  scenarios: readonly Scenario[],
  progress: ProgressBar,
  stop: AbortSignal = new AbortController().signal,
): Promise<BenchReport> {
  const startedMs = performance.now();
  const startedUtc = new Date().toISOString();
  const { target, baseline } = line.common;
  const chosen = scenarios.filter(({ name, notInAll }) =>
    line.scenario === ALL ? notInAll === undefined : line.scenario === name,
  );
  const skipped = chosen.flatMap(({ name, noTarget }) =>
    target === undefined || noTarget === undefined ? [] : [{ name, reason: noTarget }],
  );
  const runnable = chosen.filter(({ name }) => !skipped.some((each) => each.name === name));
  // Before any load: a target that does not answer is no target.
  const gateway = target === undefined ? gatewayVersion() : await targetVersion(target);
  const names = runnable.map(({ name }) => name);
  progress.begin(line.scenario);
  const expected = expectation(line, names);
  if (expected !== undefined) progress.step(expected);
  // The first scenario starts on the machine as it was before the generator was tried.
  let busy: number | undefined = await othersBusy();
  progress.step('the load generator against an empty handler');
  const generator = await checkGenerator(line.given.durationMs);
  const ends = endsOf(names, startedMs);
  const reports: ScenarioReport[] = [];
  for (const [index, scenario] of runnable.entries()) {
    if (stop.aborted) break;
    const { name } = scenario;
    const isAll = line.scenario === ALL;
    const title = isAll ? `${name} (${index + 1} of ${names.length}, ${secondsOf(name)} s)` : name;
    progress.begin(title);
    busy ??= await othersBusy();
    const endMs = ends.get(name) ?? startedMs;
    reports.push(await runScenario(line, scenario, { progress, busy, endMs, stop }));
    busy = undefined;
  }
  progress.end();
  return {
    schema: SCHEMA,
    command,
    startedUtc,
    elapsedMs: performance.now() - startedMs,
    machine: machine(),
    gateway,
    ...(baseline === undefined ? {} : { baseline: gatewayVersion(baseline) }),
    generator,
    scenarios: reports,
    skipped,
  };
}
