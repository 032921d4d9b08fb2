/** The sub-databases of the journal on disk, opened: one for each kind of row and one for each index. */
import type { Database, RootDatabase } from 'lmdb';
import type { Packr } from 'msgpackr';
import type { IndexName } from '../actor.ts';
import { auditTables } from './audit.ts';
import type { Doubts } from './doubts.ts';
import { type EventTables, eventTables } from './events.ts';
import { DamagedRow } from './port.ts';
import type { Part, StoredTable } from './reader.ts';
import { isSealed, openRow, packRow, seal } from './row-checksum.ts';
import { type TableStats, tableBytes } from './space.ts';
import { INDEXES, type Tables } from './writer.ts';

/** Begins the names of the tables of indexes. */
const INDEX_TABLE = 'index/';

interface OpenTables {
  readonly tables: Tables;
  readonly indexes: ReadonlyMap<IndexName, StoredTable>;
  readonly events: EventTables;
  readonly audit: ReturnType<typeof auditTables>;
  /** All of them, for their figures. */
  readonly databases: readonly Database[];
}

interface TableReports {
  /** Called for every damaged row that is read, each time. */
  readonly onDamage?: (row: DamagedRow) => void;
  /** Ranges in which rows may be missing. */
  readonly doubts?: Doubts;
  /** Called for each row of a range that is read. */
  readonly onRow?: () => void;
  /** The engine has failed: what it reads from now on cannot be trusted. The process is to end. */
  readonly onBroken?: (error: Error) => void;
}

export function openTables(root: RootDatabase, packr: Packr, reports: TableReports = {}): OpenTables {
  const databases: Database[] = [];
  const table = (name: string): StoredTable => {
    const database: Database = root.openDB(name, { encoding: 'binary' });
    databases.push(database);
    return tableOf(database, { name, packr, ...reports });
  };
  return {
    tables: {
      journal: table('journal'),
      snapshot: table('snapshot'),
      mailbox: table('mailbox'),
      timer: table('timer'),
      dead: table('dead'),
      meta: table('meta'),
    },
    indexes: new Map(INDEXES.map((index) => [index, table(`${INDEX_TABLE}${index}`)])),
    events: eventTables(table),
    audit: auditTables(table),
    databases,
  };
}

interface RowOptions extends TableReports {
  readonly name: string;
  readonly packr: Packr;
}

// Within a batch the promises of the single writes never reject: the batch's own does.
function tableOf(
  database: Database,
  { name, packr, doubts, onDamage, onRow, onBroken }: RowOptions,
): StoredTable {
  const isIndex = name.startsWith(INDEX_TABLE);
  const open = (key: Part[] | Part, row: Uint8Array, sizeBytes: number): unknown => {
    try {
      return openRow(packr, row, sizeBytes, name, key);
    } catch (error) {
      if (!(error instanceof DamagedRow)) throw error;
      onDamage?.(error);
      return error;
    }
  };
  const guarded = <Result>(read: () => Result): Result => {
    try {
      return read();
    } catch (error) {
      throw failed(error);
    }
  };
  const failed = (error: unknown): unknown => {
    if (!isOfEngine(error)) return error;
    const broken = new Error(`the engine cannot read ${name}: ${error.message}`);
    onBroken?.(broken);
    return broken;
  };
  return {
    get(key) {
      const value = guarded(() => {
        // One buffer serves all reads; what it holds is decoded here and now.
        const row = database.getBinaryFast(key);
        return row === undefined ? undefined : open(key, row, row.length);
      });
      if (value instanceof DamagedRow) throw value;
      // Only indexes are doubted: an actor that is not there may be a new one.
      if (value === undefined && isIndex && doubts?.mayHave(name, key) === true)
        throw new DamagedRow(name, key, new Uint8Array(), 'it may be one that was hit beside it');
      return value;
    },
    copy: (key) =>
      guarded(() => {
        const row = database.getBinaryFast(key);
        if (row === undefined) return undefined;
        const value = open(key, row, row.length);
        if (value instanceof DamagedRow) throw value;
        return isSealed(row) ? Buffer.from(row.subarray(0, row.length)) : packRow(packr, value);
      }),
    mayHave: (from, until, isBetween) => doubts?.mayHaveFrom(name, from, until, isBetween) === true,
    has: (key) => guarded(() => database.doesExist(key)),
    *getRange(range) {
      try {
        for (const { key, value } of database.getRange(range)) {
          onRow?.();
          yield { key, value: open(key as Part[] | Part, value as Uint8Array, value.length) };
        }
      } catch (error) {
        throw failed(error);
      }
    },
    *getKeys(range) {
      try {
        for (const key of database.getKeys(range)) {
          onRow?.();
          yield key;
        }
      } catch (error) {
        throw failed(error);
      }
    },
    count: () => guarded(() => (database.getStats() as TableStats).entryCount),
    sizeBytes: () => guarded(() => tableBytes(database.getStats() as TableStats)),
    put(key, row) {
      seal(row as Uint8Array, name, key);
      void database.put(key, row);
    },
    remove(key) {
      void database.remove(key);
    },
  };
}

/** Errors of the engine have its number. A cursor that meets what cannot be a key has none. */
function isOfEngine(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  return (
    typeof (error as { code?: unknown }).code === 'number' || error.message.startsWith('Invalid key size')
  );
}
