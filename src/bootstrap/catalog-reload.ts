/**
 * Reloads the catalog from the configuration file, on SIGHUP and for an admin. Changes of other keys need a restart; the
 * log names them.
 */
import type { ConfigurationResult } from '../config/load.ts';
import { keysForRestart } from '../domain/config/changes.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { LiveCatalog } from '../io/mcp/catalog.ts';
import type { Log } from '../io/observability/log.ts';
import type { Reload } from '../io/routes/admin/catalog.ts';
import type { OpenedCluster } from './cluster.ts';
import { reloadCatalog, type Started, warnOfPersonalReads } from './modules.ts';

interface ReloadDeps extends Omit<Started, 'production'> {
  /** Reads the file and the environment as at the start. */
  readonly read: () => ConfigurationResult;
  /** The configuration of this start. */
  readonly configuration: Configuration;
  readonly catalog: LiveCatalog;
  readonly log: Log;
  readonly cluster: Pick<OpenedCluster, 'reloaded'> | undefined;
}

/** Returns and logs all faults of the file. With any fault the current catalog stays unchanged. */
export function createReload(deps: ReloadDeps): Reload {
  const { read, configuration, catalog, log, addresses, cluster } = deps;
  const { production } = configuration;
  const started: Started = { addresses, production };
  return () => {
    const result = read();
    const keys = result.ok ? keysForRestart(configuration, result.configuration) : [];
    if (keys.length > 0) log.write('restartNeeded', { keys });
    const faults = result.ok ? reloadCatalog(catalog, result.configuration, started) : result.faults;
    if (faults.length > 0) log.write('catalogRefused', { faults });
    else {
      if (result.ok) cluster?.reloaded(result.configuration);
      log.write('catalogReloaded');
      warnOfPersonalReads(catalog.current, production, log);
    }
    return faults;
  };
}
