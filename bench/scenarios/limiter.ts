/**
 * Cost of one check of the limiter, alone in a process, with one address and with 100,000, beside a Map and
 * rate-limiter-flexible; and 3,000,000 addresses in one window.
 */
import { startWorker } from '../measure/children.ts';
import type { Comparison, Measured, Subject } from '../measure/measure.ts';
import { type Figure, figureOfRounds } from '../report/targets.ts';
import type { Bench, Scenario } from '../scenario.ts';
import type { FillReport, LoopReport } from '../subjects/limiter-loops.ts';

const MANY = 100_000;
/** Callers in one window, of spec'd attacks: rotating X-Forwarded-For, an IPv6 walk. */
const CALLERS = 3_000_000;
const SECOND_NS = 1e9;
const MEBIBYTE = 1_048_576;
const CHECK = 'limiter check';
const MANY_SUFFIX = ', 100,000 addresses';
const CHECK_MANY = CHECK + MANY_SUFFIX;

export const limiter: Scenario = {
  name: 'limiter',
  summary: 'one check of the limiter in ns beside a Map and rate-limiter-flexible, and its bound of memory',
  noTarget: 'it runs the limiter in processes of its own',
  unit: 'checks',
  // A loop of one function is compiled soon.
  defaults: { warmupMs: 250 },
  targets: [
    { figure: CHECK, atMost: 300, row: 'limiter check' },
    { figure: CHECK_MANY, atMost: 300, row: 'limiter check' },
  ],
  async run(bench) {
    const subjects: Subject[] = [];
    for (const addresses of [1, MANY]) subjects.push(...(await loopsOver(bench, addresses)));
    const comparison = await bench.compare(subjects);
    bench.announce(`${CALLERS.toLocaleString('en')} addresses in one window`);
    const filled = await fillOnce(bench);
    return { comparison, figures: figuresOf(comparison, filled), notes: notesOf(filled) };
  },
};

async function loopsOver(bench: Bench, addresses: number): Promise<Subject[]> {
  const suffix = addresses === 1 ? '' : MANY_SUFFIX;
  const start = async (name: string, kind: 'server' | 'peer', file: string, args: readonly string[]) => {
    const worker = await startWorker(kind, file, [...args, String(addresses)]);
    bench.onTeardown(() => worker.stop());
    return bench.loop({
      name: name + suffix,
      group: `loops${suffix}`,
      pids: [worker.pid],
      run: (durationMs) => worker.ask<LoopReport>({ durationMs }),
    });
  };
  const loops = [await start(CHECK, 'server', 'limiter', ['address'])];
  if (bench.optionalPeer('map')) loops.push(await start('Map, get and set', 'server', 'limiter', ['map']));
  if (bench.optionalPeer('rate-limiter'))
    loops.push(await start('rate-limiter-flexible', 'peer', 'rate-limiter', []));
  return loops;
}

async function fillOnce(bench: Bench): Promise<FillReport> {
  const worker = await startWorker('server', 'limiter');
  bench.onTeardown(() => worker.stop());
  return worker.ask<FillReport>({ fill: CALLERS });
}

function figuresOf({ subjects }: Comparison, filled: FillReport): Figure[] {
  const named = (name: string) => subjects.find((subject) => subject.name === name);
  const figures = [CHECK, CHECK_MANY].map((name) => checkTime(name, named(name)));
  return [
    ...figures,
    { name: 'counters held', unit: '', value: filled.counters },
    { name: 'heap of 3,000,000 addresses in one window', unit: 'MiB', value: filled.heapBytes / MEBIBYTE },
    { name: 'limiter check beyond the bound', unit: 'ns', value: filled.nsPerCheckBeyond },
  ];
}

/** Processor time, not elapsed: neighbours on the machine are no cost of a check. */
function checkTime(name: string, measured: Measured | undefined): Figure {
  const rounds = (measured?.rounds ?? []).map(
    ({ cpuUsPerAnswer, ratePerSecond }) =>
      (cpuUsPerAnswer ?? Number.NaN) * 1_000 || SECOND_NS / ratePerSecond,
  );
  return figureOfRounds(name, 'ns', rounds);
}

function notesOf({ counters, heapBytes }: FillReport): string[] {
  return [
    `${CALLERS.toLocaleString('en')} addresses in one window: ${counters.toLocaleString('en')} counters, ${(heapBytes / MEBIBYTE).toFixed(0)} MiB of heap; the others share counters.`,
  ];
}
