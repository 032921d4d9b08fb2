import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import t, { type Test } from 'tap';
import { readAnswer } from '../../bench/load/http-connection.ts';
import { runLoad } from '../../bench/load/load.ts';
import type { LoadPlan, LoadReport } from '../../bench/load/plan.ts';
import { allocatedBytes, METER } from '../../bench/measure/allocations.ts';
import { compare } from '../../bench/measure/measure.ts';
import { median } from '../../bench/measure/statistics.ts';
import { rawRequest } from '../../bench/scenario.ts';
import { TIED } from '../../kit/launch.ts';
import { answering, rated } from './fixtures/bench.ts';

t.test('readAnswer: whole, partial, chunked and unreadable answers', async (t) => {
  const read = (text: string) => readAnswer(Buffer.from(text));
  t.match(read('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'), { status: 200, body: Buffer.from('ok') });
  t.match(read('HTTP/1.1 429 Too Many\r\ncontent-length:0\r\n\r\n'), { status: 429, body: Buffer.alloc(0) });
  t.match(read('HTTP/1.1 204 No Content\r\nX: y\r\n\r\n'), { status: 204 });
  t.equal(read('HTTP/1.1 200 OK\r\nContent-Le'), 'incomplete');
  t.equal(read('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok'), 'incomplete');
  t.equal(read('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nok'), 'unreadable', 'more than was asked for');
  t.match(read('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n'), { status: 200 });
  t.equal(read('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n'), 'incomplete');
  t.equal(read('HTTP/1.1 200 OK\r\n\r\nok'), 'unreadable', 'neither length nor chunks');
  t.equal(read('SSH-2.0-server\r\n\r\n'), 'unreadable');
});

t.test('median, ratio and spread: each ratio compares two neighbours in time', async (t) => {
  t.equal(median([3, 1, 2]), 2);
  t.equal(median([4, 1, 3, 2]), 2.5);
  const order: string[] = [];
  const subject = (name: string, rates: number[]) =>
    rated(name, () => {
      order.push(name);
      return rates.shift() ?? 0;
    });
  const result = await compare([subject('A', [10, 30, 20]), subject('B', [20, 20, 20])], {
    least: 3,
    most: 3,
  });
  t.same(order, ['A', 'B', 'B', 'A', 'A', 'B']);
  t.same(
    result.subjects.map(({ medianPerSecond }) => medianPerSecond),
    [20, 20],
  );
  const rate = { median: 1, from: 0.5, to: 1.5, lowest: 0.5, highest: 1.5 };
  t.same(result.ratios, [{ of: 'A', against: 'B', rate, processorTime: undefined }]);
});

t.test('allocations: bytes for one answer, of rounds that no ratio sees', async (t) => {
  let bytes = 0;
  let rounds = 0;
  const allocating = (round: number) => {
    rounds = round;
    bytes += 1_000;
    return 10;
  };
  const allocatedBytes = async () => {
    const since = bytes;
    bytes = 0;
    return since;
  };
  const { subjects } = await compare([rated('A', allocating, { allocatedBytes })], { least: 2, most: 2 });
  t.match(subjects, [{ name: 'A', bytesPerAnswer: 100 }]);
  t.equal(subjects[0]?.rounds.length, 2);
  t.ok(rounds > 2);
});

t.test('allocation meter: counts the bytes of a program, those of collected objects too', async (t) => {
  const program = `let kept;
    process.stdin.on('data', () => {
      for (let made = 0; made < 10_000; made += 1) kept = new Array(1_000).fill(made);
      process.stdout.write('made');
    });`;
  const child = spawn(process.execPath, [...TIED, ...METER, '-e', program], {
    stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
  });
  t.teardown(() => child.kill());
  const make = async () => {
    child.stdin?.write('go');
    await once(child.stdout as NodeJS.ReadableStream, 'data');
  };
  await make();
  await allocatedBytes(child);
  const idleBytes = await allocatedBytes(child);
  t.ok(idleBytes < 4_000_000, `${idleBytes} without work`);
  await make();
  const bytes = await allocatedBytes(child);
  t.ok(bytes > 79_000_000 && bytes < 90_000_000, `${bytes} for 10,000 arrays of 8 KB`);
});

t.test('ratios: the first of each group against the others, and the given pairs', async (t) => {
  const subjects = [
    rated('A', 1),
    rated('A8', 1, { group: '8' }),
    rated('B', 1),
    rated('B8', 1, { group: '8' }),
    rated('C', 1, { group: 'alone' }),
  ];
  const pairs = [
    { of: 'A8', against: 'C' },
    { of: 'A', against: 'B' },
    { of: 'A', against: 'anonymous' },
  ];
  const { ratios } = await compare(subjects, { least: 1, most: 1, pairs });
  t.same(
    ratios.map(({ of, against }) => `${of}/${against}`),
    ['A/B', 'A8/B8', 'A8/C'],
  );
});

