import t from 'tap';
import type { BenchReport } from '../../bench/report/report.ts';
import { EventReaders } from '../../bench/scenarios/mixed/event-readers.ts';
import { KeptConnection } from '../../bench/scenarios/mixed/kept-connection.ts';
import {
  isUndeclared,
  judge,
  KINDS,
  type MixedFixture,
  nowMs,
  ratesOf,
} from '../../bench/scenarios/mixed/kinds.ts';
import { runMixed } from '../../bench/scenarios/mixed/run.ts';
import { growthOver } from '../../bench/scenarios/mixed/watch.ts';
import { RawConnection } from '../../bench/scenarios/transfers/raw-connection.ts';
import { newKey } from '../../kit/agent.ts';
import { benchArguments, faultsOf } from '../../tools/mixed-soak.ts';
import { answering } from './fixtures/bench.ts';

function fixtureAt(url: string, more: Partial<MixedFixture> = {}): MixedFixture {
  return {
    url,
    internal: url,
    moduleKey: 'key',
    bearers: ['b0', 'b1'],
    cookies: ['sid=c0', 'sid=c1'],
    loginKeys: [newKey()],
    uploadCookies: ['sid=u'],
    filePath: '/auth/v2/file/code',
    audience: ['7', '8'],
    ...more,
  };
}

t.test('mixed plan: the shares make one, and the rates of all kinds the whole rate', async (t) => {
  t.ok(Math.abs(KINDS.reduce((sum, { share }) => sum + share, 0) - 1) < 1e-9);
  const rates = ratesOf(fixtureAt('http://127.0.0.1:1'), 400);
  t.equal(rates.length, KINDS.length);
  t.equal(rates.find(({ kind }) => kind.name === 'tools/call')?.ratePerSecond, 120);
});

t.test('mixed plan: without files and pushes the other kinds take the whole rate', async (t) => {
  const fixture = fixtureAt('http://127.0.0.1:1', {
    internal: undefined,
    uploadCookies: [],
    filePath: undefined,
  });
  const rates = ratesOf(fixture, 100);
  const names = rates.map(({ kind }) => kind.name);
  for (const name of ['upload', 'range download', 'event pushed']) t.notOk(names.includes(name), name);
  t.ok(Math.abs(rates.reduce((sum, { ratePerSecond }) => sum + ratePerSecond, 0) - 100) < 1e-9);
});

t.test('mixed judge: a refusal is declared by Retry-After, any other 5xx is not', async (t) => {
  const head = (line: string) => `HTTP/1.1 503 x\r\n${line}\r\n`;
  t.equal(judge({ status: 200, head: '', text: 'good' }, 'good'), undefined);
  t.equal(judge({ status: 206, head: '', text: '' }, '', 206), undefined);
  t.equal(judge({ status: 200, head: '', text: 'bad' }, 'good'), 'unexpected body');
  t.equal(judge({ status: 503, head: head('retry-after: 1'), text: '' }, ''), 'refused 503');
  t.equal(judge({ status: 429, head: head('retry-after: 1'), text: '' }, ''), 'refused 429');
  t.equal(judge({ status: 503, head: head('x: y'), text: '' }, ''), 'status 503');
  t.equal(judge({ status: 500, head: head('retry-after: 1'), text: '' }, ''), 'status 500');
  for (const error of ['status 500', 'status 503']) t.equal(isUndeclared(error), true, error);
  for (const error of ['refused 503', 'status 404', 'unsent', 'ECONNRESET'])
    t.equal(isUndeclared(error), false, error);
});

t.test('mixed kinds: each sends its own request with its own credential', async (t) => {
  const seen: { method: string; url: string; headers: Record<string, unknown>; body: string }[] = [];
  const url = await answering(t, (request, response) => {
    let body = '';
    request.setEncoding('latin1').on('data', (piece: string) => {
      body += piece;
    });
    request.on('end', () => {
      seen.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
      response.end('{"result":"12:code"}');
    });
  });
  const connection = await RawConnection.open(url);
  const asked = async (name: string) => {
    seen.length = 0;
    await KINDS.find((kind) => kind.name === name)?.work(fixtureAt(url), connection, 1);
    return seen;
  };
  const [call] = await asked('tools/call');
  t.match(call, { method: 'POST', url: '/mcp', headers: { authorization: 'Bearer b1' } });
  t.match(JSON.parse(call?.body ?? ''), {
    method: 'tools/call',
    params: { name: 'wallet_get_balance' },
  });
  t.match((await asked('session check'))[0], { url: '/auth/v1/info', headers: { cookie: 'sid=c1' } });
  t.match((await asked('range download'))[0], {
    url: '/auth/v2/file/code',
    headers: { range: 'bytes=4096-8191' },
  });
  t.match((await asked('login'))[0], { method: 'POST', url: '/auth/v1/mcp_login' });
  const [draft, bytes] = await asked('upload');
  t.match(draft, { method: 'POST', headers: { cookie: 'sid=u' } });
  t.equal(bytes?.url, '/auth/v2/file/stream_upload/12');
  t.equal(bytes?.body.length, 16 * 1024);
  const [push] = await asked('event pushed');
  t.match(push, { url: '/internal/v1/events', headers: { 'x-module-key': 'key' } });
  t.match(JSON.parse(push?.body ?? ''), { events: [{ module: 'core', tick: '2', crmId: '8' }] });
  connection.close();
});

