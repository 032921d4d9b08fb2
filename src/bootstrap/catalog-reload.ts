/**
 * A new catalog from the configuration file read again: on SIGHUP and for an admin, by one function. Other keys of
 * the file wait for a restart; those that have changed are named in the log.
 */
import type { ConfigurationResult } from '../config/load.ts';
import { keysForRestart } from '../domain/config/changes.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { LiveCatalog } from '../io/mcp/catalog.ts';
import type { Log } from '../io/observability/log.ts';
import type { Reload } from '../io/routes/admin/catalog.ts';
import { reloadCatalog, type Started, warnOfPersonalReads } from './modules.ts';

interface ReloadDeps extends Omit<Started, 'production'> {
  /** Reads file and environment as the start did. */
  readonly read: () => ConfigurationResult;
  /** What this start was made with. */
  readonly configuration: Configuration;
  readonly catalog: LiveCatalog;
  readonly log: Log;
}

/** All faults of the file come back and are logged; with any of them the old catalog stays whole. */
export function createReload({ read, configuration, catalog, log, addresses }: ReloadDeps): Reload {
  const { production } = configuration;
  const started: Started = { addresses, production };
  return () => {
    const result = read();
    const keys = result.ok ? keysForRestart(configuration, result.configuration) : [];
    if (keys.length > 0) log.warn({ keys }, 'changed keys of the configuration need a restart');
    const faults = result.ok ? reloadCatalog(catalog, result.configuration, started) : result.faults;
    if (faults.length > 0) log.error({ faults }, 'reload refused, the old catalog stays');
    else {
      log.info('catalog reloaded');
      warnOfPersonalReads(catalog.current, production, log);
    }
    return faults;
  };
}
