/**
 * What the limiter costs. Alone in a process: one check, and both checks of a request without a session, with one
 * address and with 100,000, beside a Map and rate-limiter-flexible; and 3,000,000 addresses in one window. Over HTTP: a
 * hello request with its scopes on against the same with all scopes off.
 */
import { startWorker, type Worker } from '../children.ts';
import { gatewayUnderLoad } from '../gateway.ts';
import type { FillReport, LoopReport } from '../limiter-loops.ts';
import { type Comparison, type Measured, processorTimeOf, type Subject } from '../measure.ts';
import { type Bench, rawRequest, type Scenario } from '../scenario.ts';
import { spreadOf } from '../statistics.ts';
import type { Figure } from '../targets.ts';

const MANY = 100_000;
/** Callers in one window, of spec'd attacks: rotating X-Forwarded-For, an IPv6 walk. */
const CALLERS = 3_000_000;
const SECOND_NS = 1e9;
/** Of each loop, in turns: two of one build differ by up to a fifth, for as long as they run. */
const PROCESSES = 3;
/** Of each process: a loop of one function is compiled soon. */
const LOOP_WARM_MS = 250;
const MEBIBYTE = 1_048_576;
const CHECK = 'limiter check';
const MANY_SUFFIX = ', 100,000 addresses';
const CHECK_MANY = CHECK + MANY_SUFFIX;
const BOTH = 'both checks of a request';
const BOTH_MANY = BOTH + MANY_SUFFIX;
const ON = 'hello, scopes on';
const OFF = 'hello, scopes off';
const SHARE = 'both checks, share of a hello request';
/** A scope whose rate is 0 is off (config.md "Runtime settings"). */
const NO_LIMITS = {
  ApiRPSLimit: 0,
  IpRPSLimit: 0,
  PubKeyApiRPSLimit: 0,
  SessionApiRPSLimit: 0,
  UserApiRPSLimit: 0,
  McpApiRPSLimit: 0,
};

export const limiter: Scenario = {
  name: 'limiter',
  summary: 'one check of the limiter in ns, its bound of memory, and its share of a hello request',
  noTarget: 'it runs the limiter in processes of its own',
  unit: 'checks',
  // Loops need no time to begin.
  defaults: { sliceMs: 15 },
  share: 1.8,
  targets: [
    { figure: CHECK, atMost: 300, row: 'limiter check' },
    { figure: CHECK_MANY, atMost: 300, row: 'limiter check' },
    {
      of: ON,
      against: OFF,
      by: 'processor time',
      atLeast: 0.97,
      row: 'limiter, share of the hello throughput',
    },
  ],
  async run(bench) {
    const subjects: Subject[] = [];
    for (const addresses of [1, MANY]) subjects.push(...(await loopsOver(bench, addresses)));
    subjects.push(await hello(bench, ON, {}), await hello(bench, OFF, NO_LIMITS));
    const comparison = await bench.compare(subjects);
    bench.announce(`${CALLERS.toLocaleString('en')} addresses in one window`);
    const filled = await fillOnce(bench);
    return { comparison, figures: figuresOf(comparison, filled), notes: notesOf(filled) };
  },
};

async function loopsOver(bench: Bench, addresses: number): Promise<Subject[]> {
  const suffix = addresses === 1 ? '' : MANY_SUFFIX;
  const group = `loops${suffix}`;
  const start = async (name: string, kind: 'server' | 'peer', file: string, args: readonly string[]) => {
    const one = () => startWorker(kind, file, [...args, String(addresses)]);
    return loopSubject(
      bench,
      name + suffix,
      group,
      await Promise.all(Array.from({ length: PROCESSES }, one)),
    );
  };
  const loops = [await start(CHECK, 'server', 'limiter', ['address'])];
  if (bench.invite('map')) loops.push(await start('Map, get and set', 'server', 'limiter', ['map']));
  if (bench.invite('rate-limiter'))
    loops.push(await start('rate-limiter-flexible', 'peer', 'rate-limiter', []));
  // Its figure is of interest; a ratio to one check says that two are more.
  loops.push({ ...(await start(BOTH, 'server', 'limiter', ['request'])), group: BOTH + suffix });
  return loops;
}

function loopSubject(bench: Bench, name: string, group: string, workers: readonly Worker[]): Subject {
  for (const worker of workers) bench.afterwards(() => worker.stop());
  const warmupMs = Math.min(LOOP_WARM_MS, bench.options.warmupMs);
  let turn = 0;
  const subject = bench.loop({
    name,
    group,
    pids: workers.map(({ pid }) => pid),
    async run(durationMs) {
      const worker = workers[turn % workers.length];
      turn += 1;
      if (worker === undefined) throw new Error(`no process of ${name}`);
      return await worker.ask<LoopReport>({ durationMs });
    },
  });
  const warmUp = async () => {
    for (const worker of workers) await worker.ask<LoopReport>({ durationMs: warmupMs });
  };
  return { ...subject, warmUp };
}

/** get_info of nobody: two scopes and a small answer. */
async function hello(bench: Bench, name: string, settings: object): Promise<Subject> {
  const { url, pids } = await gatewayUnderLoad(bench, undefined, { settings });
  const requests = [rawRequest('GET', `${url}/auth/v1/get_info`)];
  const subject = bench.subject(name, pids, () => ({ url, requests, expect: '"utcNow":"' }));
  return { ...subject, group: 'hello' };
}

async function fillOnce(bench: Bench): Promise<FillReport> {
  const worker = await startWorker('server', 'limiter');
  bench.afterwards(() => worker.stop());
  return worker.ask<FillReport>({ fill: CALLERS });
}

function figuresOf({ subjects }: Comparison, filled: FillReport): Figure[] {
  const named = (name: string) => subjects.find((subject) => subject.name === name);
  const figures = [CHECK, CHECK_MANY, BOTH, BOTH_MANY].map((name) => checkTime(name, named(name)));
  const hello = named(ON);
  const helloUs = (hello === undefined ? undefined : processorTimeOf(hello)) ?? Number.NaN;
  const bothNs = checkTime(BOTH, named(BOTH)).value;
  return [
    ...figures,
    { name: SHARE, unit: '%', value: bothNs / 10 / helloUs },
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
  const { median: value, from, to } = spreadOf(rounds);
  return { name, unit: 'ns', value, from, to };
}

function notesOf({ counters, heapBytes }: FillReport): string[] {
  return [
    `Each loop runs in ${PROCESSES} processes that take turns.`,
    `${CALLERS.toLocaleString('en')} addresses in one window: ${counters.toLocaleString('en')} counters, ${(heapBytes / MEBIBYTE).toFixed(0)} MiB of heap; the others share counters.`,
    `"${SHARE}": of both checks alone. Hello with scopes on and off differ by what else a limited answer has, its X-RateLimit header.`,
  ];
}
