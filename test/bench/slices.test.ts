/** Slices: loads that take turns over connections that stay open, loops in parts, and who else uses the machine. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { CpuInfo } from 'node:os';
import t, { type Test } from 'tap';
import { Load } from '../../bench/load.ts';
import { compare, type Subject } from '../../bench/measure.ts';
import { busyShare, othersBusy } from '../../bench/others-busy.ts';
import type { LoadPlan } from '../../bench/plan.ts';
import { Bench, rawRequest, slicesOf } from '../../bench/scenario.ts';
import { OPTIONS } from './fixtures/report.ts';

interface Watched {
  readonly url: string;
  readonly sockets: Set<Socket>;
  requests(): number;
  connections(): number;
}

async function serve(t: Test, answer: RequestListener): Promise<Watched> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let requests = 0;
  const server = createServer((request, response) => {
    requests += 1;
    answer(request, response);
  });
  server.on('connection', (socket) => {
    connections += 1;
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  return { url, sockets, requests: () => requests, connections: () => connections };
}

function planFor({ url }: Watched, more: Partial<LoadPlan> = {}): LoadPlan {
  const { hostname: host, port } = new URL(url);
  return {
    host,
    port: Number(port),
    connections: 4,
    leadInMs: 0,
    durationMs: 0,
    requests: [rawRequest('GET', `${url}/x`)],
    expect: 'good',
    timeoutMs: 10_000,
    ...more,
  };
}

async function open(t: Test, plan: LoadPlan): Promise<Load> {
  const load = await Load.open(plan);
  t.teardown(() => load.close());
  return load;
}

t.test('slices: one connection a lane for all of them, everything answered at the end of each', async (t) => {
  let answered = 0;
  const server = await serve(t, (_request, response) => {
    // Later than the slice's end for some: it waits for them.
    setTimeout(() => {
      answered += 1;
      response.end('good');
    }, 20);
  });
  const load = await open(t, planFor(server));
  for (let slice = 0; slice < 3; slice += 1) {
    await load.slice(30);
    t.equal(answered, server.requests(), 'nothing is under way when a slice ends');
  }
  const report = load.report();
  t.equal(server.connections(), 4);
  t.equal(report.answers, answered, 'each answer counts once, the late ones too');
  t.equal(report.answersInAll, answered);
  t.ok(report.durationMs >= 3 * 30, `${report.durationMs} ms of three slices and their last answers`);
  t.ok(Math.abs(report.ratePerSecond - (report.answers / report.durationMs) * 1_000) < 1e-6);
  t.same(report.errors, {});
  t.match(load.report(), { answers: 0, durationMs: 0, ratePerSecond: 0, errors: {} }, 'and begins anew');
});

t.test('slices: other requests from the next one on', async (t) => {
  const paths = new Set<string>();
  const server = await serve(t, (request, response) => {
    paths.add(request.url ?? '');
    response.end('good');
  });
  const load = await open(t, planFor(server));
  await load.slice(20);
  t.same([...paths], ['/x']);
  paths.clear();
  load.use(['/a', '/b'].map((path) => rawRequest('GET', `${server.url}${path}`)));
  await load.slice(20);
  t.same([...paths].sort(), ['/a', '/b']);
});

t.test('slices: a connection closed while it rests is no error, earlier or unanswered it is', async (t) => {
  let refuse = false;
  const server = await serve(t, (request, response) => {
    if (refuse) request.socket.destroy();
    else response.end('good');
  });
  const closed = async (restMs: number) => {
    const load = await open(t, planFor(server, { restMs }));
    await load.slice(20);
    const before = server.connections();
    for (const socket of server.sockets) socket.destroy();
    while (server.connections() < before + 4) await new Promise((resolve) => setImmediate(resolve));
    await load.slice(20);
    const report = load.report();
    t.ok(report.answers > 0);
    t.equal(server.connections(), before + 4, 'each lane connected again, once');
    load.close();
    return report.errors;
  };
  t.same(await closed(0), {});
  t.same(await closed(60_000), { closed: 4 });
  const load = await open(t, planFor(server, { restMs: 0 }));
  refuse = true;
  await load.slice(20);
  const bad = load.report();
  t.equal(bad.answers, 0);
  t.ok((bad.errors['closed'] ?? 0) >= 4, JSON.stringify(bad.errors));
});

t.test('slices: one that never answers is given up, and the slice ends', async (t) => {
  const server = await serve(t, () => undefined);
  const load = await open(t, planFor(server, { connections: 2, timeoutMs: 100 }));
  await load.slice(20);
  t.same(load.report().errors, { timeout: 2 });
});

/** Notes its slices by its name, and its rounds with a mark. */
function sliced(name: string, order: string[]): Subject {
  return {
    name,
    pids: [],
    slice: async () => order.push(name),
    round: async () => {
      order.push(`${name}!`);
      return { ratePerSecond: 1, details: {} };
    },
  };
}

