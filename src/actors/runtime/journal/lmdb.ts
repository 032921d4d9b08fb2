/**
 * The journal on disk: one LMDB environment, opened by the main thread alone. The only file that depends on the
 * engine. Owns the layout of the rows, and that a group is on disk as a whole before it is acknowledged.
 */
import { join, resolve } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import type { StoredRing } from '../../../domain/audit.ts';
import type { IndexName } from '../actor.ts';
import { nodeSchedule } from '../runtime-context.ts';
import { JournalAudit } from './audit.ts';
import { finishCopy, finishReplica } from './backup.ts';
import { type Damage, DamageReport } from './damage-report.ts';
import { Doubts } from './doubts.ts';
import { JournalEvents } from './events.ts';
import {
  DATA_FILE,
  ENGINE,
  isJournalFile,
  makeFolders,
  makeJournalFiles,
  SCHEMA,
  SCHEMA_KEY,
  syncToDisk,
} from './file.ts';
import { engineInfo, JournalOwner } from './owner.ts';
import { BackgroundWalk } from './pages/background-walk.ts';
import { CLAIM_KEY_MAX_BYTES, checkPlain, isName } from './plain-data.ts';
import {
  type CommitDone,
  type IsWanted,
  type Journal,
  JournalTaken,
  JournalTooNew,
  type JournalTurn,
  type MailKey,
  type Packed,
  type StoredActor,
} from './port.ts';
import type { StoredTable } from './reader.ts';
import { JournalReader } from './reader.ts';
import { createPackr, packRow, unpackRow } from './row-checksum.ts';
import { JournalSpace, type TableStats } from './space.ts';
import { openTables } from './tables.ts';
import { JournalWriter, type Tables } from './writer.ts';

/** The index that is read at every request of a session of an application: its names are remembered. */
const REMEMBERED_INDEX: IndexName = 'appId';
const NAMES_REMEMBERED_MAX = 10_000;
/** Commits between two checks of the space in use. */
const MEASURE_COMMITS = 32;
const MIB = 1024 * 1024;

export interface DiskJournalOptions {
  readonly directory: string;
  /** Bytes that the journal may take; growth is refused when over 70 % of them are live. Default 8 GiB. */
  readonly quotaBytes?: number;
  /** Commits are not synced: a stop of the machine may damage the file. `close` syncs it. */
  readonly unsynced?: boolean;
  /** Most bytes of zeros added to the file at a time. Default 256 MiB. */
  readonly stepBytes?: number;
  /** Audit records kept of a ring; the oldest go first. Default 1,000,000. */
  readonly auditRowsMax?: (ring: StoredRing) => number;
  /** Dead letters kept; the oldest go first. Default 10,000. */
  readonly deadRowsMax?: number;
  /** The disk has no more room (or has again). */
  readonly onShortage?: (error: Error | undefined) => void;
  /** Called once for each damaged row. */
  readonly onDamage?: (damage: Damage) => void;
  /** Called for each row of a range that is read. */
  readonly onRow?: () => void;
  /** The engine cannot read the journal any more. The process is to end. */
  readonly onBroken?: (error: Error) => void;
}

/** Opens or creates the journal. Throws `JournalTooNew` when a newer version has written it. */
export async function openJournal(options: DiskJournalOptions): Promise<DiskJournal> {
  makeFolders(resolve(options.directory));
  const file = join(options.directory, DATA_FILE);
  if (!isJournalFile(file)) throw new Error(`${file} is not a journal`);
  await makeJournalFiles(options.directory, (path) => open({ ...ENGINE, path, noSubdir: true }).close());
  const root = open({ ...ENGINE, path: options.directory, noSync: options.unsynced === true });
  try {
    const journal = new DiskJournal(root, options);
    await journal.prepare();
    return journal;
  } catch (error) {
    await root.close();
    throw error;
  }
}

export class DiskJournal implements Journal {
  readonly events: JournalEvents;
  readonly #packr = createPackr();
  readonly #root: RootDatabase;
  readonly #tables: Tables;
  readonly #indexes: ReadonlyMap<IndexName, StoredTable>;
  /** Owners by name, of `REMEMBERED_INDEX`. */
  readonly #remembered = new Map<string, string>();
  readonly #reader: JournalReader;
  readonly #audit: JournalAudit;
  readonly #writer: JournalWriter;
  readonly #space: JournalSpace;
  readonly #owner: JournalOwner;
  readonly #damage: DamageReport;
  readonly #doubts = new Doubts();
  readonly #path: string;
  #walk: BackgroundWalk | undefined;
  /** File whose commits `close` puts on disk. */
  readonly #unsyncedFile: string | undefined;
  #commits = 0;

