import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { type CurveLine, chartsOf, growthName, growthOf, growthPair } from '../../bench/curves.ts';
import { type Comparison, compare, type Subject } from '../../bench/measure.ts';
import { configuredTools } from '../../bench/scenarios/curve-tools.ts';
import { seedJournal } from '../../bench/seeded-journal.ts';
import { request } from '../../tools/agent.ts';
import { launch } from '../../tools/launch.ts';

const LINE: CurveLine = {
  label: 'check',
  points: [
    { x: 1, subject: 'small' },
    { x: 1_000, subject: 'large' },
  ],
};

/** Rounds of 10 answers, each with so much processor time. */
function subject(name: string, cpuMs: readonly number[]): Subject {
  const rest = [...cpuMs];
  return {
    name,
    pids: [],
    group: name,
    async round() {
      const details = { answers: 10, cpuMs: rest.shift(), latencyUs: { p99: 2_000 } };
      return { ratePerSecond: 100, details };
    },
  };
}

async function compared(...subjects: readonly Subject[]): Promise<Comparison> {
  return await compare(subjects, { least: 3, most: 3, pairs: [growthPair(LINE)] });
}

const COMPARISON = await compared(subject('small', [1, 2, 3]), subject('large', [2, 3, 9]));

t.test('curves: a point has the processor time of an answer, the rate and p99', async (t) => {
  const [cpu, rate, p99] = chartsOf(COMPARISON, { label: 'n', log: true }, [LINE]);
  t.same(cpu?.lines, [
    {
      label: 'check',
      points: [
        [1, 200],
        [1_000, 300],
      ],
    },
  ]);
  t.same(rate?.lines[0]?.points, [
    [1, 100],
    [1_000, 100],
  ]);
  t.same(p99?.lines[0]?.points, [
    [1, 2],
    [1_000, 2],
  ]);
});

t.test('curves: growth is the last point over the first, round by round, with its interval', async (t) => {
  const name = growthName('check', LINE.points);
  t.same(growthOf(COMPARISON, LINE), { name, unit: 'x', value: 2, from: 1.5, to: 3 });
  t.equal(name, 'check: processor time at 1,000 over that at 1');
});

t.test('curves: a subject that was not measured leaves no point', async (t) => {
  const only = await compared(subject('small', [1, 1, 1]));
  t.same(chartsOf(only, { label: 'n' }, [LINE])[0]?.lines[0]?.points, [[1, 100]]);
  t.ok(Number.isNaN(growthOf(only, LINE).value));
});

t.test('configured tools: as many as asked for, and the gateway takes them', async (t) => {
  const tools = configuredTools(1_000);
  t.equal(Object.keys(tools).length, 1_000);
  const wallet = { url: 'http://127.0.0.1:9', key: 'bench-module-key-0001' };
  const gateway = await launch({ configuration: { Modules: { wallet }, McpTools: tools } });
  t.teardown(() => gateway.stop());
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
  const { text } = await request(`${gateway.url}/mcp`, { body });
  t.ok(text.includes('"bench_tool_0"') && text.includes('"bench_tool_999"'), 'the first and the last');
});

t.test('seeded journal: a gateway over it knows every session and whose it is', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-seeded-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const dataPath = join(folder, 'data');
  const sessions = await seedJournal(dataPath, 40);
  t.equal(new Set(sessions.map(({ userId }) => userId)).size, 40);
  const gateway = await launch({ dataPath });
  t.teardown(() => gateway.stop());
  for (const { userId, cookie } of [sessions[0], sessions[39]].filter((each) => each !== undefined)) {
    const { json } = await request(`${gateway.url}/auth/v1/info`, { headers: { Cookie: cookie } });
    t.equal(String(json['result']?.['session']?.['userId']), userId);
  }
});
