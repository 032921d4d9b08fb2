/** Admin JSON of the tools of the catalog: who may call them, what they cost a model, and their use over a range. */
import { CALLER_CLASSES } from '../../../domain/access.ts';
import { GatewayError } from '../../../domain/errors.ts';
import {
  array,
  integer,
  named,
  nullable,
  number,
  object,
  oneOf,
  text,
  unknown,
} from '../../../domain/schema.ts';
import { ALL_NODES } from '../../admin/dashboard.ts';
import { RANGE_NAMES } from '../../admin/history/history.ts';
import { mergeUsed } from '../../admin/history/merge.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import { type AnyRoute, adminRoute } from '../../http/table/route.ts';
import { type Catalog, type ToolEntry, toolItem } from '../../mcp/catalog.ts';
import { tokensOf } from './catalog.ts';
import { missingNodes } from './records.ts';

interface ToolDeps {
  readonly catalog: { readonly current: Catalog };
  readonly nodes: Pick<AdminNodes, 'history'>;
}

/** Effect of a call, by the annotations of the tool with the defaults of MCP. */
const EFFECTS = ['looksUp', 'changes', 'irreversible'] as const;

const fields = {
  name: text({ examples: ['wallet_get_balance'] }),
  title: nullable(text({ examples: ['Balances'] })),
  description: text({ examples: ['Balances of the logged-in user.'] }),
  /** Module, or the name of another MCP server; null: the gateway itself, or a plain URL. */
  module: nullable(text({ examples: ['wallet'] })),
  effect: oneOf(EFFECTS),
  callers: array(oneOf(CALLER_CLASSES)),
  profiles: array(text({ examples: ['shop'] })),
  estimatedTokens: integer({ examples: [148] }),
};
const tool = named(
  'CatalogTool',
  object({
    ...fields,
    calls: integer(),
    errors: integer(),
    p50: nullable(number({ examples: [3.1] })),
    p99: nullable(number({ examples: [14] })),
  }),
);
const definition = named(
  'CatalogToolDefinition',
  object({
    ...fields,
    annotations: unknown({ examples: [{ readOnlyHint: true }] }),
    inputSchema: unknown({ examples: [{ type: 'object' }] }),
    outputSchema: unknown({ examples: [{ type: 'object' }] }),
  }),
);

export function createAdminToolRoutes(deps: ToolDeps): AnyRoute[] {
  return [listRoute(deps), oneRoute(deps)];
}

function listRoute({ catalog, nodes }: ToolDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/tools',
    summary: 'Tools of the catalog with their use over a range, of all nodes of a cluster',
    description:
      'In the order of the catalog. `callers` are the logins that may call a tool; tokens are an estimate, four bytes each.',
    query: object({ range: oneOf(RANGE_NAMES) }),
    result: object({ tools: array(tool), missing: missingNodes }),
    async handle({ query: { range } }) {
      const { answers, missing } = await nodes.history(range, ALL_NODES);
      const used = new Map(
        mergeUsed(answers.flatMap(({ value }) => value.used)).tool.map((row) => [row.name, row]),
      );
      const tools = [...catalog.current.tools.values()].map((entry) => {
        const { calls = 0, errors = 0, p50 = null, p99 = null } = used.get(entry.name) ?? {};
        return { ...shown(entry, catalog.current), calls, errors, p50, p99 };
      });
      return { tools, missing: [...missing] };
    },
  });
}

function oneRoute({ catalog }: Pick<ToolDeps, 'catalog'>): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/tool',
    summary: 'One tool of the catalog with its schemas',
    description: 'As `tools/list` shows it to those who may call it.',
    query: object({ name: text({ minLength: 1, maxLength: 64, examples: ['wallet_get_info'] }) }),
    result: definition,
    errors: ['NotFound'],
    handle({ query: { name } }) {
      const entry = catalog.current.tools.get(name);
      if (entry === undefined) throw new GatewayError('NotFound', 'no such tool');
      const { annotations = null, inputSchema, outputSchema = null } = entry.row;
      return { ...shown(entry, catalog.current), annotations, inputSchema, outputSchema };
    },
  });
}

function shown(entry: ToolEntry, { profiles }: Catalog) {
  const { name, row, callers, endpoint, upstream } = entry;
  return {
    name,
    title: row.title ?? null,
    description: row.description,
    module: upstream?.server.name ?? endpoint?.module ?? null,
    effect: effectOf(row.annotations),
    callers: CALLER_CLASSES.filter((caller) => callers.has(caller)),
    profiles: [...profiles].flatMap(([profile, view]) => (view.hasTool(name) ? [profile] : [])),
    estimatedTokens: tokensOf(Buffer.byteLength(JSON.stringify(toolItem(entry)))),
  };
}

function effectOf({ readOnlyHint, destructiveHint = true }: ToolEntry['row']['annotations'] = {}) {
  if (readOnlyHint === true) return EFFECTS[0];
  return destructiveHint ? EFFECTS[2] : EFFECTS[1];
}
