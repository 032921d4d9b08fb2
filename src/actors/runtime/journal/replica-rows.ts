/** Metadata by which a journal is a node's copy of the state of a cluster: how far it is, and how its verdicts went. */

/** SHA-256. */
export const DIGEST_BYTES = 32;
/** Nodes compare their digests at multiples of this position. */
export const SAMPLE_ROWS = 100;
/** Digests of earlier positions that are kept, in as many rows that are written in turn. */
export const SAMPLES_MAX = 1_024;

/** Value under `REPLICA_KEY`. */
export type StoredReplica = readonly [
  position: number,
  digest: Uint8Array,
  /** Members in the form of `replication/members.ts`. */
  members: unknown,
  /** Life of the log. */
  logId: string,
  /** Name of the row at the position; absent before the first one. */
  row?: readonly [node: number, incarnation: number, nodeSeq: number] | undefined,
  /** No id in the rows so far is above. */
  newestId?: bigint,
];

/** Digest as of an earlier position. */
export type StoredSample = readonly [position: number, digest: Uint8Array];

/** The row that a checkpoint's position has in a log that begins with it: of no node, and without content. */
export const BEGINNING_ROW = [0, 0, 0] as const;

export function sampleKey(slot: number): string {
  return `clusterDigest/${slot}`;
}

/** Returns the slot of the digest of a multiple of `every`. */
export function slotOf(position: number, every: number): number {
  return (position / every) % SAMPLES_MAX;
}
