/**
 * This node's copy of the state: applies rows of the shared log in order to the local store, each batch as a whole with
 * its position. Owns what is known of the log here: position, members and digest.
 */
import { invariant } from '../../../domain/errors.ts';
import {
  type Journal,
  type Judged,
  type Operation,
  ofNoActor,
  REPLICA_KEY,
  type SkippedWrites,
  VERDICT,
} from '../journal/port.ts';
import { DIGEST_BYTES, SAMPLE_ROWS, type StoredReplica } from '../journal/replica-rows.ts';
import { type AppliedTurn, BatchView, type BatchViewOptions } from './batch-view.ts';
import { compareDigests, DigestHistory, nextDigest } from './digests.ts';
import { decodeEntry, type EntryTurn } from './entry.ts';
import { judge } from './judge.ts';
import { type MemberChange, Members, type StoredMembers } from './members.ts';
import {
  type DigestSample,
  type Diverged,
  type LogRow,
  type NodeState,
  nameOf,
  type RowName,
} from './port.ts';
import type { RowSink } from './row-sink.ts';

/** Hears of rows that are visible in the store, in order. */
export interface ReplicaListener {
  /** An applied turn, of this process or another; before the verdict of its group. */
  applied(turn: AppliedTurn): void;
  /** The owners of partitions have changed. */
  membersChanged(before: Members, now: Members, change: MemberChange): void;
}

/** A turn that could not be judged or applied. */
export interface UnjudgedTurn {
  readonly kind: string;
  readonly id: string;
  readonly error: unknown;
}

export interface ReplicaOptions {
  readonly store: Journal;
  /** Has this process written the row? */
  readonly isOwn: (row: LogRow) => boolean;
  /** Names the life of the log that is applied. */
  readonly logId: string;
  /** Planted faults of the simulation: the verdict that is used instead. */
  readonly judge?: typeof judge | undefined;
  /** The same of what becomes of events. */
  readonly eventWrites?: BatchViewOptions['eventWrites'];
  /** Other nodes compare digests at multiples of this position; all nodes have the same. */
  readonly sampleRows?: number | undefined;
  readonly onBug: (report: UnjudgedTurn) => void;
}

export class Replica implements RowSink {
  readonly #options: ReplicaOptions;
  /** The last batch on its way to the store. */
  #storing: Promise<void> = Promise.resolve();
  readonly #flights = new Map<number, (judged: Judged) => void>();
  readonly #listeners: ReplicaListener[] = [];
  /** Readers that wait until a position is applied. */
  #readers: { readonly position: number; readonly resolve: () => void }[] = [];
  /** Life of the log that the store holds the rows of, as it was opened; undefined for an empty store. */
  readonly logId: string | undefined;
  /** Members at `position`. */
  members: Members;
  /** Last row that is visible in the store. */
  position: number;
  lastRow: RowName | undefined;
  /** No id in the rows up to it is above. */
  newestId: bigint;
  /** Running SHA-256 over the names of rows and their verdicts. */
  digest: Uint8Array;
  /** Digests of earlier positions. */
  readonly digests: DigestHistory;
  /** Most members, at least one other among them, have the same state up to this position. */
  confirmedTo = 0;
  /** Refused turns of all nodes, as applied here since the start. `thrown`: judging or applying them failed. */
  readonly turnsRefused = { fenced: 0, stale: 0, conflict: 0, refused: 0, thrown: 0 };

  constructor(options: ReplicaOptions) {
    this.#options = options;
    const { store, sampleRows = SAMPLE_ROWS } = options;
    const stored = store.meta(REPLICA_KEY) as StoredReplica | undefined;
    const [position, digest, members, logId, row, newestId = 0n] = stored ?? [
      0,
      new Uint8Array(DIGEST_BYTES),
      [],
    ];
    // Version 0.2.0 stored the first rows of a log without its name.
    this.logId = logId === '' ? undefined : logId;
    this.position = position;
    this.lastRow = row && { node: row[0], incarnation: row[1], nodeSeq: row[2] };
    this.newestId = BigInt(newestId);
    this.digest = digest;
    this.digests = new DigestHistory(store, sampleRows);
    this.members = new Members(members as StoredMembers);
  }

  get sample(): DigestSample | undefined {
    return this.digests.newest;
  }

  compare(others: readonly NodeState[]): Diverged | undefined {
    const { confirmedTo, diverged } = compareDigests(this.digests, others);
    this.confirmedTo = Math.max(this.confirmedTo, confirmedTo);
    return diverged;
  }

  /** Calls the listener for every row from now on. */
  follow(listener: ReplicaListener): void {
    this.#listeners.push(listener);
  }

  /** Calls back when the row of this process with that number is applied. */
  expect(nodeSeq: number, judged: (judged: Judged) => void): void {
    this.#flights.set(nodeSeq, judged);
  }

