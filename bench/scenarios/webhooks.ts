/**
 * Webhooks: how long an event takes from its push to its receiver for 50 healthy applications, alone and beside black
 * holes; and how many deliveries a second go out when as many events as may be wait.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expectOk, type Person, request, signUp } from '../../kit/agent.ts';
import { startServer } from '../measure/children.ts';
import type { Comparison, Sample, Subject } from '../measure/measure.ts';
import { median } from '../measure/statistics.ts';
import type { Bench, Scenario } from '../scenario.ts';
import { type Build, isOfBaseline } from '../subjects/baseline.ts';
import { gatewayUnderLoad } from '../subjects/gateway.ts';
import type { WebhookReport } from '../subjects/servers/webhooks.ts';

const MODULE_KEY = 'bench-module-key-0123456789';
const HEALTHY = 50;
const HOLES = 100;
/** Applications of one account (spec: at most 20). */
const APPS_PER_ACCOUNT = 20;
/** Events a second to the healthy applications, unless given. */
const RATE_PER_SECOND = 1_000;
const SECOND_MS = 1_000;
/** Milliseconds in which deliveries under way at the end of a round may arrive. */
const DRAIN_MS = 1_500;
const SAMPLE_INTERVAL_MS = 20;
/** Events that wait when deliveries are counted as fast as they go; within the backlog of one application. */
const PILE_EVENTS = 100;

interface WebhookSetup {
  readonly bench: Bench;
  /** Behind the names of its subjects. */
  readonly suffix: Build['suffix'];
  readonly internal: string;
  readonly url: string;
  readonly receiver: string;
  readonly pids: readonly number[];
  readonly healthy: readonly Person[];
  readonly holes: readonly { readonly owner: Person; readonly appId: string }[];
  tick: number;
}

const ALONE = '50 healthy applications';

const nowMs = () => performance.timeOrigin + performance.now();

export const webhooks: Scenario = {
  name: 'webhooks',
  summary: 'webhook deliveries: latency of 50 applications alone and beside black holes, deliveries a second',
  unit: 'deliveries',
  baseline: true,
  noTarget: 'it pushes events with a module key of its own gateway',
  // A load that has just begun has latencies of its own.
  defaults: { durationMs: 600 },
  async run(bench) {
    const setups: WebhookSetup[] = [];
    for (const build of bench.builds) setups.push(await openWorld(bench, build));
    const comparison = await bench.compare(
      setups.flatMap((setup) => [
        latencySubject(setup, ALONE, 0),
        latencySubject(setup, 'beside 1 black hole', 1),
        latencySubject(setup, `beside ${HOLES} black holes`, HOLES),
        pileSubject(setup),
      ]),
    );
    return { comparison, notes: setups.flatMap(({ suffix }) => notesOf(comparison, suffix)) };
  },
};

function notesOf({ subjects }: Comparison, suffix: Build['suffix']): string[] {
  const own = subjects.filter(({ name }) => isOfBaseline(name) === (suffix !== ''));
  const figures = ({ rounds }: (typeof own)[number], key: string) =>
    rounds.map(({ details }) => Number(details[key]));
  const notes = own.map((subject) => {
    const [p50, p99, lost] = ['p50Ms', 'p99Ms', 'lost'].map((key) => median(figures(subject, key)));
    return `${subject.name}: push to arrival p50 ${p50?.toFixed(2)} ms, p99 ${p99?.toFixed(2)} ms; lost ${lost}`;
  });
  const alone = own.flatMap((subject) => (subject.name === ALONE + suffix ? figures(subject, 'p99Ms') : []));
  for (const subject of own.filter(({ name }) => name.startsWith('beside'))) {
    const ratios = figures(subject, 'p99Ms').map((p99, round) => p99 / (alone[round] ?? Number.NaN));
    notes.push(
      `p99 ${subject.name} / alone: ${median(ratios).toFixed(3)} (${Math.min(...ratios).toFixed(3)} to ${Math.max(...ratios).toFixed(3)})`,
    );
  }
  return notes;
}

async function openWorld(bench: Bench, build: Build): Promise<WebhookSetup> {
  const receiver = await startServer('webhooks');
  bench.onTeardown(() => receiver.stop());
  const gateway = await gatewayUnderLoad(
    bench,
    { core: { url: 'http://127.0.0.1:9', key: MODULE_KEY } },
    { settings: { EventReorderMilliseconds: 0 }, build },
  );
  const { url, internal, pids } = gateway;
  const { suffix } = build;
  if (internal === undefined)
    throw new Error('webhooks: events are pushed on the internal listener; no --target');
  const holePort = new URL(receiver.url).port;
  const healthy: Person[] = [];
  const holes: { owner: Person; appId: string }[] = [];
  bench.announce(`${HEALTHY} applications and ${HOLES} black holes`);
  for (let index = 0; index < HEALTHY; index += 1) {
    const owner = await signUp(url);
    await register(url, owner, index, `${receiver.url}/hook`);
    healthy.push(owner);
  }
  let owner: Person | undefined;
  for (let index = 0; index < HOLES; index += 1) {
    if (owner === undefined || index % APPS_PER_ACCOUNT === 0) owner = await signUp(url);
    // A host each: the bound of one host is not what is measured.
    const appId = await register(url, owner, index, `http://127.0.0.${2 + index}:${holePort}/hole`);
    holes.push({ owner, appId });
  }
  return { bench, suffix, internal, url, receiver: receiver.url, pids, healthy, holes, tick: 0 };
}

