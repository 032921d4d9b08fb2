/** Lists of the panel as CSV files: accounts, keys, applications and the audit log, with the filters of their pages. */
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import type { Administration } from '../../../actors/runtime/administration.ts';
import { object, type TSchema, text } from '../../../domain/schema.ts';
import type { SessionContext } from '../../../domain/sessions.ts';
import { type AuditDeps, type AuditQuery, auditQuery } from '../../admin/audit-pages.ts';
import { type CsvCell, CsvExports, EXPORT_ROWS_MAX, type RowPages } from '../../admin/csv.ts';
import { PAGE_ROWS_MAX, type RowPage } from '../../admin/pagination.ts';
import { type AnyRoute, adminRoute, type RouteContext } from '../../http/table/route.ts';
import {
  type AccountFilter,
  type AccountRow,
  type AdminAccountDeps,
  accountFilter,
  pageOfAccounts,
} from './accounts.ts';
import { type AdminAppDeps, type AdminAppRow, appFilters, pageOfApps } from './apps.ts';
import { auditPageOf, type ListedAuditRecord } from './audit.ts';
import { afterOf, type KeyQuery, keyQuery, type ListedKey, pageOfKeys } from './keys.ts';

type Context = RouteContext<unknown, unknown, SessionContext>;

interface ExportDeps {
  readonly apps: AdminAppDeps;
  readonly audit: AuditDeps;
  readonly accounts: AdminAccountDeps;
}

/** A list: the name of its file, its columns and its pages. */
interface List<Row> {
  readonly name: string;
  readonly summary: string;
  readonly columns: Readonly<Record<string, (row: Row) => CsvCell>>;
  readonly errors: AnyRoute['errors'] & {};
}

const ACCOUNTS: List<AccountRow> = {
  name: 'accounts',
  summary: 'Accounts as CSV, the newest first, with the filters of their list',
  columns: {
    id: ({ id }) => id,
    nickname: ({ nickname }) => nickname,
    created: ({ createdUtc }) => createdUtc,
    blocked: ({ blocked }) => blocked,
    role: ({ role }) => role,
    keys: ({ keys }) => keys,
    sessions: ({ sessions }) => sessions,
    applications: ({ apps }) => apps,
  },
  errors: [],
};

const KEYS: List<ListedKey> = {
  name: 'keys',
  summary: 'Keys as CSV, with the filters of their list',
  columns: {
    account: ({ userId }) => userId,
    nickname: ({ nickname }) => nickname,
    id: ({ id }) => id,
    name: ({ name }) => name ?? null,
    kind: ({ keyType }) => keyType,
    publicKey: ({ publicKey }) => publicKey,
    added: ({ utcCreate }) => utcCreate,
    used: ({ lastUsedUtc }) => lastUsedUtc ?? null,
    mcpAccess: ({ mcpAccess }) => mcpAccess,
    cardDavAccess: ({ cardDavAccess }) => cardDavAccess,
    browserLogin: ({ browserLogin }) => browserLogin,
    proven: ({ proven }) => proven,
    removed: ({ deleted }) => deleted,
  },
  errors: ['NotFound'],
};

const APPS: List<AdminAppRow> = {
  name: 'applications',
  summary: 'Applications as CSV, the newest first, with the filter of their list',
  columns: {
    id: ({ id }) => id,
    name: ({ name }) => name,
    address: ({ url }) => url,
    owner: ({ ownerId }) => ownerId,
    nickname: ({ nickname }) => nickname,
    approved: ({ approved }) => approved,
    mcpEnabled: ({ mcpEnabled }) => mcpEnabled,
    disabled: ({ disabled }) => disabled,
    webhook: ({ webhookUrl }) => webhookUrl ?? null,
    delivered: (row) => row.success_count,
    failed: (row) => row.failed_count,
    oldestUndeliveredSeconds: (row) => row.oldestUndeliveredSeconds,
  },
  errors: [],
};

const AUDIT: List<ListedAuditRecord> = {
  name: 'audit',
  summary: 'The audit log as CSV, the newest first, with the filters of its list',
  columns: {
    time: ({ utc }) => utc,
    event: ({ event }) => event,
    ring: ({ ring }) => ring,
    account: ({ userId }) => userId,
    nickname: ({ nickname }) => nickname,
    node: ({ node }) => node,
    details: ({ fields }) => JSON.stringify(fields),
  },
  errors: ['NotFound'],
};

