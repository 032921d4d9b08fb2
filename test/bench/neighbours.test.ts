/** Two callers beside each other: what counts as slow, what is held, and one pair for real. */
import { createServer, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { startServer } from '../../bench/measure/children.ts';
import { loadOf } from '../../bench/report/report.ts';
import { type Held, hold, timed } from '../../bench/scenarios/neighbours/callers.ts';
import { PAIRS } from '../../bench/scenarios/neighbours/pairs.ts';
import { figureOf, neighbours, subjectsOf } from '../../bench/scenarios/neighbours.ts';
import { listenFor } from '../../kit/http.ts';
import { benchOf } from './fixtures/bench.ts';

interface Listener {
  readonly url: string;
  readonly sockets: Socket[];
  /** Resolves when so many connections have come in all. */
  came(count: number): Promise<void>;
}

async function listener(t: Test): Promise<Listener> {
  const sockets: Socket[] = [];
  let onCome = () => undefined as undefined;
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    onCome();
  });
  const { port } = await listenFor(t, server);
  return {
    url: `http://127.0.0.1:${port}`,
    sockets,
    came: (count) =>
      new Promise((resolve) => {
        onCome = () => {
          if (sockets.length >= count) resolve();
          return undefined;
        };
        onCome();
      }),
  };
}

t.test(
  'neighbours: a call without a good answer counts as one of the time-out, and by its kind',
  async (t) => {
    let calls = 0;
    const ask = async () => {
      calls += 1;
      if (calls % 10 === 0) throw new Error('status 429');
    };
    const { details, ratePerSecond } = await timed(ask, {
      perSecond: 1_000,
      durationMs: 100,
      timeoutMs: 700,
    });
    t.match(details, { answers: 90, errors: { 'status 429': 10 } });
    t.ok(
      Number(loadOf({ ...round(details), ratePerSecond })?.latencyUs.p99) >= 699_000,
      'a refusal is not fast',
    );
  },
);

t.test('neighbours: a call that is never answered ends with the time-out', async (t) => {
  const never = () => new Promise<void>(() => undefined);
  const { details } = await timed(never, { perSecond: 100, durationMs: 50, timeoutMs: 20 });
  t.match(details, { answers: 0, errors: { timeout: 5 }, latencyUs: { max: /^(19|20)\d\d\d$/ } });
});

t.test('neighbours: a call is late from when it was due, not from when it could begin', async (t) => {
  const busy = async () => {
    const untilMs = performance.now() + 5;
    while (performance.now() < untilMs);
  };
  const { details } = await timed(busy, { perSecond: 1_000, durationMs: 50 });
  const { max } = (details as { latencyUs: { max: number } }).latencyUs;
  t.ok(max >= 150_000, `50 calls of 5 ms that were due within 50 ms: ${max} us`);
});

t.test(
  'neighbours: held connections send their text, reopen, and close at the end of the abuse',
  async (t) => {
    const { url, sockets, came } = await listener(t);
    const held: Held = await hold(url, 3, { text: 'POST / HTTP/1.1\r\n', localAddress: '127.0.0.2' });
    await came(3);
    t.equal(held.open(), 3);
    t.same(
      sockets.map(({ remoteAddress }) => remoteAddress),
      ['127.0.0.2', '127.0.0.2', '127.0.0.2'],
    );
    const [first] = sockets;
    const [text] = await new Promise<[Buffer]>((resolve) =>
      first?.once('data', (data: Buffer) => resolve([data])),
    );
    t.equal(text.toString(), 'POST / HTTP/1.1\r\n');
    first?.destroy();
    await came(4);
    const ended = sockets.slice(1).map((socket) => new Promise((resolve) => socket.once('close', resolve)));
    for (const socket of sockets) socket.resume();
    held.release();
    await Promise.all(ended);
    t.equal(sockets.length, 4, 'none comes back');
  },
);

t.test('neighbours: each pair names the shared bound, with twice the p99 alone as target', async (t) => {
  t.equal(new Set(PAIRS.map(({ name }) => name)).size, PAIRS.length);
  for (const { name, bound, what, perSecond } of PAIRS)
    t.ok(bound.length > 5 && what.length > 20 && perSecond > 0, name);
  t.same(
    neighbours.targets?.map((target) => 'figure' in target && [target.figure, target.atMost]),
    PAIRS.map(({ name }) => [`p99 beside ${name}`, 2]),
  );
  for (const word of ['connections to a module', 'bandwidth', 'connections of the public listener'])
    t.ok(
      PAIRS.some(({ bound }) => bound === word),
      word,
    );
});

t.test('neighbours: rounds alone and with the abuse are compared in pairs', async (t) => {
  const [pair] = PAIRS;
  if (pair === undefined) throw new Error('no pair');
  const measured = (name: string, p99s: number[]) => ({
    name: `${pair.name}: ${name}`,
    medianPerSecond: 1,
    rounds: p99s.map((p99) => round({ latencyUs: { p99 }, answers: 0 })),
  });
  const figure = figureOf(pair, [
    measured('the other one alone', [10, 20, 10]),
    measured('beside', [30, 40, 10]),
  ]);
  t.match(figure, { name: `p99 beside ${pair.name}`, value: 2, from: 1, to: 3 });
});

t.test('neighbours: a pair runs against a gateway: the abuse takes its share, and ends', async (t) => {
  const flood = PAIRS.find(({ name }) => name === 'flood of calls');
  if (flood === undefined) throw new Error('no flood');
  const bench = benchOf(t, { durationMs: 300, warmupMs: 100 });
  const backend = await startServer('wallet');
  bench.onTeardown(() => backend.stop());
  const { subjects, ratios } = await bench.compare(await subjectsOf(bench, flood, backend.url));
  t.same(ratios, [], 'the figures are the comparison');
  for (const { name, rounds } of subjects) {
    const load = loadOf(rounds[0]);
    t.ok((load?.answers ?? 0) > 0, `${name}: ${load?.answers} answers`);
    t.same(load?.errors, {}, `${name}: the second session is within its own share`);
  }
});

function round(details: Readonly<Record<string, unknown>>) {
  return { details, ratePerSecond: 1, cpuMs: undefined, cpuUsPerAnswer: undefined, rssBytes: undefined };
}
