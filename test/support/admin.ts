/** Accounts, applications and their admin from the outside: the account fixture with the app and admin routes beside. */
import type { Test } from 'tap';
import { stopAfter } from '../../kit/close-after.ts';
import { LiveSettings } from '../../src/domain/settings/settings.ts';
import type { Site } from '../../src/domain/site.ts';
import type { AuditCluster } from '../../src/io/admin/audit-pages.ts';
import { Dashboard } from '../../src/io/admin/dashboard.ts';
import { createNodeWork, type Reload } from '../../src/io/admin/node-work.ts';
import { AdminNodes, type NodeLinks } from '../../src/io/admin/nodes.ts';
import { settingsReload } from '../../src/io/admin/settings.ts';
import { LiveStaff, type SetupLink, SetupLinks } from '../../src/io/admin/staff.ts';
import { createApiKeyCipher } from '../../src/io/apps/api-keys.ts';
import { type CatalogResult, LiveCatalog, loadCatalog } from '../../src/io/mcp/catalog.ts';
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import type { UpstreamAdministration } from '../../src/io/mcp/upstreams/servers.ts';
import type { AdminAppDeps } from '../../src/io/routes/admin/apps.ts';
import { createAdminRoutes } from '../../src/io/routes/admin/index.ts';
import type { OperationDeps } from '../../src/io/routes/admin/operations.ts';
import type { AdminWebhookDeps } from '../../src/io/routes/admin/webhooks.ts';
import { createAppRoutes } from '../../src/io/routes/apps.ts';
import {
  type Account,
  type AccountFixture,
  type AccountFixtureOptions,
  type Answer,
  cookie,
  makeKey,
  startAccounts,
} from './account.ts';
import type { TestActors } from './actors/actors.ts';
import { noTroubles, testHistory } from './panel/history.ts';

const noWebhooks = (): never => {
  throw new Error('this test has no webhooks');
};
const NO_MCP_SERVERS: UpstreamAdministration = {
  links: [],
  stored: () => ({ isOpened: false, approved: {}, proposed: {} }),
  settle: async () => undefined,
};
const NO_WEBHOOKS = {
  oldestUndeliveredSeconds: async () => null,
  deliveries: noWebhooks,
  payload: noWebhooks,
  resend: noWebhooks,
};

export const CIPHER = createApiKeyCipher(Buffer.alloc(32, 7));
const BUILT = loadCatalog(BUILT_IN, { tools: {}, resources: {} }, new Map(), { personalReads: true });
export const SHOP = { name: 'Shop', url: 'https://shop.example' };

export type AdminFixture = Awaited<ReturnType<typeof startAdmin>>;

export interface AdminFixtureOptions extends AccountFixtureOptions {
  readonly reload?: Reload;
  readonly webhooks?: AdminAppDeps['webhooks'] & Partial<AdminWebhookDeps['webhooks']>;
  readonly setupLink?: SetupLink;
  /** Other nodes; without it the gateway is alone. */
  readonly links?: NodeLinks;
  readonly eventLog?: OperationDeps['eventLog'];
  readonly auditCluster?: AuditCluster;
  readonly mcpServers?: (actors: TestActors) => UpstreamAdministration;
  /** Without it the admin's key is one of the configuration. */
  readonly noKeys?: true;
}

export async function startAdmin(options: AdminFixtureOptions = {}) {
  const key = makeKey();
  const keys = options.noKeys === true ? [] : [key.publicKey];
  const site: Partial<Site> = { adminPublicKeys: new Set(keys), ...options.site };
  let staff: LiveStaff | undefined;
  const fixture = startAccounts({
    ...options,
    site,
    staff: { roleOf: (userId) => staff?.roleOf(userId) },
    account: {
      staff: { leave: async (userId, address) => staff?.leave(userId, address) },
      ...options.account,
    },
    routes: (actors, bounds, sessions) => {
      const { administration } = actors.system;
      const webhooks = { ...NO_WEBHOOKS, ...options.webhooks };
      staff = new LiveStaff(actors.system, new Set(keys), actors.system);
      const settings = new LiveSettings();
      const dashboard = new Dashboard(() => ({}));
      const catalog = catalogOf(BUILT);
      const work = createNodeWork({
        administration,
        dashboard,
        history: testHistory(() => fixture.actors.clock.nowMs).history,
        catalog,
        reload: options.reload ?? (() => []),
        troubles: noTroubles,
        modules: () => [],
        setupLinks: new SetupLinks(options.setupLink),
        clock: () => fixture.actors.clock.nowMs,
      });
      const nodes = new AdminNodes(work, options.links);
      dashboard.follow(nodes);
      return [
        ...createAppRoutes(CIPHER),
        ...createAdminRoutes({
          settings: {
            settings,
            stored: actors.system,
            reload: settingsReload(actors.system, settings),
            bounds,
          },
          accounts: { administration, staff },
          keys: administration,
          apps: { administration, webhooks },
          webhooks: { webhooks },
          records: {
            administration,
            nodes,
            health: () => ({ databaseConnected: true, activeSessions: 0, rssBytes: 1, degraded: [] }),
            auditCluster: options.auditCluster,
          },
          staff: { staff, nodes },
          operations: {
            administration,
            dashboard,
            nodes,
            eventLog: options.eventLog ?? { newest: 0, page: () => [] },
            staff,
          },
          catalog: { catalog, nodes },
          knownModules: [],
          mcpServers: options.mcpServers?.(actors) ?? NO_MCP_SERVERS,
        }),
        ...(options.routes?.(actors, bounds, sessions) ?? []),
      ];
    },
  });
  const admin = await fixture.signUp(key);
  const owner = await fixture.signUp();
  if (staff === undefined) throw new Error('the routes were not made');
  return { ...fixture, staff, admin, owner, ...createStaffCalls(fixture, admin, owner) };
}

/** The same, stopped at the end of the test. */
export async function startAdminOf(t: Test, options: AdminFixtureOptions = {}): Promise<AdminFixture> {
  return stopAfter(t, await startAdmin(options));
}

/** Rows of an answer, which must be 200. */
export function rowsOf(answer: Answer): Record<string, unknown>[] {
  if (answer.status !== 200) throw new Error(JSON.stringify(answer.error));
  return answer.result as Record<string, unknown>[];
}

function createStaffCalls(fixture: AccountFixture, admin: Account, owner: Account) {
  const change = (path: string, body: unknown, account = admin) =>
    fixture.post(`/ProxyAdmin/api/${path}`, body, cookie(account.sid));
  return {
    /** A request to `/ProxyAdmin/api/…` with the session of an account: the admin's unless given. */
    ask: (path: string, account = admin) => fixture.get(`/ProxyAdmin/api/${path}`, cookie(account.sid)),
    change,
    /** A new application of an account, the owner's unless given; its id. */
    async register(body: object = SHOP, account = owner): Promise<string> {
      const answer = await fixture.post('/auth/v1/app/upsert_usr_app', body, cookie(account.sid));
      if (answer.status !== 200) throw new Error(`upsert_usr_app: ${JSON.stringify(answer)}`);
      return (answer.result as { id: string }).id;
    },
    /** `apps/update` by the admin, which must succeed. */
    async administer(appId: string, flags: object): Promise<void> {
      const answer = await change('apps/update', { appId, ...flags });
      if (answer.status !== 200) throw new Error(`apps/update: ${JSON.stringify(answer)}`);
    },
    stop: fixture.close,
  };
}

function catalogOf(result: CatalogResult): LiveCatalog {
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  return new LiveCatalog(result.catalog);
}