export function createAdminExportRoutes(deps: ExportDeps): AnyRoute[] {
  const { administration } = deps.accounts;
  const exports = new CsvExports();
  const keyFilters = withoutPages(keyQuery);
  const auditFilters = withoutPages(auditQuery);
  return [
    route(exports, ACCOUNTS, accountFilter, ({ actors, query }) =>
      byId((page) => pageOfAccounts(deps.accounts, actors, query as AccountFilter, page)),
    ),
    route(exports, KEYS, keyFilters, ({ actors, session, query }) =>
      keyPages(actors, administration, query as KeyQuery, session),
    ),
    route(exports, APPS, object({ approved: appFilters.approved }), ({ actors, nowMs, query }) =>
      byId((page) => pageOfApps(deps.apps, actors, { ...page, ...(query as { approved?: boolean }) }, nowMs)),
    ),
    route(exports, AUDIT, auditFilters, ({ actors, query }) =>
      auditPages(deps.audit, actors, query as AuditQuery),
    ),
  ];
}

/** The filters of a list, without the fields that name a page. */
function withoutPages<T extends TSchema & { properties: Record<string, TSchema> }>(query: T) {
  const { after: _, before: __, limit: ___, calls: ____, ...filters } = query.properties;
  return object(filters);
}

function route<Row>(
  exports: CsvExports,
  { name, summary, columns, errors }: List<Row>,
  query: ReturnType<typeof object>,
  pagesOf: (context: Context) => AsyncGenerator<readonly Row[]>,
): AnyRoute {
  const titles = Object.keys(columns);
  const cells = Object.values(columns);
  return adminRoute({
    method: 'GET',
    path: `/ProxyAdmin/api/export/${name}`,
    summary,
    description: `Streamed, at most ${EXPORT_ROWS_MAX} rows; a last line says where the list has more. A text that a spreadsheet would run as a formula begins with an apostrophe. The export is in the audit log.`,
    docs: {
      answers: {
        200: {
          description: 'The file',
          type: 'text/csv',
          schema: text({ description: 'Lines of RFC 4180', examples: [`${titles.join(',')}\r\n`] }),
        },
      },
      sends: ['Content-Disposition', 'Cache-Control'],
    },
    query,
    errors,
    async handle(context) {
      const pages = pagesOf(context as Context);
      // The first page is read before the answer begins, so that a refused filter is an error of its own.
      const first = await pages.next();
      const reply = exports.reply(`${name}.csv`, titles, rowsOf(first, pages, cells));
      const { nowMs, session, client, query: filter } = context;
      const fields = { by: session.userId, address: client.address, list: name, ...(filter as object) };
      const record = { utcMs: nowMs, event: 'list_exported', userId: session.userId, fields } as const;
      try {
        await context.actors.auditFirst(record);
      } catch (error) {
        reply.source.lost();
        throw error;
      }
      return reply;
    },
  });
}

async function* rowsOf<Row>(
  first: IteratorResult<readonly Row[]>,
  rest: AsyncGenerator<readonly Row[]>,
  cells: readonly ((row: Row) => CsvCell)[],
): RowPages {
  const shown = (rows: readonly Row[]) => rows.map((row) => cells.map((cell) => cell(row)));
  if (first.done === true) return;
  yield shown(first.value);
  for await (const rows of rest) yield shown(rows);
}

/** Pages of a list, the newest first. */
async function* byId<Row>(
  pageAfter: (page: {
    readonly after: string;
    readonly limit: number;
    readonly newest: boolean;
  }) => Promise<RowPage<Row>>,
): AsyncGenerator<readonly Row[]> {
  let after: string | undefined = '';
  while (after !== undefined) {
    const { rows, next }: RowPage<Row> = await pageAfter({ after, limit: PAGE_ROWS_MAX, newest: true });
    yield rows;
    after = next;
  }
}

async function* keyPages(
  actors: ActorSystem,
  administration: Administration,
  filter: KeyQuery,
  session: SessionContext,
): AsyncGenerator<readonly ListedKey[]> {
  let query: KeyQuery = { ...filter, limit: PAGE_ROWS_MAX };
  for (;;) {
    const { items, next } = await pageOfKeys(actors, administration, query, session);
    yield items;
    if (next === undefined) return;
    query = { ...query, after: afterOf(next) };
  }
}

async function* auditPages(
  deps: AuditDeps,
  actors: ActorSystem,
  filter: AuditQuery,
): AsyncGenerator<readonly ListedAuditRecord[]> {
  let query: AuditQuery | null = { ...filter, limit: PAGE_ROWS_MAX };
  while (query !== null) {
    const { items, next }: Awaited<ReturnType<typeof auditPageOf>> = await auditPageOf(deps, actors, query);
    yield items;
    query = next;
  }
}
