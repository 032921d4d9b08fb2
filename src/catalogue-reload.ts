/**
 * A new catalogue from the configuration file read again: on SIGHUP and for an admin, by one function. Other keys of
 * the file wait for a restart.
 */
import type { ConfigurationResult } from './config.ts';
import type { Log } from './io/log.ts';
import type { LiveCatalogue } from './io/mcp/catalogue.ts';
import type { Reload } from './io/routes/admin-catalogue.ts';
import { reloadCatalogue, type Started, warnOfPersonalReads } from './modules.ts';

export interface ReloadParts extends Started {
  /** Reads file and environment as the start did. */
  readonly read: () => ConfigurationResult;
  readonly catalogue: LiveCatalogue;
  readonly log: Log;
}

/** All faults of the file come back and are logged; with any of them the old catalogue stays whole. */
export function createReload({ read, catalogue, log, ...started }: ReloadParts): Reload {
  return () => {
    const result = read();
    const faults = result.ok ? reloadCatalogue(catalogue, result.configuration, started) : result.faults;
    if (faults.length > 0) log.error({ faults }, 'reload refused, the old catalogue stays');
    else {
      log.info('catalogue reloaded');
      warnOfPersonalReads(catalogue.current, started.production, log);
    }
    return faults;
  };
}