  appliedAtLeast(position: number): Promise<void> {
    if (this.position >= position) return Promise.resolve();
    return new Promise((resolve) => this.#readers.push({ position, resolve }));
  }

  /** Resolves when what is on its way to the store is visible: its consequences read the store, which may close then. */
  settled(): Promise<void> {
    return this.#storing;
  }

  forget(nodeSeq: number): void {
    this.#flights.delete(nodeSeq);
  }

  /**
   * Applies rows that begin at `position` + 1; resolves when they are visible in the store and live actors have
   * followed. Rejects when the store fails, or with `EntryTooNew`.
   */
  async apply(rows: readonly LogRow[]): Promise<void> {
    const { store } = this.#options;
    const view = new BatchView(store, this.members, this.newestId, this.#options);
    const operations: Operation[] = [];
    const consequences: (() => void)[] = [];
    const before = this.position;
    let { position, digest, lastRow } = this;
    const samples: DigestSample[] = [];
    for (const row of rows) {
      if (row.position !== position + 1) throw new Error(`row ${row.position} does not follow ${position}`);
      position = row.position;
      lastRow = nameOf(row);
      const results = this.#judgeRow(row, view, operations, consequences);
      digest = nextDigest(digest, row, results);
      if (this.digests.takes(position)) samples.push({ position, digest });
    }
    const { node = 0, incarnation = 0, nodeSeq = 0 } = lastRow ?? {};
    const row = [node, incarnation, nodeSeq] as const;
    const { members, newestId } = view;
    const logId = this.#options.logId;
    const state: StoredReplica = [position, digest, members.stored(), logId, row, newestId];
    operations.push({ op: 'meta', key: REPLICA_KEY, row: store.pack(state) });
    for (const sample of samples) operations.push(this.digests.writeOf(sample));
    await this.#store(operations, () => {
      invariant(this.position === before, 'batches of rows are applied one after the other');
      invariant(newestId >= this.newestId, 'the newest id of the log only grows');
      this.digest = digest;
      this.position = position;
      this.lastRow = lastRow;
      this.newestId = newestId;
      for (const sample of samples) this.digests.add(sample);
      for (const consequence of consequences) consequence();
      this.#wakeReaders();
    });
  }

  /** Rows of this node alone: no other node has them. Resolves when they are on disk. */
  writeLocal(operations: readonly Operation[]): Promise<void> {
    return this.#store(operations, () => undefined);
  }

  /** One batch at a time; `visible` is called as soon as its rows can be read. */
  #store(operations: readonly Operation[], visible: () => void): Promise<void> {
    const stored = this.#storing.then(
      () =>
        new Promise<void>((resolve, reject) =>
          this.#options.store.commit([ofNoActor(operations)], (error) => {
            if (error !== undefined) {
              reject(error);
              return;
            }
            visible();
            resolve();
          }),
        ),
    );
    this.#storing = stored.catch(() => undefined);
    return stored;
  }

  #wakeReaders(): void {
    if (this.#readers.length === 0) return;
    const isReached = (reader: { readonly position: number }) => reader.position <= this.position;
    const reached = this.#readers.filter(isReached);
    this.#readers = this.#readers.filter((reader) => !isReached(reader));
    for (const { resolve } of reached) resolve();
  }

  /** Decides a row: what it writes, and what follows once that is visible. The results are those that all nodes have to share. */
  #judgeRow(
    row: LogRow,
    view: BatchView,
    operations: Operation[],
    consequences: (() => void)[],
  ): Uint16Array {
    const entry = decodeEntry(row.body);
    if (entry.type === 'unreadable') {
      this.#count(VERDICT.refused);
      return Uint16Array.of(VERDICT.refused);
    }
    if (entry.type === 'member') {
      const before = view.members;
      const now = new Members(before.stored());
      now.change(entry.change, row.node, row.incarnation, row.position);
      view.members = now;
      consequences.push(() => {
        this.members = now;
        for (const listener of this.#listeners) listener.membersChanged(before, now, entry.change);
      });
      return Uint16Array.of(VERDICT.applied);
    }
    view.begin(row.position, entry.newestId);
    const isOwn = this.#options.isOwn(row);
    const skipped = new Map<number, number>();
    const verdicts = Uint16Array.from(entry.turns, (turn, index) => {
      const { verdict, applied } = this.#judgeTurn(turn, row, view);
      if (applied === undefined) return verdict;
      if (applied.skipped > 0) skipped.set(index, applied.skipped);
      for (const operation of applied.operations) operations.push(operation);
      consequences.push(() => {
        for (const listener of this.#listeners) listener.applied(applied);
      });
      return verdict;
    });
    if (isOwn) consequences.push(() => this.#land(row, verdicts, skipped));
    return skipped.size === 0 ? verdicts : Uint16Array.of(...verdicts, ...[...skipped].flat());
  }

  /** A turn that throws is refused by every node alike: no content of a row stops a receiver. */
  #judgeTurn(turn: EntryTurn, row: LogRow, view: BatchView): { verdict: number; applied?: AppliedTurn } {
    try {
      const verdict = (this.#options.judge ?? judge)(turn, row, view);
      if (verdict === VERDICT.applied) return { verdict, applied: view.apply(turn) };
      this.#count(verdict);
      return { verdict };
    } catch (error) {
      this.turnsRefused.thrown += 1;
      this.#options.onBug({ kind: turn.kind, id: turn.id, error });
      return { verdict: VERDICT.refused };
    }
  }

  #count(verdict: number): void {
    if (verdict === VERDICT.fenced) this.turnsRefused.fenced += 1;
    else if (verdict === VERDICT.stale) this.turnsRefused.stale += 1;
    else if (verdict === VERDICT.refused) this.turnsRefused.refused += 1;
    else this.turnsRefused.conflict += 1;
  }

  #land({ position, nodeSeq }: LogRow, verdicts: Uint16Array, skipped: SkippedWrites): void {
    const judged = this.#flights.get(nodeSeq);
    this.#flights.delete(nodeSeq);
    judged?.({ position, verdicts, skipped });
  }
}
