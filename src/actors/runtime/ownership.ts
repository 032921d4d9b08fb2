/**
 * Decides which actors this node works for. Start-up sweeps and background work pass over all others: of a cluster,
 * another node does theirs. The answer changes with the members, so it is asked for each run and kept nowhere.
 */
import { homeOf } from '../../domain/partitions.ts';

export interface Ownership {
  owns(kind: string, id: string): boolean;
}

/** One machine. */
export const OWNS_ALL: Ownership = { owns: () => true };

/** The log, the inbox and the polling of modules together. */
export const EVENTS_HOME = ['eventLog', 'all'] as const;

/** Partition of the event rows. */
export const EVENTS_PARTITION = homeOf(...EVENTS_HOME);
