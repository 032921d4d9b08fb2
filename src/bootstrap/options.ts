/** What a gateway takes besides its configuration. */

import type { ConfigurationResult } from '../config/load.ts';
import type { Log } from '../io/observability/log.ts';

export interface AssemblyOptions {
  readonly version: string;
  readonly log: Log;
  /** Reads the configuration again, for a reload. */
  readonly readAgain: () => ConfigurationResult;
  /** Begins with an empty journal where one has been. */
  readonly newJournal: boolean;
  /** The journal failed: every waiter has its answer. */
  readonly onFatal: (error: Error) => void;
}
