/** Admin JSON of the audit log: filtered pages, and the list of events. */
import type { AuditRecord } from '../../../actors/runtime/actor.ts';
import type { AuditRow } from '../../../actors/runtime/journal/port.ts';
import { AUDIT_EVENT_NAMES, AUDIT_EVENTS, AUDIT_RINGS } from '../../../domain/audit.ts';
import { GatewayError } from '../../../domain/errors.ts';
import {
  array,
  idText,
  int64,
  integer,
  named,
  nullable,
  object,
  oneOf,
  optional,
  record,
  type Static,
  text,
  unknown,
  utcText,
} from '../../../domain/schema.ts';
import { toIso } from '../../../domain/time.ts';
import { requireId } from '../../accounts/login-parts.ts';
import { type AuditLog, type AuditSearch, searchAudit } from '../../admin/audit.ts';
import { PAGE_ROWS_MAX, readPage } from '../../admin/pagination.ts';
import { readTime, timeText } from '../../http/query-time.ts';
import { type AnyRoute, defineRoute, Reply } from '../../http/route.ts';

const PATH = '/ProxyAdmin/api/audit';
/** Shown in place of the event of a damaged record. */
const UNREADABLE = 'unreadable';

const item = named(
  'AuditRecord',
  object({
    /** Position in the log: `before` or `after` of another page. */
    seq: integer(),
    /** Null: the record is damaged; its event is `unreadable`. */
    utc: nullable(utcText()),
    event: text({ examples: ['login'] }),
    /** Null for a record of a version without rings. */
    ring: nullable(oneOf(AUDIT_RINGS)),
    userId: nullable(idText()),
    fields: record(text(), unknown()),
  }),
);
const position = (minimum: number, description: string) =>
  integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description });
const auditQuery = object({
  after: optional(position(0, 'Position; on its own: the oldest first, after this position')),
  before: optional(position(1, 'Position; the newest first, before this position')),
  limit: optional(integer({ minimum: 1, maximum: PAGE_ROWS_MAX, description: '100 unless given' })),
  userId: optional(int64('Records of this account')),
  event: optional(oneOf(AUDIT_EVENT_NAMES, 'Records of this event')),
  ring: optional(oneOf(AUDIT_RINGS, 'Records of the events of this ring')),
  from: optional(timeText('ISO 8601; inclusive')),
  to: optional(timeText('ISO 8601; inclusive')),
});
type AuditQuery = Static<typeof auditQuery>;

export function createAdminAuditRoutes(log: AuditLog): AnyRoute[] {
  return [pageRoute(log), eventsRoute];
}

/** The header `Link` (RFC 8288) names the next page, so the result holds only rows. */
function pageRoute(log: AuditLog): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: PATH,
    summary: 'The audit log, the newest first; a page looks at 20,000 records, `Link` names the next one',
    docs: {
      description:
        'Filters hold together. `after` on its own reads forwards; with anything else pages go backwards. A page may be empty and still name a next one.',
      sends: ['Link'],
    },
    group: 'admin',
    auth: 'admin',
    limits: [],
    query: auditQuery,
    result: array(item),
    errors: ['InvalidInput', 'SessionNotFound', 'Forbidden'],
    async handle({ query }) {
      const search = readSearch(query);
      const { rows, next } = await searchAudit(log, search);
      const name = search.oldestFirst ? 'after' : 'before';
      return Reply.result(rows.map(itemOf), next === undefined ? [] : [['Link', linkTo(query, name, next)]]);
    },
  });
}

const eventsRoute = defineRoute({
  method: 'GET',
  path: `${PATH}/events`,
  summary: 'Events of the audit log, each with the ring that keeps its records',
  docs: {
    description: 'Each ring is bounded on its own, so that frequent events do not push rare ones out.',
  },
  group: 'admin',
  auth: 'admin',
  limits: [],
  result: array(object({ event: text({ examples: ['login'] }), ring: oneOf(AUDIT_RINGS) })),
  errors: ['SessionNotFound', 'Forbidden'],
  handle: () => AUDIT_EVENT_NAMES.map((event) => ({ event, ring: AUDIT_EVENTS[event] })),
});

function itemOf({ seq, ring, record: stored }: AuditRow): Static<typeof item> {
  if (stored === undefined) return { seq, utc: null, event: UNREADABLE, ring, userId: null, fields: {} };
  const { utcMs, event, userId, fields } = stored as AuditRecord;
  return { seq, utc: toIso(utcMs), event, ring, userId, fields };
}

/** Throws `InvalidInput` that names the field. */
function readSearch(query: AuditQuery): AuditSearch {
  const { after, before, userId, event, ring, from, to } = query;
  const search = {
    after: after ?? 0,
    before: before ?? Number.MAX_SAFE_INTEGER,
    oldestFirst:
      after !== undefined && [before, userId, event, ring, from, to].every((each) => each === undefined),
    limit: readPage(query).limit,
    userId: userId === undefined ? undefined : requireId(userId, 'userId'),
    event,
    ring,
    fromMs: from === undefined ? Number.NEGATIVE_INFINITY : readTime(from, 'from'),
    toMs: to === undefined ? Number.POSITIVE_INFINITY : readTime(to, 'to'),
  };
  if (search.toMs < search.fromMs) throw new GatewayError('InvalidInput', 'to: expected a time after from');
  return search;
}

function linkTo(query: AuditQuery, name: 'after' | 'before', position: number): string {
  const fields = new URLSearchParams();
  for (const [field, value] of Object.entries({ ...query, [name]: position }))
    fields.set(field, String(value));
  return `<${PATH}?${fields}>; rel="next"`;
}
