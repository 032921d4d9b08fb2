/**
 * 1 to 10,000 connections, all busy: what an answer costs and how long it takes. In the closed loop a connection more is
 * a request more that waits, so p99 grows with the queue and the rate must not fall.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Ask, bearersOf, callTool, checkCookies } from '../asks.ts';
import { startServer } from '../children.ts';
import { type CurveLine, chartsOf, growthOf, growthPair } from '../curves.ts';
import { gatewayUnderLoad, makeAgents } from '../gateway.ts';
import type { Subject } from '../measure.ts';
import type { Scenario } from '../scenario.ts';

const CONNECTIONS = [1, 10, 100, 1_000, 10_000];
/** More calls than this wait for one module before further ones are refused; the curve of calls ends below it. */
const CALLS_MAX = 1_000;
const USERS = 64;
/** So many wait for one another's answers; 100 ms for each thousand of them, of checks and of this machine. */
const MANY = 1_000;
const WAIT_MS_EACH_1000 = 100;
const MODULE_KEY = 'bench-module-key-0001';
const ROOM = { ConnectionsMax: 50_000 };

export const curveConnections: Scenario = {
  name: 'curve-connections',
  summary:
    'session check and tools/call over 1 to 10,000 busy connections (at most --connections with --target)',
  inAll: { warmupMs: 1_000 },
  share: 1.5,
  async run(bench) {
    const { target, connections } = bench.options;
    const backend = await startServer('wallet');
    bench.afterwards(() => backend.stop());
    const modules = { wallet: { url: backend.url, key: MODULE_KEY } };
    const { url, pids } = await gatewayUnderLoad(bench, modules, { settings: ROOM });
    const people = await makeAgents(bench, url, bench.options.users || USERS);
    const counts = target === undefined ? CONNECTIONS : CONNECTIONS.filter((count) => count <= connections);
    const subjects: Subject[] = [];
    const line = (label: string, ask: Ask, max: number): CurveLine => ({
      label,
      points: counts
        .filter((count) => count <= max)
        .map((count) => {
          const subject = `${label}, ${count.toLocaleString('en')}`;
          const prepare = () => ({
            url,
            ...ask,
            connections: count,
            ...patienceFor(count, bench.options.durationMs),
          });
          subjects.push({ ...settling(bench.subject(subject, pids, prepare), count), group: subject });
          return { x: count, subject };
        }),
    });
    const cookies = people.map(({ cookie }) => cookie);
    const lines = [
      line('session check', checkCookies(url, cookies), Number.POSITIVE_INFINITY),
      line('tools/call', callTool(url, await bearersOf(url, people), 'wallet_get_balance'), CALLS_MAX),
    ];
    const comparison = await bench.compare(subjects, { pairs: lines.map(growthPair) });
    return {
      comparison,
      notes: [
        'A round of 10,000 connections takes a second: each of them waits longer for an answer than other rounds take.',
      ],
      // One point, as at a target with few connections, has nothing to grow from.
      figures: lines.filter(({ points }) => points.length > 1).map((each) => growthOf(comparison, each)),
      series: chartsOf(comparison, { label: 'connections', log: true }, lines),
    };
  },
};

/** A round in which a connection has no time for one answer has no p99. */
function patienceFor(connections: number, durationMs: number): { leadInMs?: number; durationMs?: number } {
  if (connections < MANY) return {};
  const waitMs = (connections * WAIT_MS_EACH_1000) / 1_000;
  return { leadInMs: waitMs, durationMs: Math.max(durationMs, waitMs) };
}

/** What a thousand connections leave to do when they close is no part of the next subject's round. */
function settling(subject: Subject, connections: number): Subject {
  if (connections < MANY) return subject;
  return {
    ...subject,
    async round() {
      const sample = await subject.round();
      await sleep((connections * WAIT_MS_EACH_1000) / 1_000);
      return sample;
    },
  };
}