// covers S172
t.test(
  'mixed run: every kind at its rate, errors by kind, and connections that were closed come back',
  async (t) => {
    let answers = 0;
    const url = await answering(t, (request, response) => {
      request.resume();
      answers += 1;
      if (request.url === '/wallet/v1/balance/get') {
        response.writeHead(500, { 'Content-Length': 0 }).end();
        return;
      }
      // Half of the answers end their connection.
      response.shouldKeepAlive = answers % 2 === 0;
      const text = '{"result":"12:code","content":[],"session":{"userId":"1"},"sessionId":"x","accepted":1}';
      response.writeHead(request.headers.range === undefined ? 200 : 206, { 'Content-Length': text.length });
      response.end(text);
    });
    const fixture = fixtureAt(url, { filePath: undefined, uploadCookies: [] });
    const reports = await runMixed({ fixture, ratePerSecond: 200, warmupMs: 50, durationMs: 500 });
    const named = (name: string) => reports.find((report) => report.name === name);
    const calls = named('tools/call');
    t.ok((calls?.report.answers ?? 0) > 0, `${calls?.report.answers} calls`);
    // Calls that a busy machine could not send in time are counted, and are no failure of a call.
    const { unsent: _, ...failures } = calls?.report.errors ?? {};
    t.same(failures, {});
    t.ok((named('REST proxy')?.report.errors['status 500'] ?? 0) > 0);
    t.equal(named('REST proxy')?.report.answers, 0);
    t.ok((named('tools/list')?.report.errors['unexpected body'] ?? 0) > 0);
  },
);

t.test(
  'mixed connections: a connection is used again until it has idled for longer than clients allow',
  async (t) => {
    const seen = new Set<unknown>();
    const url = await answering(t, (request, response) => {
      seen.add(request.socket);
      response.end();
    });
    let clockMs = 1_000_000;
    const kept = new KeptConnection(url, () => clockMs);
    const connectionsAfter = async (idleMs: number) => {
      clockMs += idleMs;
      const answer = await kept.use(async (connection) => {
        // The time of the work is no idling.
        clockMs += 60_000;
        return connection.ask('GET', '/');
      });
      t.equal(answer.status, 200);
      return seen.size;
    };
    t.equal(await connectionsAfter(0), 1);
    t.equal(await connectionsAfter(5_000), 1);
    t.equal(await connectionsAfter(5_001), 2);
    t.equal(await connectionsAfter(0), 2);
    kept.close();
    t.equal(await connectionsAfter(0), 3, 'closed: another one');
    kept.close();
  },
);

t.test('event readers: count events over chunks and reconnect when a stream ends', async (t) => {
  let streams = 0;
  const url = await answering(t, (request, response) => {
    streams += 1;
    const isFirst = streams === 1;
    t.equal(request.headers.cookie, 'sid=x');
    // Pieces as they are: a chunk header would stand in the middle of the event.
    response.useChunkedEncodingByDefault = false;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const event = `event: Mixed\ndata: {"data":{"id":"1","sentMs":${nowMs()}}}\n\n`;
    response.write(event.slice(0, -12));
    setImmediate(() => {
      response.write(event.slice(-12));
      if (isFirst) response.end();
    });
  });
  const readers = new EventReaders(url, ['sid=x']);
  while (readers.events < 2) await new Promise((resolve) => setImmediate(resolve));
  const { events, cameBack, latencyUs } = readers.end();
  t.equal(events, 2);
  t.equal(cameBack, 1);
  t.ok(latencyUs.max > 0 && latencyUs.max < 60_000_000);
});

t.test('growth: the last fifth against the first, without single outliers', async (t) => {
  t.same(growthOver([100, 1, 100, 1, 1, 1, 1, 1, 200, 200]), { from: 50.5, to: 200 });
  t.same(growthOver([5]), { from: 5, to: 5 });
});

t.test('soak mixed: minutes and rate become the command line of the suite', async (t) => {
  const ten = ['mixed', '--duration', '600', '--warmup', '60'];
  t.same(benchArguments([]), ten);
  t.same(benchArguments(['--rate', '50']), [...ten, '--rate', '50']);
  t.same(benchArguments(['--minutes', '2']), ['mixed', '--duration', '120', '--warmup', '60']);
  for (const bad of [['--minutes', '11'], ['--minutes', 'x'], ['--colour'], ['more']])
    t.equal(benchArguments(bad), undefined, bad.join(' '));
});

// covers S172
t.test('soak mixed: missed, unmeasured and failed targets are faults', async (t) => {
  const judged = (verdict: string) => ({ what: 'RSS', value: 2, verdict });
  const report = (targets: object[], failure?: string) =>
    ({ scenarios: [{ targets, failure }] }) as unknown as BenchReport;
  t.same(faultsOf(report([judged('met')])), []);
  t.equal(faultsOf(report([judged('missed'), judged('not measured')], 'it fell')).length, 3);
});
