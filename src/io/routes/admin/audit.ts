/** Admin JSON of the audit log: filtered pages, the list of events, and which nodes of a cluster have pages. */
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import { AUDIT_EVENT_NAMES, AUDIT_EVENTS, AUDIT_RINGS } from '../../../domain/audit.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { array, named, nullable, object, oneOf, type Static, text } from '../../../domain/schema.ts';
import { nicknameSchema, withNicknames } from '../../accounts/nicknames.ts';
import {
  type AuditAnswer,
  type AuditDeps,
  type AuditQuery,
  auditItem,
  auditPage,
  auditQuery,
} from '../../admin/audit-pages.ts';
import { type AnyRoute, adminRoute, Reply } from '../../http/table/route.ts';

const PATH = '/ProxyAdmin/api/audit';
const listed = named(
  'ListedAuditRecord',
  object({
    ...auditItem.properties,
    /** Nickname of `userId`. */
    nickname: nicknameSchema,
    /** Nickname of the other account of the record, in `by` or `subject` of its fields. */
    otherNickname: nicknameSchema,
  }),
);
export type ListedAuditRecord = Static<typeof listed>;
const CALLS_KEPT = ['gateway', 'node', 'database'] as const;
export function createAdminAuditRoutes(deps: AuditDeps): AnyRoute[] {
  return [pageRoute(deps), nodesRoute(deps), eventsRoute];
}

/** The header `Link` (RFC 8288) names the next page, so the result holds only rows. */
function pageRoute(deps: AuditDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: PATH,
    summary: 'The audit log, the newest first; a page looks at 20,000 records, `Link` names the next one',
    description:
      'Filters hold together. `after` on its own reads forwards; with anything else pages go backwards. A page may be empty and still name a next one. In a cluster positions are those of one node, which `Link` names; `after` reads its journal alone, without records of calls in the database.',
    docs: { sends: ['Link'] },
    query: auditQuery,
    result: array(listed),
    errors: ['NotFound'],
    async handle({ actors, query }) {
      const { items, next } = await auditPageOf(deps, actors, query);
      return Reply.result(items, next === null ? [] : [['Link', linkTo(next)]]);
    },
  });
}

/** A page of the node that the query names, of this one without a name; nicknames are read here. */
export async function auditPageOf(
  deps: AuditDeps,
  actors: ActorSystem,
  query: AuditQuery,
): Promise<{ readonly items: readonly ListedAuditRecord[]; readonly next: AuditAnswer['next'] }> {
  const { node } = query;
  const isHere = node === undefined || node === deps.cluster?.node;
  const { items, next } = isHere ? await auditPage(deps, query) : await pageElsewhere(deps, node, query);
  const named = await withNicknames(actors, items, ({ userId }) => userId);
  return { items: await withNicknames(actors, named, otherAccountOf, 'otherNickname'), next };
}

function otherAccountOf({ fields }: Static<typeof auditItem>): string | null {
  const id = fields['by'] ?? fields['subject'];
  return typeof id === 'string' ? id : null;
}

async function pageElsewhere({ cluster }: AuditDeps, node: string, query: AuditQuery): Promise<AuditAnswer> {
  if (cluster === undefined) throw new GatewayError('InvalidInput', 'node: there is no cluster');
  return (await cluster.pageOf(node, query)) as AuditAnswer;
}

function nodesRoute({ cluster }: AuditDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: `${PATH}/nodes`,
    summary: 'Where records of calls are kept, and which nodes have pages of their own',
    description:
      '`gateway`: there is no cluster. `database`: every node shows the records of all. `node`: each node has its own, and `node` of a page chooses.',
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

const eventsRoute = adminRoute({
  method: 'GET',
  path: `${PATH}/events`,
  summary: 'Events of the audit log, each with the ring that keeps its records',
  description: 'Each ring is bounded on its own, so that frequent events do not push rare ones out.',
  result: array(object({ event: text({ examples: ['login'] }), ring: oneOf(AUDIT_RINGS) })),
  handle: () => AUDIT_EVENT_NAMES.map((event) => ({ event, ring: AUDIT_EVENTS[event] })),
});

function linkTo(query: AuditQuery): string {
  const fields = new URLSearchParams();
  for (const [field, value] of Object.entries(query)) fields.set(field, String(value));
  return `<${PATH}?${fields}>; rel="next"`;
}
