/**
 * Partitions of a cluster: every actor has a home among 256, and every home an owner among the members. The owner is
 * computed by rendezvous hashing, so a member that joins takes its share from all others and nothing else moves.
 */
import { hash } from 'node:crypto';
import { PARTITIONS } from './ids.ts';

/** Node numbers are 1 to 63: six bits of an id. */
export const NODES_MAX = 63;

/** Actors whose id is `<owner>.<part>`: they live where the owner lives. */
const HOMED_BY_OWNER: ReadonlySet<string> = new Set(['upload', 'draft', 'deliveryLog']);
/** Kinds whose actors live in the partition of a plain id: that of an account, as tokens carry it, or an application. */
const HOMED_BY_ID: ReadonlySet<string> = new Set(['user', 'app', ...HOMED_BY_OWNER]);

/** The partition of an actor, 0 to 255. An account's is that of its tokens. */
export function homeOf(kind: string, id: string): number {
  if (!HOMED_BY_ID.has(kind)) return partitionOfText(`${kind}:${id}`);
  const dot = HOMED_BY_OWNER.has(kind) ? id.indexOf('.') : -1;
  return partitionOfText(dot < 0 ? id : id.slice(0, dot));
}

function partitionOfText(text: string): number {
  return hash('sha256', text, 'binary').charCodeAt(0) % PARTITIONS;
}

/** The owner of each partition among these nodes; 0 where there is no node. The order of the nodes has no effect. */
export function ownersOf(nodes: readonly number[]): Uint8Array {
  const owners = new Uint8Array(PARTITIONS);
  for (let partition = 0; partition < PARTITIONS; partition += 1) {
    let best = -1;
    for (const node of nodes) {
      const weight = weightOf(partition, node);
      const isHeavier = weight > best || (weight === best && node < (owners[partition] ?? 0));
      if (!isHeavier) continue;
      best = weight;
      owners[partition] = node;
    }
  }
  return owners;
}

/** 32 bits that look random: the finalizer of MurmurHash3 (public domain) over both numbers. */
function weightOf(partition: number, node: number): number {
  let bits = Math.imul(partition + 1, 0x9e3779b1) ^ Math.imul(node + 1, 0x85ebca77);
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}
