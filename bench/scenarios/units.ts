/** Units of the gateway measured alone, in processes of their own: each scenario is rows of what one process repeats. */
import type { FillReport } from '../subjects/limiter-loops.ts';
import { logInsBesideIdle } from '../subjects/passkeys.ts';
import { runtimeFault } from '../subjects/runtime.ts';
import { type Row, unit } from './unit.ts';

/** Callers in one window, of spec'd attacks: rotating X-Forwarded-For, an IPv6 walk. */
const CALLERS = 3_000_000;
const MEBIBYTE = 1_048_576;

const TURNS = ['server', 'turns'] as const;

export const turn = unit({
  name: 'turn',
  summary: 'actor runtime: durable turns against raw LMDB puts at as many clients; volatile turns',
  unit: 'turns',
  noTarget: 'it runs the actor runtime in a process of its own, without a gateway',
  baseline: true,
  baselineFault: runtimeFault,
  targets: [
    {
      against: 'raw LMDB puts',
      by: 'rate',
      atLeast: 0.8,
      row: 'durable turn against raw puts at 64 clients',
    },
    { figure: 'volatile turn', atMost: 0.5, row: 'volatile turn' },
  ],
  // Each round opens and closes its own journal, outside of the measured time.
  rows: [
    { name: 'durable turns', process: TURNS, order: { kind: 'durable' } },
    { name: 'raw LMDB puts', process: TURNS, order: { kind: 'raw' }, peer: 'raw-puts' },
    {
      name: 'volatile turns',
      process: TURNS,
      order: { kind: 'volatile' },
      group: 'volatile',
      figures: [{ name: 'volatile turn', unit: 'us', of: ({ ratePerSecond }) => 1e6 / ratePerSecond }],
    },
  ],
});

function limiterRows(addresses: number, suffix: string): Row[] {
  const group = `loops${suffix}`;
  const count = String(addresses);
  return [
    {
      name: `limiter check${suffix}`,
      group,
      process: ['server', 'limiter', 'address', count],
      figures: [
        {
          name: `limiter check${suffix}`,
          unit: 'ns',
          // Processor time, not elapsed: neighbours on the machine are no cost of a check.
          of: ({ cpuUsPerAnswer, ratePerSecond }) =>
            (cpuUsPerAnswer ?? Number.NaN) * 1_000 || 1e9 / ratePerSecond,
        },
      ],
    },
    { name: `Map, get and set${suffix}`, group, process: ['server', 'limiter', 'map', count], peer: 'map' },
    {
      name: `rate-limiter-flexible${suffix}`,
      group,
      process: ['peer', 'rate-limiter', count],
      peer: 'rate-limiter',
    },
  ];
}

export const limiter = unit({
  name: 'limiter',
  summary: 'one check of the limiter in ns beside a Map and rate-limiter-flexible, and its bound of memory',
  noTarget: 'it runs the limiter in processes of its own',
  unit: 'checks',
  // A loop of one function is compiled soon.
  defaults: { warmupMs: 250 },
  targets: ['', ', 100,000 addresses'].map((suffix) => ({
    figure: `limiter check${suffix}`,
    atMost: 300,
    row: 'limiter check',
  })),
  rows: [...limiterRows(1, ''), ...limiterRows(100_000, ', 100,000 addresses')],
  async after(bench, start) {
    const callers = `${CALLERS.toLocaleString('en')} addresses in one window`;
    bench.announce(callers);
    const { worker } = await start(['server', 'limiter']);
    const filled = await worker.ask<FillReport>({ fill: CALLERS });
    const heapMib = filled.heapBytes / MEBIBYTE;
    return {
      figures: [
        { name: 'counters held', unit: '', value: filled.counters },
        { name: `heap of ${callers}`, unit: 'MiB', value: heapMib },
        { name: 'limiter check beyond the bound', unit: 'ns', value: filled.nsPerCheckBeyond },
      ],
      notes: [
        `${callers}: ${filled.counters.toLocaleString('en')} counters, ${heapMib.toFixed(0)} MiB of heap; the others share counters.`,
      ],
    };
  },
});

const CALLS = ['server', 'node-calls'] as const;

export const nodeCalls = unit({
  name: 'node-calls',
  summary: 'calls between two nodes over a link: processor time of caller and callee, beside bare frames',
  unit: 'calls',
  noTarget: 'it runs two ends of a link in processes of its own',
  targets: ['caller', 'callee'].map((figure) => ({ figure, atMost: 10, row: 'call between nodes' })),
  rows: [
    {
      name: 'calls over a link',
      process: CALLS,
      callee: 'node-calls',
      order: { kind: 'link' },
      figures: [
        {
          name: 'caller',
          unit: 'us',
          of: ({ details }) => (Number(details['callerMs']) * 1_000) / Number(details['answers']),
        },
        {
          name: 'callee',
          unit: 'us',
          of: ({ cpuMs = Number.NaN, details }) =>
            ((cpuMs - Number(details['callerMs'])) * 1_000) / Number(details['answers']),
        },
      ],
    },
    {
      name: 'bare frames',
      process: CALLS,
      callee: 'node-calls',
      order: { kind: 'bare' },
      peer: 'bare-frames',
    },
  ],
});

export const passkey = unit({
  name: 'passkey',
  summary: 'passkey verifications through the pool against the library alone; the event loop at 200 logins/s',
  unit: 'verifications',
  noTarget: 'passkeys of another site need a browser there',
  rows: [
    { name: 'pool, 1 thread', process: ['server', 'webauthn', 'pool'] },
    { name: 'library', process: ['server', 'webauthn', 'library'], peer: 'webauthn-library' },
  ],
  after: async (bench) => ({ notes: [await logInsBesideIdle(bench)] }),
});
