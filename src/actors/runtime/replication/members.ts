/**
 * Members of the cluster, and owners of the partitions, at one position of the log. Every node computes the same from
 * the same rows: no node assigns anything, so no assignment can be out of date.
 */
import { homeOf, ownersOf } from '../../../domain/partitions.ts';

export interface Member {
  readonly incarnation: number;
  /** Position of the row by which it came in. */
  readonly since: number;
}

/** A change of the members, as a row holds it. Who joins or leaves is who wrote the row. */
export type MemberChange =
  | { readonly type: 'join' }
  | { readonly type: 'leave' }
  | { readonly type: 'expel'; readonly node: number };

/** Stored form of the members. */
export type StoredMembers = readonly (readonly [node: number, incarnation: number, since: number])[];

export class Members {
  readonly #members: Map<number, Member>;
  #owners: Uint8Array;

  constructor(stored: StoredMembers = []) {
    this.#members = new Map(stored.map(([node, incarnation, since]) => [node, { incarnation, since }]));
    this.#owners = ownersOf([...this.#members.keys()]);
  }

  /** Owner of each partition; 0 while no node is in. */
  get owners(): Uint8Array {
    return this.#owners;
  }

  isMember(node: number, incarnation: number): boolean {
    return this.#members.get(node)?.incarnation === incarnation;
  }

  member(node: number): Member | undefined {
    return this.#members.get(node);
  }

  nodes(): Iterable<number> {
    return this.#members.keys();
  }

  ownerOf(kind: string, id: string): number {
    return this.#owners[homeOf(kind, id)] ?? 0;
  }

  /**
   * Applies a change that `node` wrote at `position`. A member that joins again keeps its place. The engine has checked
   * who may leave, and who may expel whom: a node that has left cannot be expelled, so it is out here whatever its incarnation.
   */
  change(change: MemberChange, node: number, incarnation: number, position: number): void {
    if (change.type === 'join') {
      const since = this.#members.get(node)?.since ?? position;
      this.#members.set(node, { incarnation, since });
    } else if (change.type === 'leave') {
      this.#members.delete(node);
    } else this.#members.delete(change.node);
    this.#owners = ownersOf([...this.#members.keys()]);
  }

  stored(): StoredMembers {
    return [...this.#members].map(([node, { incarnation, since }]) => [node, incarnation, since]);
  }
}
