/** Options of a gateway beside its configuration. */

import type { ConfigurationResult } from '../config/load.ts';
import type { Log } from '../io/observability/log.ts';
import type { SandboxThread } from '../sandbox/start.ts';

export interface AssemblyOptions {
  readonly version: string;
  readonly log: Log;
  /** Reads the configuration again, for a reload. */
  readonly readAgain: () => ConfigurationResult;
  /** Starts with an empty journal although the folder had one. */
  readonly newJournal: boolean;
  /** Loads the modules of the sandbox beside the gateway; left out, its thread begins when they start. */
  readonly sandboxThread?: SandboxThread | undefined;
  /** Called often while a start makes progress, and for each row that is read later. */
  readonly onProgress: () => void;
  /** Called when the journal failed, after every pending command was answered. */
  readonly onFatal: (error: Error) => void;
}
