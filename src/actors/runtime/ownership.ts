/**
 * Which actors this node works for. Start-up sweeps and background work pass over all others: of a cluster, another node
 * does theirs. The answer changes with the members, so it is asked for each run and kept nowhere.
 */

export interface Ownership {
  owns(kind: string, id: string): boolean;
}

/** One machine. */
export const OWNS_ALL: Ownership = { owns: () => true };

/** Homes of work that belongs to no actor; one node does it. */
export const AUDIT_HOME = ['auditLog', 'all'] as const;
/** The log, the inbox and the polling of modules together. */
export const EVENTS_HOME = ['eventLog', 'all'] as const;