t.test('compare: slices take turns, another one first each time; who has none follows', async (t) => {
  const order: string[] = [];
  const whole: Subject = {
    name: 'C',
    pids: [],
    round: async () => {
      order.push('C');
      return { ratePerSecond: 1, details: {} };
    },
  };
  await compare([sliced('A', order), whole, sliced('B', order)], {
    least: 2,
    most: 2,
    slices: { count: 2, enoughMs: 1e3 },
  });
  // What slices measured is read before a whole round, which may be one of the same server.
  t.equal(order.join(''), 'ABBAA!B!CBAABB!A!C');
});

t.test('compare: the next round begins with the next subject', async (t) => {
  const order: string[] = [];
  const subjects = ['A', 'B', 'C'].map((name) => sliced(name, order));
  await compare(subjects, { least: 4, most: 4, slices: { count: 1, enoughMs: 1e3 } });
  t.equal(order.join(''), 'ABCA!B!C!BCAB!C!A!CABC!A!B!ABCA!B!C!');
});

t.test('compare: a round that has taken long enough ends early, after a whole turn', async (t) => {
  const order: string[] = [];
  const slow = (name: string): Subject => ({
    name,
    pids: [],
    slice: async () => {
      order.push(name);
      const untilMs = performance.now() + 5;
      while (performance.now() < untilMs);
    },
    round: async () => ({ ratePerSecond: 1, details: {} }),
  });
  await compare([slow('A'), slow('B')], { least: 1, most: 1, slices: { count: 4, enoughMs: 16 } });
  // Two turns take 20 ms of 16, one turn may on a busy machine.
  t.ok(order.length === 2 || order.length === 4, order.join(' '));
  t.same(order, ['A', 'B', 'B', 'A'].slice(0, order.length));
});

t.test('compare: processor time of a round is that of its slices', async (t) => {
  let usedMs = 0;
  const subject: Subject = {
    name: 'A',
    pids: [],
    slice: async () => {
      usedMs += 5;
    },
    round: async () => ({ ratePerSecond: 1, details: { answersInAll: 10 } }),
  };
  // What others do between two slices is none of it.
  const other: Subject = {
    ...subject,
    name: 'B',
    slice: async () => {
      usedMs += 70;
    },
  };
  const cost = async () => ({ cpuMs: usedMs, rssBytes: 1 });
  const { subjects } = await compare([subject, other], {
    least: 1,
    most: 1,
    slices: { count: 3, enoughMs: 1e3 },
    cost,
  });
  t.match(subjects, [
    { rounds: [{ cpuMs: 15, cpuUsPerAnswer: 1_500 }] },
    { rounds: [{ cpuMs: 210, cpuUsPerAnswer: 21_000 }] },
  ]);
});

t.test('loop: parts add up to a round, each in its slice', async (t) => {
  const bench = new Bench(
    { ...OPTIONS, durationMs: 90, warmupMs: 7 },
    { progress: { step: () => undefined, round: () => undefined } },
  );
  t.teardown(() => bench.close());
  const asked: number[] = [];
  const loop = bench.loop({
    name: 'A',
    pids: [],
    run: async (durationMs) => {
      asked.push(durationMs);
      return { count: asked.length, elapsedMs: 10 };
    },
    details: (parts, count) => ({ parts: parts.length, count }),
  });
  const { subjects } = await bench.compare([loop]);
  t.equal(asked[0], 7, 'the warm-up');
  t.same(new Set(asked.slice(1)), new Set([30]), 'three slices a round');
  t.equal(asked.length - 1, 3 * OPTIONS.rounds);
  t.match(subjects[0]?.rounds[0], {
    ratePerSecond: ((2 + 3 + 4) / 30) * 1_000,
    details: { answersInAll: 9, elapsedMs: 30, parts: 3, count: 9 },
  });
});

t.test('slices: as many as fill a round, and time enough for all of them', async (t) => {
  const of = (more: Partial<typeof OPTIONS>, subjects?: number) =>
    slicesOf({ ...OPTIONS, durationMs: 300, sliceMs: 30, ...more }, subjects);
  t.same(of({}), { count: 10, eachMs: 30, enoughMs: 3_000 });
  t.same(of({ durationMs: 20 }), { count: 1, eachMs: 20, enoughMs: 3_000 }, 'no part of a slice');
  t.same(of({ durationMs: 4_000 }, 3), { count: 133, eachMs: 4_000 / 133, enoughMs: 24_000 });
  for (const whole of [{ ratePerSecond: 5 }, { maxRatePerSecond: 5 }, { target: 'http://127.0.0.1:9' }])
    t.match(of(whole), { count: 1, eachMs: 300 }, Object.keys(whole).join());
});

t.test('others: their share of all processors, between two looks', async (t) => {
  const cpu = (busy: number, idle: number): CpuInfo => ({
    model: '',
    speed: 0,
    times: { user: busy, nice: 0, sys: 0, irq: 0, idle },
  });
  t.equal(busyShare([cpu(10, 90), cpu(0, 100)], [cpu(20, 180), cpu(90, 110)]), 0.5);
  t.equal(busyShare([cpu(1, 1)], [cpu(1, 1)]), 0, 'no time went by');
  const looks = [[cpu(0, 0)], [cpu(3, 1)]];
  t.equal(await othersBusy(1, () => looks.shift() ?? []), 0.75);
});
