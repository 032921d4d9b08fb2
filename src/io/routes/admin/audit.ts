/** Admin JSON of the audit log: filtered pages, the list of events, and which nodes of a cluster have pages. */
import type { AuditRecord } from '../../../actors/runtime/actor.ts';
import type { AuditRow } from '../../../actors/runtime/journal/port.ts';
import { AUDIT_EVENT_NAMES, AUDIT_EVENTS, AUDIT_RINGS, shownRing } from '../../../domain/audit.ts';
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
import {
  type AuditLog,
  type AuditSearch,
  type CallLog,
  type CallPosition,
  searchAudit,
} from '../../admin/audit.ts';
import { PAGE_ROWS_MAX, readPage } from '../../admin/pagination.ts';
import { readTime, timeText } from '../../http/checks/query-time.ts';
import { type AnyRoute, defineRoute, Reply } from '../../http/table/route.ts';

const PATH = '/ProxyAdmin/api/audit';
const NODE_NAME_MAX = 64;
const CALLS_KEPT = ['gateway', 'node', 'database'] as const;
/** Shown in place of the event of a damaged record. */
const UNREADABLE = 'unreadable';

const item = named(
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
const auditQuery = object({
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
type AuditQuery = Static<typeof auditQuery>;

/** A page with the query of the next one. */
interface AuditAnswer {
  readonly items: readonly Static<typeof item>[];
  readonly next: AuditQuery | null;
}

/** What the pages use of a cluster. */
export interface AuditCluster {
  /** Name of this node. */
  readonly node: string;
  /** Records of calls of all nodes; undefined where each node keeps its own. */
  readonly calls: CallLog | undefined;
  /** Names of all nodes that are in. */
  nodes(): Promise<readonly string[]>;
  /** A page of another node, by `auditPage` there. Throws `Overloaded`, and `NotFound` for no such node. */
  pageOf(node: string, query: unknown): Promise<unknown>;
}

interface AuditDeps {
  readonly log: AuditLog;
  readonly cluster: AuditCluster | undefined;
}

export function createAdminAuditRoutes(deps: AuditDeps): AnyRoute[] {
  return [pageRoute(deps), nodesRoute(deps), eventsRoute];
}

/** The header `Link` (RFC 8288) names the next page, so the result holds only rows. */
function pageRoute(deps: AuditDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: PATH,
    summary: 'The audit log, the newest first; a page looks at 20,000 records, `Link` names the next one',
    docs: {
      description:
        'Filters hold together. `after` on its own reads forwards; with anything else pages go backwards. A page may be empty and still name a next one. In a cluster positions are those of one node, which `Link` names; `after` reads its journal alone, without records of calls in the database.',
      sends: ['Link'],
    },
    group: 'admin',
    auth: 'admin',
    limits: [],
    query: auditQuery,
    result: array(item),
    errors: ['NotFound'],
    async handle({ query }) {
      const { node } = query;
      const isHere = node === undefined || node === deps.cluster?.node;
      const { items, next } = isHere ? await auditPage(deps, query) : await pageElsewhere(deps, node, query);
      return Reply.result(items, next === null ? [] : [['Link', linkTo(next)]]);
    },
  });
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

async function pageElsewhere({ cluster }: AuditDeps, node: string, query: AuditQuery): Promise<AuditAnswer> {
  if (cluster === undefined) throw new GatewayError('InvalidInput', 'node: there is no cluster');
  return (await cluster.pageOf(node, query)) as AuditAnswer;
}

function nodesRoute({ cluster }: AuditDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: `${PATH}/nodes`,
    summary: 'Where records of calls are kept, and which nodes have pages of their own',
    docs: {
      description:
        '`gateway`: there is no cluster. `database`: every node shows the records of all. `node`: each node has its own, and `node` of a page chooses.',
    },
    group: 'admin',
    auth: 'admin',
    limits: [],
    result: object({
      calls: oneOf(CALLS_KEPT),
      /** The asked one. */
      node: nullable(text({ examples: ['node-1'] })),
      nodes: array(text({ examples: ['node-1'] })),
    }),
    async handle() {
      if (cluster === undefined) return { calls: 'gateway' as const, node: null, nodes: [] };
      const calls = cluster.calls === undefined ? ('node' as const) : ('database' as const);
      return { calls, node: cluster.node, nodes: [...(await cluster.nodes())] };
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
  handle: () => AUDIT_EVENT_NAMES.map((event) => ({ event, ring: AUDIT_EVENTS[event] })),
});

function itemOf({ seq, ring: storedRing, record: stored }: AuditRow): Static<typeof item> {
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

function linkTo(query: AuditQuery): string {
  const fields = new URLSearchParams();
  for (const [field, value] of Object.entries(query)) fields.set(field, String(value));
  return `<${PATH}?${fields}>; rel="next"`;
}
