/**
 * The journal of a node: reads come from the local store, a group of writes goes to the shared log and is on disk when
 * its row is applied here. Turns get their verdict then.
 */
import type { StoredRing } from '../../../domain/audit.ts';
import type { IndexName } from '../actor.ts';
import type {
  CommitDone,
  EventRows,
  IsWanted,
  Journal,
  JournalTurn,
  MailKey,
  Packed,
} from '../journal/port.ts';
import { encodeTurns } from './entry.ts';
import type { Replica } from './replica.ts';

/** The part of a node that writing takes. */
interface RowWriter {
  nextSeq(): number;
  append(nodeSeq: number, body: Uint8Array): Promise<number>;
}

export class ReplicaJournal implements Journal {
  readonly #store: Journal;
  readonly #replica: Replica;
  readonly #writer: RowWriter;
  readonly #newestId: () => bigint;

  /** `newestId`: of the ids that this node has given. */
  constructor(store: Journal, replica: Replica, writer: RowWriter, newestId: () => bigint) {
    this.#store = store;
    this.#replica = replica;
    this.#writer = writer;
    this.#newestId = newestId;
  }

  /** Rejects nothing: an append is tried until the row is in the log, or the node ends. */
  commit(turns: readonly JournalTurn[], done: CommitDone): void {
    const nodeSeq = this.#writer.nextSeq();
    this.#replica.expect(nodeSeq, (judged) => done(undefined, judged, judged.skipped));
    Promise.resolve()
      .then(() => this.#writer.append(nodeSeq, encodeTurns(turns, this.#newestId())))
      .catch((error: unknown) => {
        this.#replica.forget(nodeSeq);
        done(error instanceof Error ? error : new Error(String(error)));
      });
  }

  get events(): EventRows {
    return this.#store.events;
  }

  pack(value: unknown): Packed {
    return this.#store.pack(value);
  }

  unpack(packed: Packed): unknown {
    return this.#store.unpack(packed);
  }

  sizeBytes(packed: Packed): number {
    return this.#store.sizeBytes(packed);
  }

  load(kind: string, id: string) {
    return this.#store.load(kind, id);
  }

  has(kind: string, id: string): boolean {
    return this.#store.has(kind, id);
  }

  lastSeq(kind: string, id: string): number {
    return this.#store.lastSeq(kind, id);
  }

  rowsAfter(kind: string, id: string, afterSeq: number) {
    return this.#store.rowsAfter(kind, id, afterSeq);
  }

  ids(kind: string, afterId: string, limit: number, descending = false): string[] {
    return this.#store.ids(kind, afterId, limit, descending);
  }

  lookup(index: IndexName, key: string): string | undefined {
    return this.#store.lookup(index, key);
  }

  count(index: IndexName): number {
    return this.#store.count(index);
  }

  mailboxes() {
    return this.#store.mailboxes();
  }

  hasMail(key: MailKey): boolean {
    return this.#store.hasMail(key);
  }

  mail(toKind: string, toId: string, afterSeq: number, limit: number) {
    return this.#store.mail(toKind, toId, afterSeq, limit);
  }

  timers(untilMs: number, limit: number, isWanted?: IsWanted) {
    return this.#store.timers(untilMs, limit, isWanted);
  }

  dead(limit: number) {
    return this.#store.dead(limit);
  }

  auditRows(ring: StoredRing): number {
    return this.#store.auditRows(ring);
  }

  auditPage(afterSeq: number, limit: number, rings?: readonly StoredRing[]) {
    return this.#store.auditPage(afterSeq, limit, rings);
  }

  auditBefore(beforeSeq: number, limit: number, rings?: readonly StoredRing[]) {
    return this.#store.auditBefore(beforeSeq, limit, rings);
  }

  meta(key: string): unknown {
    return this.#store.meta(key);
  }

  full(): boolean {
    return this.#store.full();
  }

  get damagedRows(): number {
    return this.#store.damagedRows;
  }

  get walkedBytes(): number {
    return this.#store.walkedBytes;
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
