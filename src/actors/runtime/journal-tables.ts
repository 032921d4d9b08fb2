/** The sub-databases of the journal on disk, opened: one for each kind of row and one for each index. */
import { asBinary, type Database, type RootDatabase } from 'lmdb';
import type { Packr } from 'msgpackr';
import type { IndexName } from './actor.ts';
import { auditTables } from './journal-audit.ts';
import { type EventTables, eventTables } from './journal-events.ts';
import { type TableStats, tableBytes } from './journal-space.ts';
import { INDEXES, type StoredTable, type Tables } from './journal-writer.ts';

export interface OpenTables {
  readonly tables: Tables;
  readonly indexes: ReadonlyMap<IndexName, StoredTable>;
  readonly events: EventTables;
  readonly audit: ReturnType<typeof auditTables>;
  /** All of them, for their figures. */
  readonly databases: readonly Database[];
}

export function openTables(root: RootDatabase, packr: Packr): OpenTables {
  const databases: Database[] = [];
  const table = (name: string): StoredTable => {
    const database = root.openDB(name, { encoder: packr } as object);
    databases.push(database);
    return tableOf(database);
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
    indexes: new Map(INDEXES.map((index) => [index, table(`index/${index}`)])),
    events: eventTables(table),
    audit: auditTables(table),
    databases,
  };
}

// Within a batch the promises of the single writes never reject: the batch's own does.
function tableOf(database: Database): StoredTable {
  return {
    get: (key) => database.get(key),
    getRange: (range) => database.getRange(range),
    getKeys: (range) => database.getKeys(range),
    count: () => (database.getStats() as TableStats).entryCount,
    sizeBytes: () => tableBytes(database.getStats() as TableStats),
    put(key, row) {
      void database.put(key, asBinary(row as Uint8Array));
    },
    remove(key) {
      void database.remove(key);
    },
  };
}
