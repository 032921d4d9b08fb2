import { readFileSync } from 'node:fs';
import t from 'tap';
import { callTool, checkBearers, checkCookies, getInfo, listTools } from '../../bench/load/requests.ts';
import { SCENARIOS } from '../../bench/scenarios/index.ts';
import { addressesOf, fill, LOOPS, loopOf, makeLimiter, stepOf } from '../../bench/subjects/limiter-loops.ts';

const ADDRESS = 'http://127.0.0.1:8080';

t.test(
  'scenarios: unique names with a description, and each target names its row of the design',
  async (t) => {
    const names = SCENARIOS.map(({ name }) => name);
    t.equal(new Set(names).size, names.length);
    t.notOk(names.includes('all'));
    for (const { name, summary, targets = [] } of SCENARIOS) {
      t.ok(summary.length > 20 && /^[a-z0-9-]+$/.test(name), name);
      t.ok(
        targets.every(({ row }) => row.length > 0),
        name,
      );
    }
  },
);

t.test('scenarios: the manual lists each with its duration', async (t) => {
  const manual = readFileSync(new URL('../../../bench/README.md', import.meta.url), 'utf8');
  const rows = [...manual.matchAll(/^\| `([\w-]+)` \| .+ \| (yes)? ?\| (yes)? ?\|$/gm)];
  t.same(
    rows.map(([, name, target, baseline]) => ({ name, target, baseline })),
    SCENARIOS.map(({ name, noTarget, baseline }) => ({
      name,
      target: noTarget === undefined ? 'yes' : undefined,
      baseline: baseline === true ? 'yes' : undefined,
    })),
  );
});

t.test('asks: one request for each session, with its own credential and a JSON-RPC body', async (t) => {
  const { requests } = callTool(ADDRESS, ['one', 'two'], 'wallet_get_balance');
  t.equal(requests.length, 2);
  for (const [index, bearer] of ['one', 'two'].entries()) {
    const [head = '', body = ''] = requests[index]?.split('\r\n\r\n') ?? [];
    t.match(head, /^POST \/mcp HTTP\/1\.1\r\nHost: 127\.0\.0\.1:8080\r\n/);
    t.ok(head.includes(`\r\nAuthorization: Bearer ${bearer}\r\n`), bearer);
    t.ok(head.includes(`\r\nContent-Length: ${body.length}`), 'length');
    const params = { name: 'wallet_get_balance', arguments: {} };
    t.same(JSON.parse(body), { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  }
});

t.test('requests: the expected text is in good answers and in no refusal', async (t) => {
  const refusals = [
    '{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Access denied"}}',
    '{"error":{"code":1101,"message":"Session not found"}}',
    // A stale cookie on a route that needs none.
    '{"result":{"project":"demo","limits":{"activeKeys":20},"session":null}}',
  ];
  const asks = [
    listTools(ADDRESS, ['x']),
    callTool(ADDRESS, ['x'], 'y'),
    checkCookies(ADDRESS, ['sid=x']),
    checkBearers(ADDRESS, ['x']),
    getInfo(ADDRESS, ['sid=x']),
  ];
  for (const { expect } of asks) for (const refusal of refusals) t.notOk(refusal.includes(expect), expect);
});

t.test('limiter loops: every check does its whole work and lets the caller pass', async (t) => {
  const addresses = addressesOf(1_000);
  t.equal(new Set(addresses).size, 1_000);
  for (const name of LOOPS) {
    const { count, elapsedMs } = loopOf(stepOf(name), addresses)(5);
    t.ok(count >= addresses.length && elapsedMs >= 5, `${name}: ${count} in ${elapsedMs} ms`);
  }
});

t.test(
  'limiter loops: a slice that is too short for all addresses continues with the others in the next',
  async (t) => {
    const addresses = addressesOf(2_500);
    const charged: string[] = [];
    const loop = loopOf((address) => charged.push(address) > 0, addresses);
    while (charged.length < addresses.length) loop(Number.EPSILON);
    t.same(new Set(charged), new Set(addresses));
    t.same(charged.slice(0, 2_500), addresses);
  },
);

t.test('limiter loops: the clock of a loop stops while other loops run', async (t) => {
  const times: number[] = [];
  const loop = loopOf((_address, nowMs) => times.push(nowMs) > 0, ['10.0.0.1']);
  loop(1);
  const later = Date.now() + 60_000;
  t.intercept(Date, 'now', { value: () => later });
  const before = times.at(-1) ?? Number.NaN;
  const first = times.length;
  loop(1);
  const between = (times[first] ?? Number.NaN) - before;
  t.ok(
    between >= 0 && between < 30_000,
    `${between} ms between two calls, 60,000 by the clock of the machine`,
  );
});

t.test('limiter loops: a window full of callers holds the bound of counters and no more', async (t) => {
  let reads = 0;
  const report = fill(makeLimiter(2_000), 6_000, () => {
    reads += 1;
    return reads * 1_024;
  });
  t.equal(report.counters, 2_000);
  t.equal(report.heapBytes, 1_024);
  t.ok(report.nsPerCheckBeyond > 0);
});
