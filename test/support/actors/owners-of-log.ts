/** Owners of the actors at the newest row of a log, whatever the nodes have applied, and since which row. */
import { decodeEntry } from '../../../src/actors/runtime/replication/entry.ts';
import { Members } from '../../../src/actors/runtime/replication/members.ts';
import type { LogRow } from '../../../src/actors/runtime/replication/port.ts';
import { homeOf } from '../../../src/domain/partitions.ts';

export class OwnersOfLog {
  readonly #members = new Members();
  /** Row by which the owner of each partition came to own it. */
  readonly #since: number[] = [];
  /** Homes of the few actors that are asked for at every step. */
  readonly #homes = new Map<string, number>();

  /** Must be called with every row, in order. */
  read({ body, node, incarnation, position }: LogRow): void {
    // The type of a row is in its first bytes: those of turns, which are most, need not be read.
    if (!Buffer.from(body.buffer, body.byteOffset, Math.min(body.length, 16)).includes('member')) return;
    const entry = decodeEntry(body);
    if (entry.type !== 'member') return;
    const before = this.#members.owners;
    this.#members.change(entry.change, node, incarnation, position);
    for (const [partition, owner] of this.#members.owners.entries())
      if (owner !== before[partition]) this.#since[partition] = position;
  }

  /** Does the node own the actor at the newest row, and does it know so at this position? */
  isOwner(node: number, position: number, kind: string, id: string): boolean {
    const name = `${kind} ${id}`;
    const home = this.#homes.get(name) ?? homeOf(kind, id);
    this.#homes.set(name, home);
    return this.#members.owners[home] === node && position >= (this.#since[home] ?? 0);
  }
}
