/** Admin JSON of the catalog: the sizes of its lists, and a reload of the custom tools and resources of the file. */
import { CALLER_CLASSES } from '../../../domain/access.ts';
import { errorRow } from '../../../domain/errors.ts';
import { array, integer, nullable, object, oneOf, text } from '../../../domain/schema.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import { requireFresh } from '../../admin/pagination.ts';
import { errorBody } from '../../http/exchange/reply.ts';
import { type AnyRoute, adminRoute, Reply } from '../../http/table/route.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { requestIdsOf } from '../../observability/audit-fields.ts';

export interface CatalogDeps {
  readonly catalog: { readonly current: Catalog };
  readonly nodes: Pick<AdminNodes, 'reload'>;
}

/** Bytes of a list for one token of a model: a rule of thumb for English JSON. */
const BYTES_PER_TOKEN = 4;

export function tokensOf(sizeBytes: number): number {
  return Math.ceil(sizeBytes / BYTES_PER_TOKEN);
}

/** Sizes of the lists of tools for a client, so that an admin sees the effect of a profile. */
export function createAdminListsRoute({ catalog }: Pick<CatalogDeps, 'catalog'>): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/catalog',
    summary: 'Lists of tools by profile and class of callers, with their sizes',
    description: 'Without a profile: the list of `/mcp`. Tokens are an estimate, four bytes each.',
    result: array(
      object({
        profile: nullable(text({ examples: ['shop'] })),
        caller: oneOf(CALLER_CLASSES),
        tools: integer({ examples: [55] }),
        sizeBytes: integer({ examples: [40_586] }),
        estimatedTokens: integer({ examples: [10_147] }),
      }),
    ),
    handle() {
      const { whole, profiles } = catalog.current;
      return [[null, whole] as const, ...profiles].flatMap(([profile, view]) =>
        CALLER_CLASSES.map((caller) => {
          const { sizeBytes } = view.toolLists[caller];
          const estimatedTokens = tokensOf(sizeBytes);
          return { profile, caller, tools: view.toolCount(caller), sizeBytes, estimatedTokens };
        }),
      );
    },
  });
}

/** Another node of a cluster whose catalog stays: its file has faults, or it did not answer. */
const notReloaded = object({
  node: text({ examples: ['b'] }),
  reason: oneOf(['refused', 'noAnswer']),
  faults: array(
    object({ path: text({ examples: ['McpTools.x'] }), message: text({ examples: ['is missing'] }) }),
  ),
});

/** The envelope lists all faults beside code and message, so that an admin can correct them in one round. */
export function createAdminCatalogRoute({ nodes }: Pick<CatalogDeps, 'nodes'>): AnyRoute {
  return adminRoute({
    method: 'POST',
    path: '/ProxyAdmin/api/reload',
    summary: 'Read McpTools and McpResources of the configuration file again; a refusal names every fault',
    description:
      'The file takes effect whole or not at all. A refusal carries `faults` with the path of each. Other nodes of a cluster read their own files; `notReloaded` names those whose catalog stays. Needs a recent login.',
    result: object({ tools: integer(), resources: integer(), notReloaded: array(notReloaded) }),
    errors: ['FreshLoginRequired', 'ConfigurationRefused'],
    async handle(context) {
      requireFresh(context);
      const { actors, session, client, nowMs } = context;
      const { own, others } = await nodes.reload();
      const refused = others.answers.filter(({ value }) => value.faults.length > 0);
      const stay = [
        ...refused.map(({ name, value }) => ({
          node: name ?? '',
          reason: 'refused' as const,
          faults: value.faults.map(({ path, message }) => ({ path, message })),
        })),
        ...others.missing.map((node) => ({ node, reason: 'noAnswer' as const, faults: [] })),
      ];
      // Audited on disk before the answer, as every change by an admin.
      await actors.auditFirst({
        utcMs: nowMs,
        event: 'admin.reload',
        userId: session.userId,
        fields: {
          outcome: own.faults.length === 0 ? 'ok' : 'refused',
          ...(stay.length === 0 ? {} : { notReloaded: stay.map(({ node }) => node).join(' ') }),
          address: client.address,
          ...requestIdsOf(context),
        },
      });
      if (own.faults.length === 0) return { tools: own.tools, resources: own.resources, notReloaded: stay };
      const error = { ...errorBody('ConfigurationRefused'), faults: own.faults };
      return Reply.json(errorRow('ConfigurationRefused').status, { error }, [], 'ConfigurationRefused');
    },
  });
}
