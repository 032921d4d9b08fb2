/** Pages of a long audit log: how much one looks at, and that pages together find what fits, once. */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import t from 'tap';
import type { AuditRow } from '../../../src/actors/runtime/journal/port.ts';
import {
  AUDIT_EVENT_NAMES,
  type AuditEvent,
  type AuditRing,
  type StoredRing,
} from '../../../src/domain/audit.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/domain/time.ts';
import {
  AUDIT_SCAN_MAX,
  type AuditLog,
  type AuditSearch,
  type CallLog,
  type CallPosition,
  searchAudit,
} from '../../../src/io/admin/audit.ts';
import { START_MS } from '../../support/actors/actors.ts';
import { depth } from '../../support/depth.ts';

const RECORDS = 70_000;
const EVERYTHING: AuditSearch = {
  after: 0,
  before: Number.MAX_SAFE_INTEGER,
  callsBefore: undefined,
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

// covers S115
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
      t.ok(log.read <= AUDIT_SCAN_MAX + 2, `${log.read} read`);
      pages.push(next?.position);
      before = next?.position ?? 0;
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
    before = page.next?.position;
  }
  t.same(found, [60_001, 50_001, 40_001, 30_001, 20_001, 10_001, 1]);
});

// covers S115
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
  t.same([rows.length, rows[0]?.seq, next?.position], [100, RECORDS, RECORDS - 99]);
  t.ok(log.read <= 102, `${log.read} read`);
});

interface Written {
  readonly timeMs: number;
  readonly userId: string;
  readonly event: AuditEvent;
}

const ringOf = (event: AuditEvent): AuditRing => (event === 'mcp.tool' ? 'calls' : 'admin');
const recordOf = ({ timeMs, ...record }: Written) => ({ utcMs: timeMs, fields: {}, ...record });

function journalOf(records: readonly Written[]): AuditLog {
  const rows = records.map(
    (each, index): AuditRow => ({ seq: index + 1, ring: ringOf(each.event), record: recordOf(each) }),
  );
  const isIn = (rings?: readonly StoredRing[]) => (row: AuditRow) => rings?.includes(row.ring) ?? true;
  return {
    auditPage: (after, limit, rings) =>
      rows
        .filter(({ seq }) => seq > after)
        .filter(isIn(rings))
        .slice(0, limit),
    auditBefore: (before, limit, rings) =>
      rows
        .filter(({ seq }) => seq < before)
        .filter(isIn(rings))
        .reverse()
        .slice(0, limit),
  };
}

function order(a: CallPosition, b: CallPosition): number {
  return a.timeMs - b.timeMs || a.node - b.node || a.seq - b.seq;
}

/** Records of two nodes in the database. */
function callsOf(records: readonly (Written & { node: number })[]): CallLog {
  const rows = records
    .map((each, index) => {
      const { node, ...written } = each;
      return { seq: index, node, timeMs: each.timeMs, ring: ringOf(each.event), record: recordOf(written) };
    })
    .sort((a, b) => order(b, a));
  return {
    before: async (position, limit, rings) =>
      rows
        .filter((row) => rings.includes(row.ring))
        .filter((row) => position === undefined || order(row, position) < 0)
        .slice(0, limit),
  };
}

const written = {
  timeMs: fc.integer({ min: START_MS, max: START_MS + 20 }),
  userId: fc.constantFrom('1', '7'),
  event: fc.constantFrom<AuditEvent>('mcp.tool', 'admin.reload'),
};

t.test(
  'audit search: with records of calls in the database pages hold each record that fits once, in the order of time',
  async (t) => {
    const journals = fc
      .array(fc.record(written), { maxLength: 20 })
      .map((records) => records.sort((a, b) => a.timeMs - b.timeMs));
    const calls = fc.array(fc.record({ ...written, node: fc.constantFrom(1, 2) }), { maxLength: 20 });
    const filters = fc.record({
      userId: fc.constantFrom(undefined, '7'),
      event: fc.constantFrom<AuditEvent | undefined>(undefined, 'mcp.tool'),
      toMs: fc.constantFrom(Number.POSITIVE_INFINITY, START_MS + 10),
      fromMs: fc.constantFrom(Number.NEGATIVE_INFINITY, START_MS + 5),
    });
    await fc.assert(
      fc.asyncProperty(
        journals,
        calls,
        filters,
        fc.integer({ min: 1, max: 7 }),
        async (journal, table, filter, limit) => {
          const found: Written[] = [];
          let search: AuditSearch = { ...EVERYTHING, ...filter, limit };
          for (let pages = 0; pages < 100; pages += 1) {
            // Records that arrive while the pages are read belong to earlier ones.
            const late = { timeMs: START_MS + 20, userId: '7', event: 'mcp.tool' as const, node: 3 };
            const more = pages === 0 ? table : [...table, late];
            const { rows, next } = await searchAudit(journalOf(journal), search, callsOf(more));
            found.push(
              ...rows.map(({ record }) => {
                const { utcMs, userId, event } = record as {
                  utcMs: number;
                  userId: string;
                  event: AuditEvent;
                };
                return { timeMs: utcMs, userId, event };
              }),
            );
            if (next === undefined) break;
            search = { ...search, before: next.position, callsBefore: next.calls };
          }
          const fits = ({ timeMs, userId, event }: Written) =>
            timeMs >= filter.fromMs &&
            timeMs <= filter.toMs &&
            (filter.userId ?? userId) === userId &&
            (filter.event ?? event) === event;
          const textOf = ({ timeMs, userId, event }: Written) => `${timeMs} ${userId} ${event}`;
          t.same(found.map(textOf).sort(), [...journal, ...table].filter(fits).map(textOf).sort());
          const times = found.map(({ timeMs }) => timeMs);
          t.same(
            times,
            [...times].sort((a, b) => b - a),
          );
        },
      ),
      depth.runs(100),
    );
  },
);

t.test('audit: each event has its sentence, with who acted and whose account it was', async (t) => {
  const { SENTENCES, sentenceOf } = (await import(
    pathToFileURL(resolve('src/web/admin/audit/sentences.js')).href
  )) as { SENTENCES: object; sentenceOf(record: object): object };
  t.same(Object.keys(SENTENCES).sort(), [...AUDIT_EVENT_NAMES].sort());
  for (const event of AUDIT_EVENT_NAMES)
    t.match(sentenceOf({ event, userId: '7', nickname: null, otherNickname: null, fields: {} }), {
      who: { id: '7' },
      words: /^[a-z][^{}]+$/,
      whom: null,
    });
  const names = { nickname: 'Ada', otherNickname: 'Mara' };
  t.same(
    sentenceOf({
      ...{ event: 'roleChanged', userId: '7', ...names },
      fields: { subject: '8', before: null, after: 'viewer' },
    }),
    {
      who: { id: '7', nickname: 'Ada' },
      words: 'gave the role viewer',
      of: 'to',
      whom: { id: '8', nickname: 'Mara' },
    },
  );
  t.match(sentenceOf({ event: 'user_blocked', userId: '7', ...names, fields: { by: '9' } }), {
    who: { id: '9', nickname: 'Mara' },
    words: 'blocked the account',
    whom: { id: '7', nickname: 'Ada' },
  });
});
