/**
 * Reads all rows of a journal that is served, slowly, so that damage is found before a reader meets it. Reads the file,
 * not the engine's map of it: a damaged page is a finding, and a slow disk delays this walk alone.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { Schedule } from '../../runtime-context.ts';
import { keyOf, tableKey, tableName } from '../keys.ts';
import { DamagedRow } from '../port.ts';
import type { Part } from '../reader.ts';
import { createPackr } from '../row-checksum.ts';
import { headFault, headOf, type JournalHead, taken } from './meta-pages.ts';
import {
  DamagedPage,
  findRow,
  type KeyRange,
  PAGE_BYTES,
  type PageReading,
  type PagesWanted,
  TreeWalk,
  treeOf,
} from './pages.ts';
import { judgeRow } from './walk.ts';

/** Most bytes that are read a second. */
const BYTES_PER_SECOND = 1024 * 1024;
/** Pages of one state of the journal that are read at a time, and most time for them: pages that are freed stay meanwhile. */
const PAGES_AT_A_TIME = 64;
const PIN_MAX_MS = 1_000;

const HEAD: PagesWanted = { page: 0, pages: 2 };

interface Finding {
  readonly table: string;
  /** Key of the row, or the number of the page. */
  readonly key: string;
  readonly message: string;
  /** Range in which rows may be missing. */
  readonly range: KeyRange | undefined;
}

interface BackgroundWalkOptions {
  readonly path: string;
  /** Begins a read of the newest state, and returns how to end it. */
  readonly pin: () => () => void;
  readonly monotonicMs: () => number;
  readonly timer: Schedule['timer'];
  readonly onFinding: (finding: Finding) => void;
  /** All tables were read. */
  readonly onDone: (counted: { readonly rows: number; readonly findings: number }) => void;
}

/** Result of a look at one state. */
interface Look {
  readonly findings: readonly Finding[];
  readonly rows: number;
  /** The first key that was not read; undefined at the end of the table. */
  readonly next: Uint8Array | undefined;
}

export class BackgroundWalk {
  readonly #options: BackgroundWalkOptions;
  readonly #packr = createPackr();
  #stopped = false;
  #wake: () => void = () => undefined;
  #ended: Promise<void> = Promise.resolve();
  #rows = 0;
  #findings = 0;
  bytes = 0;

  constructor(options: BackgroundWalkOptions) {
    this.#options = options;
  }