async function register(url: string, owner: Person, index: number, webhookUrl: string): Promise<string> {
  const body = { name: `App ${index}`, url: `https://app${index}.example`, webhookUrl };
  const headers = { Cookie: owner.cookie };
  const answer = expectOk('upsert', await request(`${url}/auth/v1/app/upsert_usr_app`, { headers, body }));
  return String(answer.json['result']?.['id']);
}

function eventFor(setup: WebhookSetup, crmId: string): object {
  setup.tick += 1;
  const tick = String(setup.tick);
  return { module: 'core', tick, type: 'Bench', crmId, data: { id: tick, sentMs: nowMs() } };
}

async function push({ internal }: WebhookSetup, events: readonly object[]): Promise<void> {
  const headers = { 'X-Module-Key': MODULE_KEY };
  expectOk('push', await request(`${internal}/internal/v1/events`, { headers, body: { events } }));
}

async function report(setup: WebhookSetup): Promise<WebhookReport> {
  return (await (await fetch(`${setup.receiver}/report`)).json()) as WebhookReport;
}

/** One event for every healthy application at fixed times; those of the black holes hang all the while. */
async function latency(setup: WebhookSetup, holes: number, durationMs: number): Promise<Sample> {
  const chosen = setup.holes.slice(0, holes);
  for (const { owner, appId } of chosen) {
    const headers = { Cookie: owner.cookie };
    expectOk('enable', await request(`${setup.url}/auth/v1/app/enable`, { headers, body: { id: appId } }));
  }
  await report(setup);
  const ratePerSecond = setup.bench.options.ratePerSecond ?? RATE_PER_SECOND;
  const everyMs = (SECOND_MS * HEALTHY) / ratePerSecond;
  const startMs = nowMs();
  let pushes = 0;
  const under: Promise<void>[] = [];
  for (let dueMs = startMs; dueMs < startMs + durationMs; dueMs += everyMs) {
    await sleep(Math.max(0, dueMs - nowMs()));
    const owners = [...setup.healthy, ...new Set(chosen.map(({ owner }) => owner))];
    under.push(
      push(
        setup,
        owners.map((owner) => eventFor(setup, owner.userId)),
      ),
    );
    pushes += 1;
  }
  await Promise.all(under);
  const elapsedMs = nowMs() - startMs;
  const { deliveries, latenciesMs, reached } = await arrived(setup, pushes * HEALTHY, DRAIN_MS);
  const events = latenciesMs.length;
  const at = (share: number) => latenciesMs[Math.min(events - 1, Math.floor(events * share))] ?? Number.NaN;
  return {
    ratePerSecond: (deliveries / elapsedMs) * SECOND_MS,
    details: {
      answersInAll: deliveries,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      lost: pushes * HEALTHY - events,
      reachedHoles: reached,
    },
  };
}

interface Arrived {
  readonly deliveries: number;
  /** Latency of each event, sorted. */
  readonly latenciesMs: readonly number[];
  /** Deliveries that hang in black holes. */
  readonly reached: number;
}

/** Collects the arrivals since the last report, when all events are there or the time-out has passed. */
async function arrived(setup: WebhookSetup, wanted: number, timeoutMs: number): Promise<Arrived> {
  const untilMs = nowMs() + timeoutMs;
  const latenciesMs: number[] = [];
  let deliveries = 0;
  let reached = 0;
  for (;;) {
    const part = await report(setup);
    deliveries += part.deliveries;
    reached += part.holes;
    latenciesMs.push(...part.latenciesMs);
    if (latenciesMs.length >= wanted || nowMs() > untilMs) break;
    await sleep(SAMPLE_INTERVAL_MS);
  }
  return { deliveries, reached, latenciesMs: latenciesMs.sort((one, other) => one - other) };
}

function latencySubject(setup: WebhookSetup, title: string, holes: number): Subject {
  const name = title + setup.suffix;
  const { durationMs, warmupMs } = setup.bench.options;
  return {
    name,
    pids: setup.pids,
    // Events come at a given rate: a ratio of rates would be one, whatever is slow. The notes compare latencies.
    group: name,
    // One gateway for all of them.
    ...(holes === 0 ? { warmUp: () => latency(setup, 0, warmupMs) } : {}),
    round: () => latency(setup, holes, durationMs),
  };
}

/** Many events for each application at once, until all are delivered: in batches of up to 100. */
function pileSubject(setup: WebhookSetup): Subject {
  return {
    name: `events of a pile, batches of up to 100${setup.suffix}`,
    // The rate counts events, not deliveries: no ratio to the others.
    group: 'pile',
    pids: setup.pids,
    async round() {
      await report(setup);
      const startMs = nowMs();
      const wanted = PILE_EVENTS * HEALTHY;
      for (let sent = 0; sent < wanted; sent += 1_000) {
        const owners = Array.from({ length: 1_000 }, (_, index) => setup.healthy[index % HEALTHY]);
        await push(
          setup,
          owners.flatMap((owner) => (owner === undefined ? [] : [eventFor(setup, owner.userId)])),
        );
      }
      const { deliveries, latenciesMs } = await arrived(setup, wanted, 60 * SECOND_MS);
      const elapsedMs = nowMs() - startMs;
      const at = (share: number) => latenciesMs[Math.floor((latenciesMs.length - 1) * share)] ?? Number.NaN;
      return {
        ratePerSecond: (latenciesMs.length / elapsedMs) * SECOND_MS,
        details: {
          answersInAll: latenciesMs.length,
          deliveries,
          p50Ms: at(0.5),
          p99Ms: at(0.99),
          lost: wanted - latenciesMs.length,
        },
      };
    },
  };
}
