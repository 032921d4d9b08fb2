/**
 * Reloads the catalog from the configuration file, on SIGHUP and for an admin. Changes of other keys need a restart; the
 * log names them. Opens what the admin panel asks of every node, a reload among it.
 */
import type { GatewayActors } from '../actors/gateway-actors.ts';
import type { ConfigurationResult } from '../config/load.ts';
import { keysForRestart } from '../domain/config/changes.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { GatewayError } from '../domain/errors.ts';
import type { Dashboard } from '../io/admin/dashboard.ts';
import type { History } from '../io/admin/history/history.ts';
import { type KnownModule, nodeModules } from '../io/admin/modules.ts';
import { createNodeWork, type NodeTroubles, type Reload } from '../io/admin/node-work.ts';
import { AdminNodes } from '../io/admin/nodes.ts';
import type { SetupLinks } from '../io/admin/staff.ts';
import type { FileStorage } from '../io/files/storage/port.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import type { Log } from '../io/observability/log.ts';
import type { SupervisedSandbox } from '../sandbox/supervisor.ts';
import type { OpenedCluster } from './cluster/open.ts';
import { knownModulesOf } from './modules.ts';
import type { ServedCatalog } from './served-catalog.ts';
import type { WebhookDelivery } from './webhooks.ts';

interface ReloadDeps {
  /** Reads the file and the environment as at the start. */
  readonly read: () => ConfigurationResult;
  readonly configuration: Configuration;
  readonly served: ServedCatalog;
  readonly log: Log;
  readonly cluster: OpenedCluster | undefined;
}

/** Returns and logs all faults of the file. With any fault the current catalog stays unchanged. */
function createReload(deps: ReloadDeps): Reload {
  const { read, configuration, served, log, cluster } = deps;
  return () => {
    const result = read();
    const keys = result.ok ? keysForRestart(configuration, result.configuration) : [];
    if (keys.length > 0) log.write('restartNeeded', { keys });
    const faults = result.ok ? served.reload(result.configuration) : result.faults;
    if (faults.length > 0) log.write('catalogRefused', { faults });
    else {
      if (result.ok) cluster?.reloaded(result.configuration);
      log.write('catalogReloaded');
    }
    return faults;
  };
}

interface AdminNodeDeps extends ReloadDeps {
  readonly actors: GatewayActors;
  readonly dashboard: Dashboard;
  readonly history: History;
  readonly setupLinks: SetupLinks;
  readonly modules: Pick<ModuleClient, 'counters' | 'origins'>;
  readonly sandbox: SupervisedSandbox | undefined;
  /** The times since when the keys of modules are known, Unix milliseconds by name. */
  readonly keySince: ReadonlyMap<string, number>;
  readonly webhooks: Pick<WebhookDelivery, 'troubled'>;
  readonly files: { readonly storage: Pick<FileStorage, 'freeBytes'> };
}

async function troublesOf({
  actors,
  history,
  modules,
  webhooks,
  files,
}: AdminNodeDeps): Promise<NodeTroubles> {
  return {
    webhooks: webhooks.troubled(),
    breakersOpen: modules.counters().breakersOpen,
    loopDelayMs: history.loopDelayMs(),
    isWritable: actors.healthy,
    freeBytes: await files.storage.freeBytes().catch((error: unknown) => {
      if (!(error instanceof GatewayError)) throw error;
      return null;
    }),
  };
}

/** `reload`: of this node alone. */
export function openAdminNodes(deps: AdminNodeDeps): {
  readonly nodes: AdminNodes;
  readonly reload: Reload;
  readonly knownModules: readonly KnownModule[];
} {
  const { cluster, actors, dashboard, history, setupLinks, served } = deps;
  const { administration } = actors;
  const knownModules = knownModulesOf(deps.configuration, deps.sandbox, deps.keySince);
  const reload = createReload(deps);
  const work = createNodeWork({
    administration,
    dashboard,
    history,
    setupLinks,
    catalog: served.live,
    reload,
    troubles: () => troublesOf(deps),
    modules: () => nodeModules(knownModules, deps.modules),
    clock: Date.now,
  });
  const nodes = cluster?.adminNodes(work) ?? new AdminNodes(work);
  dashboard.follow(nodes);
  return { nodes, reload, knownModules };
}
