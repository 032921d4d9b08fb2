/** Pages of a long audit log: how much one looks at, and that pages together find what fits, once. */
import t from 'tap';
import type { AuditRow } from '../../../src/actors/runtime/journal/port.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/domain/time.ts';
import { AUDIT_SCAN_MAX, type AuditLog, type AuditSearch, searchAudit } from '../../../src/io/admin/audit.ts';
import { START_MS } from '../../support/actors/actors.ts';

const RECORDS = 70_000;
const EVERYTHING: AuditSearch = {
  after: 0,
  before: Number.MAX_SAFE_INTEGER,
  oldestFirst: false,
  limit: 100,
  userId: undefined,
  event: undefined,
  ring: undefined,
  fromMs: Number.NEGATIVE_INFINITY,
  toMs: Number.POSITIVE_INFINITY,
};

/** One record a minute; every ten-thousandth is of user 7. Counts what is read, and the most at a time. */
function longLog(): AuditLog & { read: number; most: number } {
  const rows = Array.from({ length: RECORDS }, (_, index): AuditRow => {
    const utcMs = START_MS + index * MINUTE_MS;
    const userId = index % 10_000 === 0 ? '7' : '1';
    return { seq: index + 1, ring: 'calls', record: { utcMs, event: 'mcp.tool', userId, fields: {} } };
  });
  const log = {
    read: 0,
    most: 0,
    auditPage: (after: number, limit: number) => counted(rows.slice(after, after + limit)),
    auditBefore(before: number, limit: number) {
      const end = Math.min(before - 1, rows.length);
      return counted(rows.slice(Math.max(0, end - limit), end).reverse());
    },
  };
  function counted(page: AuditRow[]): AuditRow[] {
    log.read += page.length;
    log.most = Math.max(log.most, page.length);
    return page;
  }
  return log;
}

t.test(
  'audit search: a filter that matches nothing looks at 20,000 records a page, and says where to continue',
  async (t) => {
    const log = longLog();
    const pages: (number | undefined)[] = [];
    let before = EVERYTHING.before;
    do {
      log.read = 0;
      const { rows, next } = await searchAudit(log, { ...EVERYTHING, userId: '404', before });
      t.same(rows, []);
      t.ok(log.read <= AUDIT_SCAN_MAX + 1, `${log.read} read`);
      pages.push(next);
      before = next ?? 0;
    } while (before > 0);
    t.same(pages, [50_001, 30_001, 10_001, undefined]);
    t.ok(log.most <= 1_000, 'a slice at a time');
  },
);

t.test('audit search: pages together hold each record that fits once, the newest first', async (t) => {
  const log = longLog();
  const found: number[] = [];
  let before: number | undefined = EVERYTHING.before;
  for (let pages = 0; before !== undefined && pages < 20; pages += 1) {
    const page = await searchAudit(log, { ...EVERYTHING, userId: '7', limit: 2, before });
    found.push(...page.rows.map(({ seq }) => seq));
    before = page.next;
  }
  t.same(found, [60_001, 50_001, 40_001, 30_001, 20_001, 10_001, 1]);
});

t.test('audit search: other work runs between the slices of a page', async (t) => {
  let turns = 0;
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await searchAudit(longLog(), { ...EVERYTHING, userId: '404' });
  isOver = true;
  t.ok(turns >= 15, `${turns} turns`);
});

t.test('audit search: a time long ago is found without looking at all that is younger', async (t) => {
  const log = longLog();
  const fromMs = START_MS + 2 * DAY_MS;
  const { rows, next } = await searchAudit(log, { ...EVERYTHING, fromMs, toMs: fromMs + HOUR_MS });
  t.equal(rows.length, 61);
  t.same([rows[0]?.seq, rows.at(-1)?.seq], [2_941, 2_881]);
  t.equal(next, undefined, 'what is older than asked for is not looked at');
  t.ok(log.read < 10_000, `${log.read} read`);
});

t.test('audit search: without a filter no more is read than the page shows', async (t) => {
  const log = longLog();
  const { rows, next } = await searchAudit(log, EVERYTHING);
  t.same([rows.length, rows[0]?.seq, next], [100, RECORDS, RECORDS - 99]);
  t.ok(log.read <= 102, `${log.read} read`);
});
