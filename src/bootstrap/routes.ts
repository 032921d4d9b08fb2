/** Passes each group of routes of the public listener its dependencies. */

import { settingsReload } from '../io/admin/settings.ts';
import type { AnyRoute, SessionLookup } from '../io/http/table/route.ts';
import { CapabilityCodes } from '../io/mcp/capability.ts';
import { NodeSignals } from '../io/mcp/node-signals.ts';
import { McpSessionIds } from '../io/mcp/session-ids.ts';
import { ToolLimits } from '../io/mcp/tool-limits.ts';
import { GATEWAY_SERVICES } from '../io/mcp/tools/gateway.ts';
import type { CallObserver } from '../io/observability/metrics.ts';
import { createRoutes } from '../io/routes/index.ts';
import type { HealthFacts } from '../io/routes/info.ts';
import type { HttpDeps } from './http-deps.ts';

export function openRoutes(deps: HttpDeps, sessions: SessionLookup, health: () => HealthFacts): AnyRoute[] {
  const { actors, bounds, catalog, cipher, dashboard, events, fileCodes, files, modules, staff } = deps;
  const { nodes, settings } = deps;
  const { administration } = actors;
  const { moduleAddresses, moduleRules } = deps;
  const { ownerApi } = deps.webhooks;
  const onCall: CallObserver = (call) => {
    deps.metrics.observeCall(call);
    dashboard.observeCall(call);
  };
  const onFieldsDropped = deps.metrics.observeFieldsDropped;
  return createRoutes({
    health,
    accounts: {
      challenges: deps.connect.challenges.challenges,
      openBound: bounds.of('challenges'),
      onSignedUp: (userId) => deps.sandbox?.signedUp(userId),
    },
    account: {
      ...{ modules, moduleAddresses, staff },
      onBug: (error, requestId) => deps.options.log.write('requestFailed', { err: error, requestId }),
    },
    apiKeys: cipher,
    webhooks: ownerApi,
    eventStreams: events.streams,
    v1Uploads: { uploads: files.uploads, fileCodes, slotBound: bounds.of('uploadSlots') },
    v2Uploads: deps.drafts,
    downloads: {
      fileCodes,
      fileCache: files.fileCache,
      v1: files.v1,
      v2: files.v2,
      personalReads: () => catalog.current.policy.personalReads,
    },
    mcp: {
      sessions,
      catalog,
      modules,
      gateway: GATEWAY_SERVICES,
      codes: new CapabilityCodes({ modules, moduleAddresses }),
      listChanges: deps.listChanges,
      signals: deps.cluster?.mcpSignals() ?? new NodeSignals(),
      sessionIds: new McpSessionIds(cipher),
      toolLimits: new ToolLimits(Date.now, deps.exchange?.counts.tool),
      onCall,
    },
    connect: deps.connect,
    upstreams: deps,
    admin: {
      settings: { settings, stored: deps.actors, reload: settingsReload(deps.actors, settings), bounds },
      accounts: { administration, staff },
      keys: administration,
      apps: { administration, webhooks: ownerApi },
      webhooks: { webhooks: ownerApi },
      records: { administration, health, nodes, auditCluster: deps.cluster?.audit.pages },
      staff: { staff, nodes },
      operations: { administration, dashboard, nodes, eventLog: events.log, staff },
      catalog: { catalog, nodes },
      mcpServers: deps.served.servers,
      knownModules: deps.knownModules,
    },
    proxy: { modules, sockets: deps.sockets, moduleAddresses, moduleRules, catalog, onCall, onFieldsDropped },
  });
}
