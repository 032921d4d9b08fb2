/**
 * The state while rows of the log are applied: what the store holds, with the turns of the batch on top. Owns what an
 * applied turn writes: numbers of messages, values of which the first wins, and the indexes.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Claim } from '../actor.ts';
import {
  AUDIT_TRIMS_KEY,
  type Journal,
  type MailKey,
  MESSAGES_OF_ROW_MAX,
  type Operation,
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
}

export class BatchView implements JudgeView {
  readonly #store: Journal;
  /** As of the row that is being judged. */
  members: Members;
  /** No id in the rows so far is above. */
  newestId: bigint;
  readonly #seqs = new Map<string, number>();
  readonly #names = new Map<string, string | null>();
  readonly #values = new Set<string>();
  /** Messages that the batch has written or used up. */
  readonly #mail = new Map<string, boolean>();
  /** Number of the last trim of the audit log, once it was asked for. */
  #trims: number | undefined;
  #messages = 0;
  #position = 0;

  constructor(store: Journal, members: Members, newestId: bigint) {
    this.#store = store;
    this.members = members;
    this.newestId = newestId;
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
    return this.#seqs.get(`${kind}\0${id}`) ?? this.#store.lastSeq(kind, id);
  }

  lookup(index: Claim['index'], key: string): string | undefined {
    const written = this.#names.get(`${index}\0${key}`);
    return written === undefined ? this.#store.lookup(index, key) : (written ?? undefined);
  }

  hasMail(key: MailKey): boolean {
    return this.#mail.get(mailName(key)) ?? this.#store.hasMail(key);
  }

  /** The turns that follow are of the row at this position. */
  begin(position: number, newestId: bigint): void {
    if (newestId > this.newestId) this.newestId = newestId;
    this.#position = position;
    this.#messages = 0;
  }

  /** Takes in a turn; its writes. Throws before anything is taken in when it cannot be applied. */
  apply({ kind, id, operations, claims }: EntryTurn): AppliedTurn {
    let messages = this.#messages;
    let trims: number | undefined;
    let seq: number | undefined;
    const written: Operation[] = [];
    const values: string[] = [];
    for (const operation of operations) {
      if (operation.op === 'mail') {
        if (messages >= MESSAGES_OF_ROW_MAX) throw new RangeError('too many messages in one row of the log');
        const key = { ...operation.key, seq: this.#position * MESSAGES_OF_ROW_MAX + messages };
        messages += 1;
        written.push({ ...operation, key });
      } else if (operation.op === 'metaOnce') {
        if (this.#values.has(operation.key) || values.includes(operation.key)) continue;
        const { key, row, was } = operation;
        if (!isDeepStrictEqual(this.#store.meta(key), was)) continue;
        values.push(key);
        written.push({ op: 'meta', key, row });
      } else if (operation.op === 'auditTrim') {
        const { trim } = operation;
        trims ??= this.#lastTrim;
        if (trim !== undefined && trim !== trims + 1) continue;
        written.push(operation);
        if (trim === undefined) continue;
        trims = trim;
        written.push({ op: 'meta', key: AUDIT_TRIMS_KEY, row: this.#store.pack(trim) });
      } else {
        if (operation.op === 'append') seq = operation.seq;
        written.push(operation);
      }
    }
    const released = this.#takeNames(claims, written);
    this.#messages = messages;
    this.#trims = trims ?? this.#trims;
    for (const operation of written) {
      if (operation.op === 'mail') this.#mail.set(mailName(operation.key), true);
      else if (operation.op === 'mailRemove') this.#mail.set(mailName(operation.key), false);
    }
    for (const value of values) this.#values.add(value);
    if (seq !== undefined) this.#seqs.set(`${kind}\0${id}`, seq);
    return { kind, id, operations: written, released };
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
