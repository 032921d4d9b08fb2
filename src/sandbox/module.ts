/**
 * Definition of a sandbox module: a table of endpoints over a state that changes only by applying records, live and on
 * replay; and input readers, which name the field that they refuse.
 */
import type { ModuleCall } from './call-arguments.ts';
import type { EventList } from './events.ts';
import type { SandboxRecord } from './record-log.ts';

export interface ModuleEndpoint {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /**
   * `user`: needs X-Crm. `gateway`: called by the gateway for itself, refused with a user. Otherwise the X-Scopes of
   * a capability code, without X-Crm.
   */
  readonly calledFor: 'user' | 'gateway' | 'Capability:chat' | 'Capability:wallet';
  /** Returns `result`; throws `SandboxError`. Synchronous: two calls never interleave. */
  handle(call: ModuleCall): unknown;
}

export interface SandboxModule {
  readonly name: string;
  readonly endpoints: readonly ModuleEndpoint[];
  readonly events: EventList;
  /** An account was created at the gateway: what the module keeps for each user begins, once. */
  signedUp?(call: ModuleCall): void;
  apply(record: SandboxRecord): void;
}
