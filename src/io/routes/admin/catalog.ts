/** Admin JSON of the catalog: the sizes of its lists, and a reload of the custom tools and resources of the file. */
import { CALLER_CLASSES } from '../../../domain/access.ts';
import { errorRow } from '../../../domain/errors.ts';
import { array, type Fault, integer, nullable, object, oneOf, text } from '../../../domain/schema.ts';
import { requireFresh } from '../../admin/pagination.ts';
import { errorBody } from '../../http/reply.ts';
import { type AnyRoute, defineRoute, Reply } from '../../http/route.ts';
import type { Catalog } from '../../mcp/catalog.ts';
import { requestIdsOf } from '../../observability/audit-fields.ts';

/** Reads the configuration file again. Without faults the new catalog is served, otherwise the current one stays. */
export type Reload = () => readonly Fault[];

export interface CatalogDeps {
  readonly catalog: { readonly current: Catalog };
  readonly reload: Reload;
}

/** Bytes of a list for one token of a model: a rule of thumb for English JSON. */
const BYTES_PER_TOKEN = 4;

/** What each list of tools costs a client, so that an admin sees what a profile saves. */
export function createAdminListsRoute({ catalog }: CatalogDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/catalog',
    summary: 'Lists of tools by profile and class of callers, with their sizes',
    docs: { description: 'Without a profile: the list of `/mcp`. Tokens are an estimate, four bytes each.' },
    group: 'admin',
    auth: 'admin',
    limits: [],
    result: array(
      object({
        profile: nullable(text({ examples: ['shop'] })),
        caller: oneOf(CALLER_CLASSES),
        tools: integer({ examples: [55] }),
        sizeBytes: integer({ examples: [40_586] }),
        estimatedTokens: integer({ examples: [10_147] }),
      }),
    ),
    errors: ['SessionNotFound', 'Forbidden'],
    handle() {
      const { whole, profiles } = catalog.current;
      return [[null, whole] as const, ...profiles].flatMap(([profile, view]) =>
        CALLER_CLASSES.map((caller) => {
          const { sizeBytes } = view.toolLists[caller];
          const estimatedTokens = Math.ceil(sizeBytes / BYTES_PER_TOKEN);
          return { profile, caller, tools: view.toolCount(caller), sizeBytes, estimatedTokens };
        }),
      );
    },
  });
}

/** The envelope lists all faults beside code and message, so that an admin can correct them in one round. */
export function createAdminCatalogRoute(deps: CatalogDeps): AnyRoute {
  return defineRoute({
    method: 'POST',
    path: '/ProxyAdmin/api/reload',
    summary: 'Read McpTools and McpResources of the configuration file again; a refusal names every fault',
    docs: {
      description:
        'The file takes effect whole or not at all. A refusal carries `faults` with the path of each. Needs a recent login.',
    },
    group: 'admin',
    auth: 'admin',
    limits: [],
    result: object({ tools: integer(), resources: integer() }),
    errors: ['SessionNotFound', 'Forbidden', 'FreshLoginRequired', 'ConfigurationRefused'],
    async handle(context) {
      requireFresh(context);
      const { actors, session, client, nowMs } = context;
      const faults = deps.reload();
      // Audited on disk before the answer, as every change by an admin.
      await actors.auditFirst({
        utcMs: nowMs,
        event: 'admin.reload',
        userId: session.userId,
        fields: {
          outcome: faults.length === 0 ? 'ok' : 'refused',
          address: client.address,
          ...requestIdsOf(context),
        },
      });
      const { tools, resources } = deps.catalog.current;
      if (faults.length === 0) return { tools: tools.size, resources: resources.size };
      const error = { ...errorBody('ConfigurationRefused'), faults };
      return Reply.json(errorRow('ConfigurationRefused').status, { error }, [], 'ConfigurationRefused');
    },
  });
}
