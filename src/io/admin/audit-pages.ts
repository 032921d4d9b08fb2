/** Pages of the audit log as JSON, by a query: of this node and, in a cluster, for nodes that ask. */
import type { AuditRecord } from '../../actors/runtime/actor.ts';
import type { AuditRow } from '../../actors/runtime/journal/port.ts';
import { AUDIT_EVENT_NAMES, AUDIT_RINGS, shownRing } from '../../domain/audit.ts';
import { GatewayError } from '../../domain/errors.ts';
import {
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
} from '../../domain/schema.ts';
import { toIso } from '../../domain/time.ts';
import { requireId } from '../accounts/login-parts.ts';
import { readTime, timeText } from '../http/checks/query-time.ts';
import { type AuditLog, type AuditSearch, type CallLog, type CallPosition, searchAudit } from './audit.ts';
import { PAGE_ROWS_MAX, readPage } from './pagination.ts';

const NODE_NAME_MAX = 64;
/** Shown in place of the event of a damaged record. */
const UNREADABLE = 'unreadable';

export const auditItem = named(
  'AuditRecord',
  object({
    /** Position in the log of the node: `before` or `after` of another page. Of a record in the database its number there. */
    seq: integer(),
    /** Null: the record is damaged; its event is `unreadable`. */
    utc: nullable(utcText()),
    event: text({ examples: ['login'] }),
    /** Null for a record of a version without rings. */
    ring: nullable(oneOf(AUDIT_RINGS)),
    userId: nullable(idText()),
    fields: record(text(), unknown()),
    /** The node of a cluster that it comes from; null for records that every node has. */
    node: nullable(text({ examples: ['node-1'] })),
  }),
);
const position = (minimum: number, description: string) =>
  integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description });
export const auditQuery = object({
  after: optional(position(0, 'Position; on its own: the oldest first, after this position')),
  before: optional(position(1, 'Position; the newest first, before this position')),
  limit: optional(integer({ minimum: 1, maximum: PAGE_ROWS_MAX, description: '100 unless given' })),
  userId: optional(int64('Records of this account')),
  event: optional(oneOf(AUDIT_EVENT_NAMES, 'Records of this event')),
  ring: optional(oneOf(AUDIT_RINGS, 'Records of the events of this ring')),
  from: optional(timeText('ISO 8601; inclusive')),
  to: optional(timeText('ISO 8601; inclusive')),
  node: optional(
    text({ maxLength: NODE_NAME_MAX, description: 'Node whose log is read; the asked one unless given' }),
  ),
  calls: optional(
    text({
      pattern: '^[0-9]{1,16}-[0-9]{1,16}-[0-9]{1,16}$',
      form: 'what `Link` has',
      description: 'Place among the records of calls in the database; of `Link` alone',
    }),
  ),
});
export type AuditQuery = Static<typeof auditQuery>;

/** A page with the query of the next one. */
export interface AuditAnswer {
  readonly items: readonly Static<typeof auditItem>[];
  readonly next: AuditQuery | null;
}

/** The part of a cluster that the pages use. */
export interface AuditCluster {
  readonly node: string;
  /** Records of calls of all nodes; undefined where each node keeps its own. */
  readonly calls: CallLog | undefined;
  nodes(): Promise<readonly string[]>;
  /** A page of another node, by `auditPage` there. Throws `Overloaded`, and `NotFound` for no such node. */
  pageOf(node: string, query: unknown): Promise<unknown>;
}

export interface AuditDeps {
  readonly log: AuditLog;
  readonly cluster: AuditCluster | undefined;
}

/** A page of the log of this node. Throws `InvalidInput` that names the field. */
export async function auditPage({ log, cluster }: AuditDeps, query: AuditQuery): Promise<AuditAnswer> {
  const search = readSearch(query);
  const { rows, next } = await searchAudit(log, search, cluster?.calls);
  const items = rows.map(itemOf);
  if (next === undefined) return { items, next: null };
  const { position, calls } = next;
  return {
    items,
    next: {
      ...query,
      [search.oldestFirst ? 'after' : 'before']: position,
      ...(cluster === undefined ? {} : { node: cluster.node }),
      ...(calls === undefined ? {} : { calls: `${calls.timeMs}-${calls.node}-${calls.seq}` }),
    },
  };
}

function itemOf({ seq, ring: storedRing, record: stored }: AuditRow): Static<typeof auditItem> {
  const ring = shownRing(storedRing);
  if (stored === undefined)
    return { seq, utc: null, event: UNREADABLE, ring, userId: null, fields: {}, node: null };
  const { utcMs, event, userId, fields, node } = stored as AuditRecord;
  return { seq, utc: toIso(utcMs), event, ring, userId, fields, node: node ?? null };
}

/** Throws `InvalidInput` that names the field. */
function readSearch(query: AuditQuery): AuditSearch {
  const { after, before, calls, userId, event, ring, from, to } = query;
  const search = {
    after: after ?? 0,
    before: before ?? Number.MAX_SAFE_INTEGER,
    callsBefore: calls === undefined ? undefined : callPosition(calls),
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

function callPosition(text: string): CallPosition {
  const [timeMs = 0, node = 0, seq = 0] = text.split('-').map(Number);
  return { timeMs, node, seq };
}