  /** Takes the journal over. Throws `JournalTooNew`, and `DamagedRow` where its layout cannot be read. */
  constructor(root: RootDatabase, options: DiskJournalOptions) {
    const { directory, onShortage } = options;
    this.#damage = new DamageReport(options.onDamage ?? (() => undefined));
    this.#root = root;
    this.#path = join(directory, DATA_FILE);
    this.#unsyncedFile = options.unsynced === true ? this.#path : undefined;
    this.#owner = new JournalOwner(root, this.#packr);
    const { tables, indexes, events, audit, databases } = this.#owner.takeOver(() =>
      this.#openTables(options),
    );
    this.#tables = tables;
    this.#indexes = indexes;
    this.events = new JournalEvents(events, (value) => packRow(this.#packr, value));
    this.#audit = new JournalAudit(audit, options.auditRowsMax ?? (() => 1_000_000));
    this.#reader = new JournalReader(this.#tables);
    this.#writer = new JournalWriter({
      tables: this.#tables,
      indexes: this.#indexes,
      events: this.events,
      pack: (value) => packRow(this.#packr, value),
      unpack: (row) => this.unpack(row),
      audit: this.#audit,
      deadRowsMax: options.deadRowsMax ?? 10_000,
    });
    this.#space = new JournalSpace({
      file: this.#path,
      stepBytes: options.stepBytes ?? 256 * MIB,
      quotaBytes: options.quotaBytes ?? 8 * 1024 * MIB,
      whole: () => this.#root.getStats() as TableStats,
      lastPage: () => engineInfo(root).lastPageNumber,
      tables: () => databases.map((database) => database.getStats() as TableStats),
      timer: nodeSchedule.timer,
      ...(onShortage === undefined ? {} : { onShortage }),
    });
  }

  /** All of them, with the layout of this version. */
  #openTables({ onBroken, onRow }: DiskJournalOptions): ReturnType<typeof openTables> {
    const reports = {
      onDamage: this.#damage.add,
      doubts: this.#doubts,
      ...(onBroken && { onBroken }),
      ...(onRow && { onRow }),
    };
    const opened = openTables(this.#root, this.#packr, reports);
    const schema = opened.tables.meta.get(SCHEMA_KEY);
    if (schema !== undefined && (typeof schema !== 'number' || schema > SCHEMA))
      throw new JournalTooNew(`the journal has layout ${String(schema)}, this version reads up to ${SCHEMA}`);
    // Without a checksum: an earlier version is to read it, and to refuse.
    if (schema !== SCHEMA) void this.#root.openDB('meta', {}).put(SCHEMA_KEY, SCHEMA);
    return opened;
  }

  /** Finds the ends of the logs, and makes room. */
  async prepare(): Promise<void> {
    this.#writer.prepare();
    await this.#space.prepare();
  }

  pack(value: unknown): Packed {
    checkPlain(value);
    return packRow(this.#packr, value);
  }

  unpack(packed: Packed): unknown {
    return unpackRow(this.#packr, packed as Uint8Array);
  }

  sizeBytes(packed: Packed): number {
    return (packed as Uint8Array).length;
  }

  commit(turns: readonly JournalTurn[], done: CommitDone): void {
    const { turns: decided, skipped } = this.#writer.decide(turns);
    // A key that the engine does not take, or a closed journal: names are checked in the turn, so these are bugs.
    this.#owner
      .write(() => this.#writer.write(decided))
      .then(
        (info) => {
          this.#root.resetReadTxn();
          if (decided.some(writesRemembered)) this.#remembered.clear();
          if (info === undefined) {
            done(new JournalTaken('another process has opened the journal; this one writes nothing more'));
            return;
          }
          this.events.committed();
          done(this.#measured(info.lastPageNumber), undefined, skipped);
        },
        (error: Error & { commitError?: Promise<never> }) => {
          // The engine reports the reason separately, as a promise that rejects.
          if (error.commitError === undefined) done(error);
          else error.commitError.catch((cause: Error) => done(new Error(`commit failed: ${cause.message}`)));
        },
      );
  }

  /** Returns the error of the engine. */
  #measured(lastPage: number): Error | undefined {
    try {
      this.#space.watch(lastPage);
      if (++this.#commits % MEASURE_COMMITS === 0) this.#space.measure();
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  full(): boolean {
    return this.#space.full;
  }

  get damagedRows(): number {
    return this.#damage.rows;
  }

  load(kind: string, id: string): StoredActor | undefined {
    return this.#reader.load(kind, id);
  }

  has(kind: string, id: string): boolean {
    return this.#reader.has(kind, id);
  }

  lastSeq(kind: string, id: string): number {
    return this.#reader.lastSeq(kind, id);
  }

  rowsAfter(kind: string, id: string, afterSeq: number) {
    return this.#reader.rowsAfter(kind, id, afterSeq);
  }

  ids(kind: string, afterId: string, limit: number, descending = false): string[] {
    return this.#reader.ids(kind, afterId, limit, descending);
  }

  lookup(index: IndexName, key: string): string | undefined {
    const isRemembered = index === REMEMBERED_INDEX;
    const known = isRemembered ? this.#remembered.get(key) : undefined;
    if (known !== undefined) return known;
    if (!isName(key, CLAIM_KEY_MAX_BYTES)) return undefined;
    const owner = this.#indexes.get(index)?.get(key) as string | undefined;
    if (isRemembered && owner !== undefined) {
      if (this.#remembered.size >= NAMES_REMEMBERED_MAX) this.#remembered.clear();
      this.#remembered.set(key, owner);
    }
    return owner;
  }

  count(index: IndexName): number {
    return this.#indexes.get(index)?.count() ?? 0;
  }

  mailboxes() {
    return this.#reader.mailboxes();
  }

  hasMail(key: MailKey): boolean {
    return this.#reader.hasMail(key);
  }

  mail(toKind: string, toId: string, afterSeq: number, limit: number) {
    return this.#reader.mail(toKind, toId, afterSeq, limit);
  }

  timers(untilMs: number, limit: number, isWanted?: IsWanted) {
    return this.#reader.timers(untilMs, limit, isWanted);
  }

  dead(limit: number) {
    return this.#reader.dead(limit);
  }

  auditRows(ring: StoredRing): number {
    return this.#audit.rows(ring);
  }
  auditBefore(beforeSeq: number, limit: number, rings?: readonly StoredRing[]) {
    return this.#audit.before(beforeSeq, limit, rings);
  }
  auditPage(afterSeq: number, limit: number, rings?: readonly StoredRing[]) {
    return this.#audit.page(afterSeq, limit, rings);
  }

  meta(key: string): unknown {
    return this.#tables.meta.get(key);
  }

  /** A consistent copy into an empty directory while the gateway keeps running; `compact` leaves free pages out. */
  async backup(directory: string, compact: boolean): Promise<void> {
    makeFolders(resolve(directory));
    await this.#root.backup(directory, compact);
    await finishCopy(directory);
  }

  /** A consistent copy that another node of the same cluster begins with. */
  async copyReplica(directory: string): Promise<void> {
    makeFolders(resolve(directory));
    await this.#root.backup(directory, true);
    await finishReplica(directory);
  }

  /** Begins to read all rows, slowly: damage is reported as that which reads meet. */
  walk(onDone: (counted: { readonly rows: number; readonly findings: number }) => void): void {
    this.#walk = new BackgroundWalk({
      path: this.#path,
      pin: () => {
        const transaction = this.#root.useReadTransaction();
        return () => transaction.done();
      },
      monotonicMs: () => performance.now(),
      timer: nodeSchedule.timer,
      onFinding: ({ range, ...damage }) => {
        this.#damage.add(damage);
        if (range !== undefined) this.#doubts.add(damage.table, range);
      },
      onDone,
    });
    this.#walk.start();
  }

  /** Bytes that the walk has read. */
  get walkedBytes(): number {
    return this.#walk?.bytes ?? 0;
  }

  async close(): Promise<void> {
    await this.#walk?.stop();
    await this.#space.close();
    await this.#root.close();
    if (this.#unsyncedFile !== undefined) syncToDisk(this.#unsyncedFile);
  }
}

function writesRemembered({ operations }: Pick<JournalTurn, 'operations'>): boolean {
  return operations.some((operation) => operation.op === 'index' && operation.index === REMEMBERED_INDEX);
}
