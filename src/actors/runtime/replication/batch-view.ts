/**
 * The state while rows of the log are applied: what the store holds, with the turns of the batch on top. Owns what an
 * applied turn writes: numbers of messages, values of which the first wins, and the indexes.
 */

import { isDeepStrictEqual } from 'node:util';
import { invariant } from '../../../domain/errors.ts';
import type { Claim } from '../actor.ts';
import { EventWrites, type EventWritesOptions, isEventRequest } from '../journal/event-writes.ts';
import {
  AUDIT_TRIMS_KEY,
  type Journal,
  type MailKey,
  MESSAGES_OF_ROW_MAX,
  type Operation,
  type Packed,
} from '../journal/port.ts';
import type { EntryTurn } from './entry.ts';
import type { JudgeView } from './judge.ts';
import type { Members } from './members.ts';

/** A name that an applied turn has freed. */
interface ReleasedName {
  readonly index: Claim['index'];
  readonly key: string;
  readonly owner: string;
}

/** An applied turn, with its writes as they are in the store. */
export interface AppliedTurn {
  readonly kind: string;
  readonly id: string;
  readonly operations: readonly Operation[];
  readonly released: readonly ReleasedName[];
  /** Requests of events that were passed over. */
  readonly skipped: number;
}

export interface BatchViewOptions {
  /** Planted faults of the simulation: what decides about events instead. */
  readonly eventWrites?: ((options: EventWritesOptions) => EventWrites) | undefined;
}

export class BatchView implements JudgeView {
  readonly #store: Journal;
  /** Members at the row that is being judged. */
  members: Members;
  /** No id in the rows so far is above. */
  newestId: bigint;
  readonly #seqs = new Map<string, number>();
  readonly #names = new Map<string, string | null>();
  /** Values of which the first wins, as the batch has written them. */
  readonly #values = new Map<string, Packed>();
  readonly #events: EventWrites;
  /** Messages that the batch has written or used up. */
  readonly #mail = new Map<string, boolean>();
  /** Number of the last trim of the audit log, once it was asked for. */
  #trims: number | undefined;
  #messages = 0;
  #position = 0;

  constructor(store: Journal, members: Members, newestId: bigint, options: BatchViewOptions = {}) {
    this.#store = store;
    this.members = members;
    this.newestId = newestId;
    const { eventWrites = (of) => new EventWrites(of) } = options;
    this.#events = eventWrites({
      rows: store.events,
      copy: (row) => store.pack(store.unpack(row)),
      nextArrival: () => this.#nextNumber(),
    });
  }

  isMember(node: number, incarnation: number): boolean {
    return this.members.isMember(node, incarnation);
  }

  ownerOf(kind: string, id: string): number {
    return this.members.ownerOf(kind, id);
  }

  ownerOfPartition(partition: number): number | undefined {
    return this.members.owners[partition];
  }

  lastSeq(kind: string, id: string): number {
    const name = `${kind}\0${id}`;
    let seq = this.#seqs.get(name);
    if (seq === undefined) {
      seq = this.#store.lastSeq(kind, id);
      this.#seqs.set(name, seq);
    }
    return seq;
  }

  lookup(index: Claim['index'], key: string): string | undefined {
    const written = this.#names.get(`${index}\0${key}`);
    return written === undefined ? this.#store.lookup(index, key) : (written ?? undefined);
  }

  hasMail(key: MailKey): boolean {
    return this.#mail.get(mailName(key)) ?? this.#store.hasMail(key);
  }

  value(key: string): unknown {
    const written = this.#values.get(key);
    return written === undefined ? this.#store.meta(key) : this.#store.unpack(written);
  }

  /** The turns that follow are of the row at this position. */
  begin(position: number, newestId: bigint): void {
    if (newestId > this.newestId) this.newestId = newestId;
    this.#position = position;
    this.#messages = 0;
  }

  /** Takes in a turn; its writes. Throws before anything is taken in when it cannot be applied. */
  apply({ kind, id, operations, claims }: EntryTurn): AppliedTurn {
    this.#requireNumbers(operations);
    let skipped = 0;
    let trims: number | undefined;
    let seq: number | undefined;
    const written: Operation[] = [];
    const values = new Map<string, Packed>();
    for (const operation of operations) {
      if (operation.op === 'mail') {
        written.push({ ...operation, key: { ...operation.key, seq: this.#nextNumber() } });
      } else if (operation.op === 'metaOnce') {
        const { key, row, was } = operation;
        if (values.has(key) || !isDeepStrictEqual(this.value(key), was)) continue;
        values.set(key, row);
        written.push({ op: 'meta', key, row });
      } else if (isEventRequest(operation)) {
        const write = this.#events.decide(operation);
        if (write === undefined) skipped += 1;
        else written.push(write);
      } else if (operation.op === 'auditTrim') {
        const { trim } = operation;
        trims ??= this.#lastTrim;
        if (trim !== undefined && trim !== trims + 1) continue;
        written.push(operation);
        if (trim === undefined) continue;
        trims = trim;
        written.push({ op: 'meta', key: AUDIT_TRIMS_KEY, row: this.#store.pack(trim) });
      } else {
        if (operation.op === 'append') {
          const last = seq ?? this.lastSeq(kind, id);
          invariant(operation.seq === last + 1, 'an applied row of an actor follows its last one');
          seq = operation.seq;
        }
        written.push(operation);
      }
    }
    const released = this.#takeNames(claims, written);
    this.#trims = trims ?? this.#trims;
    for (const operation of written) {
      if (operation.op === 'mail') this.#mail.set(mailName(operation.key), true);
      else if (operation.op === 'mailRemove') this.#mail.set(mailName(operation.key), false);
    }
    for (const [key, row] of values) this.#values.set(key, row);
    if (seq !== undefined) this.#seqs.set(`${kind}\0${id}`, seq);
    return { kind, id, operations: written, released, skipped };
  }

  /** Throws where the row has more messages and accepted events than it has numbers. */
  #requireNumbers(operations: readonly Operation[]): void {
    const room = MESSAGES_OF_ROW_MAX - this.#messages;
    if (operations.length <= room) return;
    const numbered = operations.filter(({ op }) => op === 'mail' || op === 'eventAccept');
    if (numbered.length > room) throw new RangeError('too many messages in one row of the log');
  }

  #nextNumber(): number {
    const number = this.#position * MESSAGES_OF_ROW_MAX + this.#messages;
    this.#messages += 1;
    return number;
  }

  get #lastTrim(): number {
    this.#trims ??= Number(this.#store.meta(AUDIT_TRIMS_KEY) ?? 0);
    return this.#trims;
  }

  #takeNames(claims: EntryTurn['claims'], written: Operation[]): ReleasedName[] {
    const released: ReleasedName[] = [];
    for (const { index, key, owner } of claims) {
      const present = owner === null ? this.lookup(index, key) : undefined;
      if (present !== undefined) released.push({ index, key, owner: present });
      this.#names.set(`${index}\0${key}`, owner);
      written.push({ op: 'index', index, key, owner });
    }
    return released;
  }
}

/** The numbers of messages are those of the log: no two have the same. */
function mailName({ toKind, toId, seq }: MailKey): string {
  return `${seq}\0${toKind}\0${toId}`;
}
