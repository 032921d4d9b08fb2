/**
 * 1 to 10,000 connections, all busy: what an answer costs and how long it takes. In the closed loop a connection more is
 * a request more that waits, so p99 grows with the queue and the rate must not fall.
 */
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
/** With fewer connections the gateway sleeps between two requests, and waking up is most of what they cost. */
const GROWTH_FROM = 100;
const MODULE_KEY = 'bench-module-key-0001';
const ROOM = { ConnectionsMax: 50_000 };

export const curveConnections: Scenario = {
  name: 'curve-connections',
  summary:
    'session check and tools/call over 1 to 10,000 busy connections (at most --connections with --target)',
  defaults: { warmupMs: 1_000 },
  async run(bench) {
    const { target, connections } = bench.options;
    const backend = await startServer('wallet');
    bench.afterwards(() => backend.stop());
    const modules = { wallet: { url: backend.url, key: MODULE_KEY } };
    const counts = target === undefined ? CONNECTIONS : CONNECTIONS.filter((count) => count <= connections);
    const crowds: Crowd[] = [];
    // One for each count: connections stay open while others are measured. A target is one and the same.
    for (const count of target === undefined ? counts : counts.slice(0, 1)) {
      const { url, pids } = await gatewayUnderLoad(bench, modules, { settings: ROOM });
      const people = await makeAgents(bench, url, bench.options.users || USERS);
      const cookies = people.map(({ cookie }) => cookie);
      const call = callTool(url, await bearersOf(url, people), 'wallet_get_balance');
      crowds.push({ count, url, pids, check: checkCookies(url, cookies), call });
    }
    const subjects: Subject[] = [];
    const line = (label: string, askOf: (crowd: Crowd) => Ask, max: number): CurveLine => ({
      label,
      points: counts
        .filter((count) => count <= max)
        .map((count) => {
          const name = `${label}, ${count.toLocaleString('en')}`;
          const crowd = crowds.find((each) => each.count === count) ?? crowds[0];
          if (crowd === undefined) throw new Error('no gateway');
          const { url, pids } = crowd;
          const subject = bench.subject(name, pids, () => ({ url, ...askOf(crowd), connections: count }));
          subjects.push({ ...subject, group: name });
          return { x: count, subject: name };
        }),
    });
    const lines = [
      line('session check', ({ check }) => check, Number.POSITIVE_INFINITY),
      line('tools/call', ({ call }) => call, CALLS_MAX),
    ];
    // One point, as at a target with few connections, has nothing to grow from.
    const growths = lines
      .map(({ label, points }) => ({ label, points: points.filter(({ x }) => x >= GROWTH_FROM) }))
      .filter(({ points }) => points.length > 1);
    const comparison = await bench.compare(subjects, { pairs: growths.map(growthPair) });
    return {
      comparison,
      notes: [
        'Each connection has an answer in every round: with 10,000 of them a round takes longer than with one.',
        'A gateway for each number of connections; all stay open.',
      ],
      figures: growths.map((each) => growthOf(comparison, each)),
      series: chartsOf(comparison, { label: 'connections', log: true }, lines),
    };
  },
};

interface Crowd {
  /** Connections to this gateway. */
  readonly count: number;
  readonly url: string;
  readonly pids: readonly number[];
  readonly check: Ask;
  readonly call: Ask;
}
