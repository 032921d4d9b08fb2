/** The connection cap over the real listener: one network at its share, others still get in (docs/decisions/0104). */
import t, { type Test } from 'tap';
import { NO_LIMITS } from '../../../kit/launch.ts';
import type { AnyRoute } from '../../../src/io/http/table/route.ts';
import { connectRaw, plainRoute, type RawConnection, requestText, startHttp } from '../../support/http.ts';
import { until } from '../../support/until.ts';

function start(t: Test, changes: Partial<Parameters<typeof startHttp>[0]> = {}) {
  const release: (() => void)[] = [];
  const routes: AnyRoute[] = [
    plainRoute('GET /hello', () => 'hello'),
    plainRoute('GET /held', () => new Promise<string>((resolve) => release.push(() => resolve('done')))),
  ];
  const http = startHttp({ routes, settings: { ...NO_LIMITS, ConnectionsMax: 200 }, ...changes });
  const open: RawConnection[] = [];
  t.teardown(async () => {
    for (const connection of open) connection.close();
    await http.close();
  });
  const connect = async (count: number, localAddress: string, text?: string) => {
    const { openedTotal } = http.server.counters();
    for (let n = 0; n < count; n += 1) {
      const connection = connectRaw(http.port, localAddress);
      if (text !== undefined) connection.send(text);
      open.push(connection);
    }
    await until(() => http.server.counters().openedTotal === openedTotal + count);
  };
  const isServed = async (localAddress: string) => {
    const connection = connectRaw(http.port, localAddress);
    const answer = await connection.ask(requestText('GET', '/hello')).catch(() => undefined);
    connection.close();
    return answer?.status === 200;
  };
  const failures = async (count: number) => {
    let failed = 0;
    for (let n = 0; n < count; n += 1) if (!(await isServed(`127.0.0.${n + 2}`))) failed += 1;
    return failed;
  };
  return { ...http, connect, isServed, failures, release };
}

// covers S63
t.test(
  'connections: one address opens more silent connections than the cap, none of 138 others fails',
  async (t) => {
    const { connect, failures } = start(t);
    await connect(205, '127.0.0.1');
    t.equal(await failures(138), 0);
  },
);

t.test(
  'connections: a network over its share is refused and counted, and accepted again later',
  async (t) => {
    const { connect, isServed, server, pipeline, settings, time, ...http } = start(t);
    await connect(205, '127.0.0.1');
    t.match(server.counters(), { open: 100, openedTotal: 205, refusedTotal: 105 }, 'up to half of the cap');
    t.equal(await isServed('127.0.0.1'), false);
    time.nowMs += 13_000;
    t.equal(await isServed('127.0.0.1'), true, 'what it opened 12 s ago is silent no longer, or closed');
    settings.set('ConnectionsPerNetworkPercent', 0);
    await connect(60, '127.0.0.1');
    t.equal(server.counters().open, 160, '0: only the cap counts');
    t.ok(http.port);
  },
);

// covers S63
t.test(
  'connections: requests in flight count for their network beyond 12 s, other networks are served',
  async (t) => {
    const { connect, isServed, failures, release, server, time } = start(t);
    await connect(100, '127.0.0.1', requestText('GET', '/held'));
    await until(() => release.length === 100);
    time.nowMs += 60_000;
    t.equal(await isServed('127.0.0.1'), false);
    t.equal(await failures(20), 0);
    for (const each of release) each();
    t.equal(await isServed('127.0.0.1'), true);
    t.equal(server.counters().refusedTotal, 1);
  },
);

// covers S64
t.test(
  'connections: above half of the cap every answer closes, and 138 short connections of one network are served',
  async (t) => {
    const { connect, isServed, server, release } = start(t);
    await connect(100, '127.0.0.1', requestText('GET', '/held'));
    await connect(9, '127.0.0.2', requestText('GET', '/held'));
    t.equal(server.counters().open, 109, 'above half');
    const { refusedTotal } = server.counters();
    let refused = 0;
    for (let n = 0; n < 138; n += 1) if (!(await isServed('127.0.0.9'))) refused += 1;
    t.equal(refused, 0);
    t.equal(server.counters().refusedTotal, refusedTotal);
    for (const each of release) each();
  },
);

// covers S64
t.test(
  'connections: a network that only holds its connections open keeps no more than its share',
  async (t) => {
    const { connect, isServed, server } = start(t);
    await connect(100, '127.0.0.1');
    for (let n = 0; n < 30; n += 1) await isServed('127.0.0.9');
    await connect(60, '127.0.0.9');
    t.match(server.counters(), { open: 120, refusedTotal: 40 }, 'a tenth of the cap');
    t.equal(await isServed('127.0.0.9'), false);
  },
);

// covers S64
t.test(
  'connections: further requests of a connection that closes take nothing off its network',
  async (t) => {
    const { connect, isServed, server } = start(t);
    await connect(100, '127.0.0.1');
    const pipelined = requestText('GET', '/hello').repeat(20);
    for (let n = 0; n < 10; n += 1) await connect(1, '127.0.0.9', pipelined);
    await until(() => server.counters().open === 100);
    await connect(60, '127.0.0.9');
    t.equal(server.counters().open, 120);
    t.equal(await isServed('127.0.0.9'), false);
  },
);

// covers S63
t.test('connections: a trusted proxy has no share, only the cap', async (t) => {
  const { connect, isServed, server } = start(t, { pipeline: { trustedProxies: ['127.0.0.1'] } });
  await connect(199, '127.0.0.1');
  t.equal(server.counters().open, 199);
  t.equal(await isServed('127.0.0.1'), true);
});