  start(): void {
    this.#ended = this.#run().catch((error: unknown) => {
      const message = `the rows cannot be read: ${error instanceof Error ? error.message : String(error)}`;
      this.#options.onFinding({ table: 'all tables', key: '', message, range: undefined });
    });
  }

  /** Resolves when nothing is read any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake();
    await this.#ended;
  }

  async #run(): Promise<void> {
    const file = await open(this.#options.path, 'r');
    try {
      for (const name of await this.#tables(file)) await this.#table(file, name);
    } finally {
      await file.close();
    }
    if (!this.#stopped) this.#options.onDone({ rows: this.#rows, findings: this.#findings });
  }

  /** A start has read the list as a whole. */
  async #tables(file: FileHandle): Promise<string[]> {
    const names: string[] = [];
    await this.#pinned(file, (head) => {
      const { snapshot } = taken(head)[0];
      return new TreeWalk(snapshot, snapshot.main, {
        withValues: false,
        row: (key) => names.push(tableName(key)),
        fault: () => undefined,
      }).run();
    });
    return names;
  }

  async #table(file: FileHandle, name: string): Promise<void> {
    for (let from: Uint8Array | undefined | null = null; from !== undefined && !this.#stopped; ) {
      const before = this.bytes;
      const look = await this.#look(file, name, from ?? undefined);
      this.#rows += look.rows;
      from = look.next;
      await this.#wait(((this.bytes - before) * 1_000) / BYTES_PER_SECOND);
    }
  }

  /** Reports findings that occur twice: a page of the file may be read while it is written. */
  async #look(file: FileHandle, name: string, from: Uint8Array | undefined): Promise<Look> {
    const first = await this.#read(file, name, from);
    if (first.findings.length === 0) return first;
    const second = await this.#read(file, name, from);
    const messages = new Set(first.findings.map(({ message }) => message));
    for (const finding of second.findings) {
      if (!messages.has(finding.message)) continue;
      this.#findings += 1;
      this.#options.onFinding(finding);
    }
    return second;
  }

  async #read(file: FileHandle, name: string, from: Uint8Array | undefined): Promise<Look> {
    const look = new TableLook(name, this.#packr, from);
    const isWhole = await this.#pinned(
      file,
      (head) => look.read(head),
      () => look.mayStop,
    );
    return look.end(isWhole);
  }

  /** Drives a reading over one state of the journal; false: it was stopped, because it has taken enough. */
  async #pinned(
    file: FileHandle,
    reading: (head: JournalHead) => PageReading<void>,
    mayStop = () => false,
  ): Promise<boolean> {
    const unpin = this.#options.pin();
    const endMs = this.#options.monotonicMs() + PIN_MAX_MS;
    try {
      const steps = reading(headOf(await this.#pages(file, HEAD), Number.MAX_SAFE_INTEGER));
      let pages = 0;
      for (let step = steps.next(); step.done !== true; ) {
        const isEnough = pages >= PAGES_AT_A_TIME || this.#options.monotonicMs() >= endMs;
        if (this.#stopped || (isEnough && mayStop())) return false;
        pages += step.value.pages;
        step = steps.next(await this.#pages(file, step.value));
      }
      return true;
    } finally {
      unpin();
    }
  }

  async #pages(file: FileHandle, { page, pages }: PagesWanted): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(pages * PAGE_BYTES);
    try {
      const { bytesRead } = await file.read(bytes, 0, bytes.length, page * PAGE_BYTES);
      this.bytes += bytesRead;
      return bytes.subarray(0, bytesRead);
    } catch {
      return bytes.subarray(0, 0);
    }
  }

  #wait(delayMs: number): Promise<void> {
    if (this.#stopped) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#options.timer(delayMs, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

/** One look at the rows of a table, from a key on. */
class TableLook {
  readonly #name: string;
  readonly #packr: ReturnType<typeof createPackr>;
  readonly #from: Uint8Array | undefined;
  readonly #findings: Finding[] = [];
  #rows = 0;
  /** The last row that is as it was written, and the first key behind all that was read. */
  #sound: Uint8Array | undefined;
  #next: Uint8Array | undefined;
  /** Damaged rows that have no sound one behind them yet. */
  #open: { readonly row: DamagedRow; readonly key: Part[] | Part }[] = [];

  constructor(name: string, packr: ReturnType<typeof createPackr>, from: Uint8Array | undefined) {
    this.#name = name;
    this.#packr = packr;
    this.#from = from;
    this.#sound = from;
  }

  /** Something was read, and no damage is without its end. */
  get mayStop(): boolean {
    return this.#next !== undefined && this.#open.length === 0;
  }

  *read(head: JournalHead): PageReading<void> {
    const fault = headFault(head);
    if (fault !== undefined) {
      this.#find('the meta pages', fault, undefined);
      return;
    }
    const { snapshot } = taken(head)[0];
    try {
      const row = yield* findRow(snapshot, snapshot.main, tableKey(this.#name));
      const tree = row === undefined ? undefined : treeOf(row);
      if (tree === undefined) return;
      yield* new TreeWalk(snapshot, tree, {
        from: this.#from,
        withValues: true,
        row: (key, value) => this.#row(Buffer.from(key), value),
        fault: (damage, range) => {
          this.#find(`page ${damage.page}`, damage.message, range);
          if (range.high !== undefined && this.#isBehind(range.high)) this.#next = range.high;
        },
      }).run();
    } catch (error) {
      if (!(error instanceof DamagedPage)) throw error;
      this.#find(`page ${error.page}`, error.message, undefined);
    }
  }

  #isBehind(key: Uint8Array): boolean {
    return this.#next === undefined || Buffer.compare(key, this.#next) > 0;
  }

  #row(bytes: Buffer, value: Buffer): void {
    this.#rows += 1;
    const after = Buffer.concat([bytes, Buffer.alloc(1)]);
    if (this.#isBehind(after)) this.#next = after;
    const key = keyOf(bytes);
    try {
      judgeRow(this.#packr, this.#name, key, value);
    } catch (error) {
      if (!(error instanceof DamagedRow)) throw error;
      this.#open.push({ row: error, key });
      return;
    }
    this.#close(bytes, key);
    this.#sound = bytes;
  }

  /** The keys of damaged rows were between the sound ones beside them. */
  #close(high: Uint8Array | undefined, next?: Part[] | Part): void {
    const low = this.#sound;
    for (const { row, key } of this.#open) {
      const isInPlace = this.#name === 'journal' && isBeside(key, low && keyOf(low), next);
      this.#find(row.key, row.message, isInPlace ? undefined : { low, high });
    }
    this.#open = [];
  }

  #find(key: string, message: string, range: KeyRange | undefined): void {
    this.#findings.push({ table: this.#name, key, message, range });
  }

  end(isWhole: boolean): Look {
    if (isWhole) this.#close(undefined);
    return { findings: this.#findings, rows: this.#rows, next: isWhole ? undefined : this.#next };
  }
}

/** Has the turn of an actor the number that its neighbours ask for? Then its key is what it was. */
function isBeside(key: unknown, before: unknown, behind: unknown): boolean {
  if (!Array.isArray(key)) return false;
  const [kind, id, seq] = key;
  const isOf = (other: unknown, wanted: number) =>
    Array.isArray(other) && other[0] === kind && other[1] === id && other[2] === wanted;
  return seq === 1 || isOf(before, seq - 1) || isOf(behind, seq + 1);
}
