/**
 * The authorization server and /connect/mcp over real actors on a free loopback port: an admin, an owner, a clock that the
 * test moves, and metadata documents that the test gives.
 */

import type { Test } from 'tap';
import { stopAfter } from '../../kit/close-after.ts';
import type { SharedBounds } from '../../src/domain/limits/shared-bounds.ts';
import { KNOWN_PRIVATE_REDIRECTS } from '../../src/domain/oauth/clients.ts';
import { openChallenges } from '../../src/io/accounts/challenges.ts';
import { OAuthClientRegistry, openHostsRow } from '../../src/io/connect/clients.ts';
import { ConnectCounters } from '../../src/io/connect/counters.ts';
import { ClientDocuments, type DocumentOptions } from '../../src/io/connect/documents.ts';
import { protectedEndpoint } from '../../src/io/connect/mcp-endpoint.ts';
import { type OAuthPolicy, policyOf } from '../../src/io/connect/policy.ts';
import { CONNECT_PROFILE_PATH, createResources, mcpResource } from '../../src/io/connect/resources.ts';
import { openSealers } from '../../src/io/connect/sealed.ts';
import { CapabilityCodes } from '../../src/io/mcp/capability.ts';
import { LiveCatalog, loadCatalog } from '../../src/io/mcp/catalog.ts';
import { NodeSignals } from '../../src/io/mcp/node-signals.ts';
import { McpSessionIds } from '../../src/io/mcp/session-ids.ts';
import { ToolLimits } from '../../src/io/mcp/tool-limits.ts';
import { BUILT_IN } from '../../src/io/mcp/tools/built-in.ts';
import { GATEWAY_SERVICES } from '../../src/io/mcp/tools/gateway.ts';
import { createModuleClient } from '../../src/io/modules/client.ts';
import { createConnectRoutes } from '../../src/io/routes/connect.ts';
import { connectedHosts, endConnectedHost } from '../../src/io/routes/connected-hosts.ts';
import { createMcpRoutes } from '../../src/io/routes/mcp.ts';
import { type Account, cookie } from './account.ts';
import { freshBounds } from './actors/bounds.ts';
import { type AdminFixtureOptions, CIPHER, startAdmin } from './admin.ts';
import { askRequest, connectHost, refreshTokens, sendMcp } from './hosts.ts';
import { openStreams } from './mcp.ts';

/** A profile to connect to. */
const ROWS = { tools: {}, resources: {}, profiles: { one: { tools: ['user_keys'] } } };

/** The keys on OAuth as a development gateway with documents has them. */
export const OAUTH = {
  production: false,
  oauthClients: 'any',
  oauthClientHosts: [],
  oauthDocuments: true,
  oauthPrivateRedirects: KNOWN_PRIVATE_REDIRECTS,
} as const;

export type ConnectFixture = Awaited<ReturnType<typeof startConnect>>;

export interface ConnectFixtureOptions extends AdminFixtureOptions {
  readonly policy?: Partial<OAuthPolicy>;
  readonly documents?: Partial<DocumentOptions>;
}

export async function startConnect(options: ConnectFixtureOptions = {}) {
  const policy = { ...policyOf(OAUTH), ...options.policy };
  const counters = new ConnectCounters();
  const loaded = loadCatalog(BUILT_IN, ROWS, new Map(), { personalReads: true });
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.faults));
  const catalog = new LiveCatalog(loaded.catalog);
  const sealers = openSealers(CIPHER);
  let closeDocuments: () => void = () => undefined;
  const openDocuments = (bounds: SharedBounds) => {
    const documents = new ClientDocuments({
      rules: () => ({ production: true, allow: [], ports: '' }),
      resolve: async () => ['203.0.113.7'],
      redirects: policy.redirects.document,
      elapsed: () => performance.now(),
      bound: bounds.of('clientDocuments'),
      ...options.documents,
    });
    closeDocuments = () => documents.close();
    return documents;
  };
  const modules = createModuleClient({ clock: Date.now, bounds: freshBounds() });
  const fixture = await startAdmin({
    ...options,
    routes: (actors, bounds, sessions) => [
      connectedHosts,
      endConnectedHost,
      ...createConnectRoutes({
        resources: createResources([mcpResource({ project: 'demo' })], (name) =>
          catalog.current.profiles.get(name),
        ),
        policy,
        sealers,
        clients: new OAuthClientRegistry({ policy, documents: openDocuments(bounds), sealers }),
        counters,
        catalog,
        challenges: { challenges: openChallenges(CIPHER), openBound: bounds.of('challenges') },
      }),
      ...createMcpRoutes(
        {
          sessions,
          catalog,
          modules,
          gateway: GATEWAY_SERVICES,
          listChanges: openStreams(catalog, bounds, actors.clock.read).listChanges,
          signals: new NodeSignals(),
          sessionIds: new McpSessionIds(CIPHER),
          toolLimits: new ToolLimits(actors.clock.read),
          codes: new CapabilityCodes({ modules, moduleAddresses: new Map() }),
        },
        undefined,
        [protectedEndpoint(), protectedEndpoint(CONNECT_PROFILE_PATH)],
      ),
      ...(options.routes?.(actors, bounds, sessions) ?? []),
    ],
  });
  await openHostsRow(fixture.actors.system, 'http://localhost');
  const { url } = fixture.http;
  /** The `Cookie` of an account. */
  const cookieOf = ({ sid }: Account) => cookie(sid)['Cookie'] ?? '';
  return {
    ...fixture,
    url,
    counters,
    cookieOf,
    /** The answer that the page shows for the query, to the owner unless another cookie is given. */
    shown: (query: string, sid = cookieOf(fixture.owner)) => askRequest(url, sid, query),
    /** HTTP status of tools/list with an access token. */
    statusWith: async (token: string) => (await sendMcp(url, token, { method: 'tools/list' })).status,
    async stop(): Promise<void> {
      closeDocuments();
      await modules.close();
      await fixture.stop();
    },
  };
}

/** The same, stopped at the end of the test. */
export async function startConnectOf(t: Test, options: ConnectFixtureOptions = {}): Promise<ConnectFixture> {
  return stopAfter(t, await startConnect(options));
}

/** The same, with a host that the owner has connected. */
export async function startConnected(t: Test) {
  const fixture = await startConnectOf(t);
  const made = await connectHost(fixture.url, fixture.cookieOf(fixture.owner));
  /** Presents a refresh token of the host. */
  const refresh = (token: string, changes: Readonly<Record<string, string>> = {}) =>
    refreshTokens(fixture.url, made.host, token, changes);
  return { ...fixture, ...made, refresh };
}
