/** The nodes of a cluster as the command `cluster status` and the admin panel show them. */
import { ADMITTED_SHARE } from '../../actors/runtime/replication/lease.ts';
import { ownersOf } from '../../domain/partitions.ts';
import type { NodeRecord } from './node-table.ts';

/** Hexadecimal digits of the hash of a configuration: enough to see a difference. */
const HASH_DIGITS = 12;

/** `late`: it is in, and has not renewed for a lease. */
export const NODE_STATES = ['joined', 'late', 'out'] as const;

/** State of a node at its last renewal. */
export interface NodeReport {
  readonly name: string;
  readonly number: number;
  readonly state: (typeof NODE_STATES)[number];
  readonly applied: number;
  /** Rows of the log that it has not applied. */
  readonly lag: number;
  readonly renewedMsAgo: number;
  /** Milliseconds that it may still answer without a renewal; 0 when it is out. */
  readonly leaseLeftMs: number;
  readonly partitionsOwned: number;
  /** Turns of all nodes that it has refused, and that it failed to apply, since its start: bugs of their writer. */
  readonly turnsRefused: number;
  readonly turnsThrown: number;
  /** Clock of the database minus its own. */
  readonly clockOffsetMs: number;
  readonly address: string;
  readonly version: string;
  readonly configuration: string;
}

/** `position`: of the newest row of the log. `leaseMs`: of a node that has not reported its own. */
export function reportNodes(
  nodes: readonly NodeRecord[],
  position: number,
  leaseMs: number,
): readonly NodeReport[] {
  const owners = ownersOf(nodes.filter(({ joined }) => joined).map(({ node }) => node));
  return nodes.map((record) => {
    const { name, node, joined, applied, renewedAgoMs, address, version, configHash, figures } = record;
    const lease = figures?.leaseMs ?? leaseMs;
    return {
      name,
      number: node,
      state: joined ? (renewedAgoMs > lease ? 'late' : 'joined') : 'out',
      applied,
      lag: Math.max(0, position - applied),
      renewedMsAgo: renewedAgoMs,
      leaseLeftMs: joined ? Math.max(0, Math.round(lease * ADMITTED_SHARE) - renewedAgoMs) : 0,
      partitionsOwned: owners.filter((owner) => owner === node).length,
      turnsRefused: figures?.turnsRefused ?? 0,
      turnsThrown: figures?.turnsThrown ?? 0,
      clockOffsetMs: figures?.clockOffsetMs ?? 0,
      address,
      version,
      configuration: digitsOf(configHash),
    };
  });
}

export function digitsOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString('hex').slice(0, HASH_DIGITS);
}