t.test('compare: no round begins that would end after the deadline, but there are five', async (t) => {
  const { subjects } = await compare([rated('A', 1)], { least: 9, most: 9, leftMs: () => -1 });
  t.equal(subjects[0]?.rounds.length, 5);
});

async function loadAgainst(
  t: Test,
  answer: RequestListener,
  plan: Partial<LoadPlan> = {},
): Promise<LoadReport> {
  const port = Number(new URL(await answering(t, answer)).port);
  return await runLoad({
    host: '127.0.0.1',
    port,
    connections: 4,
    leadInMs: 0,
    durationMs: 300,
    requests: [rawRequest('POST', `http://127.0.0.1:${port}/x`, {}, '{"a":1}')],
    expect: 'good',
    timeoutMs: 10_000,
    ...plan,
  });
}

t.test('load: counts good answers and their latency, closed loop', async (t) => {
  const seen = new Set<string>();
  const report = await loadAgainst(t, (request, response) => {
    request.on('data', (piece) => seen.add(String(piece)));
    request.on('end', () => response.end('good'));
  });
  t.ok(report.answers > 0, `${report.answers} answers`);
  t.same(report.errors, {});
  t.same([...seen], ['{"a":1}']);
  t.ok(report.latencyUs.p50 > 0 && report.latencyUs.p50 <= report.latencyUs.max);
  t.ok(report.answersInAll >= report.answers);
});

t.test('load: errors by kind: status, unexpected body, closed connection, time-out', async (t) => {
  const status = await loadAgainst(
    t,
    (_request, response) => void response.writeHead(503, { 'Content-Length': 4 }).end('full'),
  );
  t.equal(status.answers, 0);
  t.ok((status.errors['status 503'] ?? 0) > 0);
  t.equal(status.sample, 'full');
  const body = await loadAgainst(t, (_request, response) => void response.end('bad'));
  t.ok((body.errors['unexpected body'] ?? 0) > 0);
  const closed = await loadAgainst(t, (request) => void request.socket.destroy());
  t.ok((closed.errors['closed'] ?? 0) > 0);
  const silent = await loadAgainst(t, () => undefined, { timeoutMs: 100, durationMs: 700 });
  t.ok((silent.errors['timeout'] ?? 0) >= 4);
  const anonymous = await loadAgainst(t, () => undefined, { port: 1 });
  t.ok((anonymous.errors['connect'] ?? 0) > 0);
});

t.test('load: open loop keeps the rate and counts a stall from the intended start', async (t) => {
  const steady = await loadAgainst(t, (_request, response) => void response.end('good'), {
    ratePerSecond: 200,
    durationMs: 500,
  });
  // A timer that comes late makes more of them due; those of the lead-in may come back after it.
  const due = Math.ceil((steady.durationMs / 1_000) * 200);
  t.ok(
    steady.answers >= 80 && steady.answers <= due + 4,
    `${steady.answers} answers of ${due} that were due`,
  );
  const gate: { stallOnce: boolean } = { stallOnce: true };
  const stalled = await loadAgainst(
    t,
    (_request, response) => {
      if (gate.stallOnce) setTimeout(() => response.end('good'), 200);
      else response.end('good');
      gate.stallOnce = false;
    },
    { connections: 1, ratePerSecond: 200, durationMs: 600 },
  );
  // One request waits 200 ms; those that were due meanwhile wait too, although each is answered at once when sent.
  t.ok(stalled.latencyUs.p90 > 100_000, `p90 ${stalled.latencyUs.p90} us`);
});

t.test('load: a bounded closed loop stays below its bound and does not catch up', async (t) => {
  const arrivals: number[] = [];
  const report = await loadAgainst(
    t,
    (_request, response) => {
      arrivals.push(performance.now());
      response.end('good');
    },
    { maxRatePerSecond: 100, connections: 4, leadInMs: 300, durationMs: 500 },
  );
  t.ok(
    report.answers > 0 && report.answers <= 52,
    `${report.answers} answers of at most 50 in half a second`,
  );
  const within = (from: number) => arrivals.filter((at) => at >= from && at < from + 100).length;
  t.ok(Math.max(...arrivals.map(within)) <= 15, 'never a burst of what was not used');
});

t.test('load: connections share the requests in order', async (t) => {
  const seen = new Set<string>();
  const requests = ['/a', '/b', '/c', '/d', '/e'].map((path) => rawRequest('GET', `http://127.0.0.1${path}`));
  await loadAgainst(
    t,
    (request, response) => {
      seen.add(request.url ?? '');
      response.end('good');
    },
    { requests, connections: 2 },
  );
  t.same([...seen].sort(), ['/a', '/b', '/c', '/d', '/e']);
});
