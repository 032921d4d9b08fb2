/** Rounds of loads over connections that stay open, loops without a server, and what else the machine does. */
import { createServer, type RequestListener } from 'node:http';
import type { Socket } from 'node:net';
import type { CpuInfo } from 'node:os';
import t, { type Test } from 'tap';
import { Load } from '../../bench/load/load.ts';
import type { LoadPlan } from '../../bench/load/plan.ts';
import { busyShare, othersBusy } from '../../bench/measure/busy-machine.ts';
import { rawRequest } from '../../bench/scenario.ts';
import { closeAfter } from '../../kit/close-after.ts';
import { listenFor } from '../../kit/http.ts';
import { benchOf } from './fixtures/bench.ts';

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
  const { port } = await listenFor(t, server);
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
  return closeAfter(t, await Load.open(plan));
}

t.test('load: one connection a loop for all rounds, everything answered at the end of each', async (t) => {
  let answered = 0;
  const server = await serve(t, (_request, response) => {
    // Later than the end of the round for some: it waits for them.
    setTimeout(() => {
      answered += 1;
      response.end('good');
    }, 20);
  });
  const load = await open(t, planFor(server));
  let before = 0;
  for (let round = 0; round < 3; round += 1) {
    const report = await load.round(30);
    t.equal(answered, server.requests(), 'nothing is under way when a round ends');
    t.equal(report.answers, answered - before, 'each answer counts once, the late ones too');
    t.ok(report.durationMs >= 30, `${report.durationMs} ms, the last answers included`);
    t.ok(Math.abs(report.ratePerSecond - (report.answers / report.durationMs) * 1_000) < 1e-6);
    t.same(report.errors, {});
    before = answered;
  }
  t.equal(server.connections(), 4);
});

t.test('load: new requests are used from the next send', async (t) => {
  const paths = new Set<string>();
  const server = await serve(t, (request, response) => {
    paths.add(request.url ?? '');
    response.end('good');
  });
  const load = await open(t, planFor(server));
  await load.round(20);
  t.same([...paths], ['/x']);
  paths.clear();
  load.use(['/a', '/b'].map((path) => rawRequest('GET', `${server.url}${path}`)));
  await load.round(20);
  t.same([...paths].sort(), ['/a', '/b']);
});

t.test('load: a close of an idle connection is no error, any other close is', async (t) => {
  let refuse = false;
  const server = await serve(t, (request, response) => {
    if (refuse) request.socket.destroy();
    else response.end('good');
  });
  const closed = async (restMs: number) => {
    const load = await open(t, planFor(server, { restMs }));
    await load.round(20);
    const before = server.connections();
    for (const socket of server.sockets) socket.destroy();
    while (server.connections() < before + 4) await new Promise((resolve) => setImmediate(resolve));
    const report = await load.round(20);
    t.ok(report.answers > 0);
    t.equal(server.connections(), before + 4, 'each loop reconnected once');
    load.close();
    return report.errors;
  };
  t.same(await closed(0), {});
  t.same(await closed(60_000), { closed: 4 });
  const load = await open(t, planFor(server, { restMs: 0 }));
  refuse = true;
  const bad = await load.round(20);
  t.equal(bad.answers, 0);
  t.ok((bad.errors['closed'] ?? 0) >= 4, JSON.stringify(bad.errors));
});

t.test('load: a connection that never answers times out, and the round ends', async (t) => {
  const server = await serve(t, () => undefined);
  const load = await open(t, planFor(server, { connections: 2, timeoutMs: 100 }));
  t.same((await load.round(20)).errors, { timeout: 2 });
});

t.test('subject: each round sends what was prepared for it', async (t) => {
  const paths: string[] = [];
  const server = await serve(t, (request, response) => {
    paths.push(request.url ?? '');
    response.end('good');
  });
  const bench = benchOf(t, { durationMs: 20, warmupMs: 20, connections: 2 });
  let prepared = 0;
  const subject = bench.subject('A', [], () => {
    prepared += 1;
    return { url: server.url, requests: [rawRequest('GET', `${server.url}/${prepared}`)], expect: 'good' };
  });
  await bench.compare([subject]);
  t.same([...new Set(paths)], ['/1', '/2', '/3', '/4'], 'the warm-up and three rounds');
});

t.test('loop: a warm-up, then one call a round, with its own time', async (t) => {
  const bench = benchOf(t, { durationMs: 90, warmupMs: 7 });
  const asked: number[] = [];
  const loop = bench.loop({
    name: 'A',
    pids: [],
    run: async (durationMs) => {
      asked.push(durationMs);
      return { count: asked.length, elapsedMs: 10 };
    },
  });
  const { subjects } = await bench.compare([loop]);
  t.same(asked, [7, 90, 90, 90]);
  t.match(subjects[0]?.rounds[0], {
    ratePerSecond: 200,
    details: { answersInAll: 2, elapsedMs: 10 },
  });
});

t.test('others: their share of all processors between two samples', async (t) => {
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
