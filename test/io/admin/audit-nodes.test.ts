/** The admin JSON of the audit log in a cluster: records of calls in the database, and pages of other nodes. */
import t, { type Test } from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { AuditLog, CallLog } from '../../../src/io/admin/audit.ts';
import { type AuditCluster, auditPage } from '../../../src/io/admin/audit-pages.ts';
import type { Answer } from '../../support/account.ts';
import { START_MS } from '../../support/actors/actors.ts';
import { startAdmin } from '../../support/admin.ts';

/** The journal of another node: three acts of a minute each. */
const OTHER: AuditLog = {
  auditPage: () => [],
  auditBefore: (before, limit) =>
    [3, 2, 1]
      .filter((seq) => seq < before)
      .slice(0, limit)
      .map((seq) => ({
        seq,
        ring: 'admin',
        record: {
          utcMs: START_MS + seq * 60_000,
          event: 'admin.reload',
          userId: null,
          fields: { seq },
          node: 'b',
        },
      })),
};

function rowsOf(answer: Answer): Record<string, unknown>[] {
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.error));
  return answer.result as Record<string, unknown>[];
}

/** Node a of a cluster with b, where each keeps its own calls unless `calls` is given. */
async function start(t: Test, calls?: CallLog) {
  const cluster: AuditCluster = {
    node: 'a',
    calls,
    nodes: async () => ['a', 'b'],
    async pageOf(node, query) {
      if (node !== 'b') throw new GatewayError('NotFound', 'no such node is in');
      return auditPage({ log: OTHER, cluster: { ...cluster, node: 'b' } }, query as object);
    },
  };
  const fixture = await startAdmin({ auditCluster: cluster });
  t.teardown(fixture.stop);
  return {
    ...fixture,
    next: (answer: Answer) =>
      /^<\/ProxyAdmin\/api\/(.+)>; rel="next"$/.exec(answer.headers['link'] ?? '')?.[1] ?? 'none',
  };
}

t.test('audit of a cluster: the panel learns where records of calls are', async (t) => {
  const own = await start(t);
  t.same((await own.ask('audit/nodes')).result, { calls: 'node', node: 'a', nodes: ['a', 'b'] });
  const shared = await start(t, { before: async () => [] });
  t.match((await shared.ask('audit/nodes')).result, { calls: 'database' });
  const alone = await startAdmin();
  t.teardown(alone.stop);
  t.same((await alone.ask('audit/nodes')).result, { calls: 'gateway', node: null, nodes: [] });
  t.equal((await alone.ask('audit?node=a')).status, 400);
});

t.test('audit of a cluster: a page is continued by the node that began it', async (t) => {
  const { ask, next } = await start(t);
  const first = await ask('audit?node=b&limit=2&ring=admin');
  t.match(rowsOf(first), [
    { seq: 3, node: 'b' },
    { seq: 2, node: 'b' },
  ]);
  const second = await ask(next(first));
  t.match(rowsOf(second), [{ seq: 1, node: 'b' }]);
  t.equal(next(second), 'none');
  const here = await ask('audit?limit=1');
  t.match(rowsOf(here), [{ event: 'sign_up', node: null }], 'records of turns are of no node');
  t.match(next(here), /node=a/);
  t.match(rowsOf(await ask(next(here))), [{ event: 'sign_up', seq: 1 }]);
  t.equal((await ask('audit?node=c')).status, 404);
});

t.test('audit of a cluster: records of the database stand between those of the journal', async (t) => {
  const call = (timeMs: number, node: number) => ({
    ...{ timeMs, node, seq: 4_096 * timeMs, ring: 'calls' as const },
    record: { utcMs: timeMs, event: 'mcp.tool', userId: '7', fields: {}, node: node === 1 ? 'a' : 'b' },
  });
  const stored = [call(START_MS + 1, 2), call(START_MS - 1, 1)];
  const calls: CallLog = {
    before: async (position, limit) =>
      stored.filter(({ seq }) => position === undefined || seq < position.seq).slice(0, limit),
  };
  const { ask, next } = await start(t, calls);
  const seen: unknown[] = [];
  for (let page = await ask('audit?limit=1'); ; page = await ask(next(page))) {
    for (const { event, node } of rowsOf(page)) seen.push([event, node]);
    if (next(page) === 'none') break;
  }
  t.same(seen, [
    ['mcp.tool', 'b'],
    ['sign_up', null],
    ['sign_up', null],
    ['mcp.tool', 'a'],
  ]);
  t.match(rowsOf(await ask('audit?userId=7')), [{ node: 'b' }, { node: 'a' }]);
  t.equal((await ask('audit?calls=1-2')).status, 400);
});
