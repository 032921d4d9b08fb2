/**
 * Running digests of what a replica has applied: names of the rows, their verdicts and requests passed over, from the beginning of the log. Owns
 * which earlier ones are kept, and what a difference between nodes means.
 */

import { hash } from 'node:crypto';
import { keepNewest } from '../../../domain/limits/newest.ts';
import type { Journal, Operation } from '../journal/port.ts';
import { DIGEST_BYTES, SAMPLES_MAX, type StoredSample, sampleKey, slotOf } from '../journal/replica-rows.ts';
import { type DigestSample, Diverged, type LogRow, type NodeState } from './port.ts';

/** Numbers of the row behind the digest before it. */
const NUMBERS = 4;
const NUMBER_BYTES = 8;
const VERDICT_BYTES = 2;

/** The digest after a row. */
export function nextDigest(
  digest: Uint8Array,
  { position, node, incarnation, nodeSeq }: LogRow,
  verdicts: Uint16Array,
): Uint8Array {
  const headBytes = DIGEST_BYTES + NUMBERS * NUMBER_BYTES;
  const text = Buffer.allocUnsafe(headBytes + verdicts.length * VERDICT_BYTES);
  text.set(digest, 0);
  let at = DIGEST_BYTES;
  for (const number of [position, node, incarnation, nodeSeq]) at = text.writeDoubleLE(number, at);
  for (const verdict of verdicts) at = text.writeUInt16LE(verdict, at);
  return hash('sha256', text, 'buffer');
}

/** Digests of the newest multiples of some position, in the store too. */
export class DigestHistory {
  readonly #store: Journal;
  readonly #every: number;
  readonly #samples = new Map<number, Uint8Array>();
  #newest: DigestSample | undefined;

  constructor(store: Journal, every: number) {
    this.#store = store;
    this.#every = every;
    const stored: StoredSample[] = [];
    for (let slot = 0; slot < SAMPLES_MAX; slot += 1) {
      const sample = store.meta(sampleKey(slot)) as StoredSample | undefined;
      if (sample !== undefined) stored.push(sample);
    }
    stored.sort(([a], [b]) => a - b);
    for (const [position, digest] of stored) this.add({ position, digest });
  }

  get newest(): DigestSample | undefined {
    return this.#newest;
  }

  at(position: number): Uint8Array | undefined {
    return this.#samples.get(position);
  }

  takes(position: number): boolean {
    return position % this.#every === 0;
  }

  /** Returns the operation that stores it, in the place of the oldest one. */
  writeOf({ position, digest }: DigestSample): Operation {
    const sample: StoredSample = [position, digest];
    return { op: 'meta', key: sampleKey(slotOf(position, this.#every)), row: this.#store.pack(sample) };
  }

  add(sample: DigestSample): void {
    this.#newest = sample;
    keepNewest(this.#samples, SAMPLES_MAX, sample.position, sample.digest);
  }
}

/** Comparison of the other members' digests with those of this node. */
interface Comparison {
  /** Most members, this one among them, agree up to this position; 0 where no other one confirms it. */
  readonly confirmedTo: number;
  /** This node has to end. */
  readonly diverged: Diverged | undefined;
}

/** A position that this node has not reached, or no longer knows, says nothing. */
export function compareDigests(history: DigestHistory, others: readonly NodeState[]): Comparison {
  const members = others.length + 1;
  const agreeing: number[] = [];
  const differing: { readonly node: number; readonly sample: DigestSample; readonly own: DigestSample }[] =
    [];
  for (const { node, sample } of others) {
    const digest = sample === undefined ? undefined : history.at(sample.position);
    if (sample === undefined || digest === undefined) continue;
    if (isSame(digest, sample.digest)) agreeing.push(sample.position);
    else differing.push({ node, sample, own: { position: sample.position, digest } });
  }
  agreeing.sort((a, b) => b - a);
  const confirmedTo = agreeing[Math.max(1, Math.floor(members / 2)) - 1] ?? 0;
  const [first] = differing;
  // With fewer than half against it, this node is, or may be, among those that agree.
  if (first === undefined || differing.length * 2 < members) return { confirmedTo, diverged: undefined };
  const isOutvoted = differing.length * 2 > members && areConsistent(differing.map(({ sample }) => sample));
  const nodes = differing.map(({ node }) => node).join(', ');
  const text = `the state of this node differs at row ${first.own.position} of the log from that of node ${nodes}`;
  return {
    confirmedTo,
    diverged: isOutvoted
      ? new Diverged(`${text}, which are most: its next start fetches the state anew`, true, first.own)
      : new Diverged(
          `${text}, and there is no majority: stop all nodes, and choose the state with cluster recover`,
          false,
          first.own,
        ),
  };
}

/**
 * Judges a checkpoint for a node that agrees with most members up to `confirmedTo`. `wrong`: most members contradict
 * it. A position that this node has not reached, or no longer knows, says nothing.
 */
export function compareCheckpoint(
  { digests, confirmedTo }: { readonly digests: DigestHistory; readonly confirmedTo: number },
  { position, digest }: DigestSample,
): 'agrees' | 'wrong' | Diverged {
  const own = digests.at(position);
  if (own === undefined || isSame(own, digest)) return 'agrees';
  if (confirmedTo >= position) return 'wrong';
  const text = `the state of this node differs at row ${position} of the log from that of the checkpoint`;
  return new Diverged(`${text}: its next start fetches the state anew`, true, { position, digest: own });
}

/** No two of them contradict each other. */
function areConsistent(samples: readonly DigestSample[]): boolean {
  const known = new Map<number, Uint8Array>();
  return samples.every(({ position, digest }) => {
    const before = known.get(position) ?? digest;
    known.set(position, digest);
    return isSame(before, digest);
  });
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
