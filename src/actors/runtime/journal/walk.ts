/**
 * A walk over all rows of a journal on disk, for `check` and for the look at a copy. Reads only, as one consistent state,
 * also beside a running gateway. Pages of the engine that are damaged can end the process by a signal: it runs in one of
 * its own (journal-process.ts).
 */
import { compareKeys, type Database, open, type RootDatabase } from 'lmdb';
import type { Packr } from 'msgpackr';
import { DATA_FILE, ENGINE, SCHEMA, SCHEMA_KEY } from './file.ts';
import { DamagedRow, keyText } from './port.ts';
import type { Part } from './reader.ts';
import { createPackr, isSealed, openRow } from './row-checksum.ts';
import type { TableStats } from './space.ts';

interface WalkOptions {
  readonly directory: string;
  /** Pages alone: rows are counted and not read. */
  readonly quick: boolean;
  /** Sub-databases that are left out. */
  readonly skip: readonly string[];
  /** Called before anything of a sub-database is read. */
  readonly onTable: (name: string) => void;
  readonly onFinding: (sentence: string) => void;
  /** The sub-database has been read. `unverified` rows have no checksum. */
  readonly onRows: (counted: { readonly rows: number; readonly unverified: number }) => void;
}

/** Rows of these are versions alone: they have no value of ours. */
const WITHOUT_VALUES = new Set(['owner']);

export async function walkJournal(options: WalkOptions): Promise<void> {
  const { directory, skip, onTable, onFinding, onRows } = options;
  // Without a read transaction that is renewed in between: all of it runs in one turn of the event loop.
  const root = open({ ...ENGINE, path: directory, readOnly: true });
  try {
    onTable(DATA_FILE);
    const names = [...root.getKeys({})].map(String);
    for (const name of names.filter((each) => !skip.includes(each))) {
      onTable(name);
      try {
        onRows(options.quick ? count(root, name, onFinding) : walk(root, name, onFinding));
      } catch (error) {
        onFinding(
          `${name}: the engine cannot read it: ${error instanceof Error ? error.message : String(error)}`,
        );
      }
    }
  } finally {
    await root.close();
  }
}

function tableOf(root: RootDatabase, name: string): { table: Database; expected: number } {
  const table: Database = root.openDB(name, { encoding: 'binary' });
  return { table, expected: (table.getStats() as TableStats).entryCount };
}

function count(root: RootDatabase, name: string, onFinding: WalkOptions['onFinding']) {
  const { table, expected } = tableOf(root, name);
  const rows = table.getKeysCount({});
  judgeCount(name, rows, expected, onFinding);
  return { rows, unverified: 0 };
}

function judgeCount(name: string, rows: number, expected: number, onFinding: WalkOptions['onFinding']): void {
  if (rows !== expected) onFinding(`${name}: ${rows} rows are found, ${expected} were written`);
}

function walk(root: RootDatabase, name: string, onFinding: WalkOptions['onFinding']) {
  const { table, expected } = tableOf(root, name);
  const packr = createPackr();
  const turns = name === 'journal' ? new TurnOrder(root, packr, onFinding) : undefined;
  let rows = 0;
  let unverified = 0;
  let before: Part[] | Part | undefined;
  for (const entry of table.getRange({})) {
    const key = entry.key as Part[] | Part;
    const row = entry.value as Uint8Array;
    rows += 1;
    // Damaged pages can lead back to earlier ones.
    if (rows > expected) break;
    if (before !== undefined && compareKeys(before as never, key as never) >= 0)
      onFinding(`${name}: the row ${keyText(key)} stands behind ${keyText(before)}`);
    before = key;
    turns?.next(key);
    if (WITHOUT_VALUES.has(name)) continue;
    if (!isSealed(row)) unverified += 1;
    try {
      const value = openRow(packr, row, row.length, name, key);
      if (name === 'meta' && key === SCHEMA_KEY && !(Number(value) >= 1 && Number(value) <= SCHEMA))
        onFinding(`meta: the layout is ${String(value)}, this version knows up to ${SCHEMA}`);
    } catch (error) {
      if (!(error instanceof DamagedRow)) throw error;
      onFinding(error.message);
    }
  }
  judgeCount(name, rows, expected, onFinding);
  return { rows, unverified };
}

/** Turns of an actor follow its snapshot, or begin with 1, without a gap. */
class TurnOrder {
  readonly #snapshots: Database;
  readonly #packr: Packr;
  readonly #onFinding: WalkOptions['onFinding'];
  #actor = '';
  #seq = 0;

  constructor(root: RootDatabase, packr: Packr, onFinding: WalkOptions['onFinding']) {
    this.#snapshots = root.openDB('snapshot', { encoding: 'binary' });
    this.#packr = packr;
    this.#onFinding = onFinding;
  }

  next(key: Part[] | Part): void {
    const [kind, id, seq] = key as [string, string, number];
    const actor = `${kind}/${id}`;
    if (actor !== this.#actor) {
      this.#actor = actor;
      // Rows that the snapshot covers leave with it, so the first one left is its next.
      this.#seq = seq === 1 ? 0 : this.#covered(kind, id);
    }
    if (seq > this.#seq + 1) this.#onFinding(`journal: the row ${actor}/${this.#seq + 1} is missing`);
    this.#seq = seq;
  }

  /** The row that the snapshot covers; 0 without one. A damaged snapshot is found where it stands. */
  #covered(kind: string, id: string): number {
    const key = [kind, id];
    const row = this.#snapshots.get(key) as Uint8Array | undefined;
    if (row === undefined) return 0;
    try {
      return (openRow(this.#packr, row, row.length, 'snapshot', key) as [number, number])[1];
    } catch {
      return Number.MAX_SAFE_INTEGER;
    }
  }
}
