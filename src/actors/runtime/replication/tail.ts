/**
 * Brings the rows of the log to the sink, in order and without gaps: from pushes of other nodes, from the node's own
 * writes, and by fetching what is missing. One batch is being applied at a time.
 */
import type { Schedule } from '../runtime-context.ts';
import { type LogRow, nameOf, OutcomeUnknown, type RowName, type SharedLog } from './port.ts';
import type { RowSink } from './row-sink.ts';

const FETCH_ROWS = 256;
/** Interval of the search for rows that no push has brought. */
const POLL_MS = 100;
/** Rows kept that came before their turn; what is beyond is fetched again. */
const EARLY_ROWS_MAX = 1_024;
const EARLY_BYTES_MAX = 32 * 1024 * 1024;

/** The node was stopped, or has left: what waits for it is given up. */
export class NodeStopped extends Error {
  constructor() {
    super('the node has stopped');
    this.name = 'NodeStopped';
  }
}

interface TailOptions {
  readonly log: SharedLog;
  readonly sink: RowSink;
  readonly schedule: Schedule;
  /** Rows are about to be applied. */
  readonly onRows: (rows: readonly LogRow[]) => void;
  /** Rows are visible. */
  readonly onApplied: () => void;
  /** The log has rows up to this position. */
  readonly onKnown: (position: number) => void;
  /** Rows of all members arrive by themselves, and none is missing for longer than a poll: none is looked for. */
  readonly isFed: (pollMs: number) => boolean;
  readonly onFatal: (error: unknown) => void;
}

interface CaughtUp {
  readonly position: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class Tail {
  readonly #options: TailOptions;
  readonly #early = new Map<number, LogRow>();
  #earlyBytes = 0;
  /** Last position that was handed to the sink, and the row there. */
  #taken: number;
  #takenRow: RowName | undefined;
  #applying = false;
  #fetching = false;
  #fetchAgain = false;
  #stopped = false;
  #cancelPoll: (() => void) | undefined;
  #waiting: CaughtUp[] = [];

  constructor(options: TailOptions) {
    this.#options = options;
    this.#taken = options.sink.position;
    this.#takenRow = options.sink.lastRow;
  }

  start(): void {
    if (this.#cancelPoll === undefined) this.#poll();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancelPoll?.();
    this.#early.clear();
    for (const { reject } of this.#waiting.splice(0)) reject(new NodeStopped());
  }

  /** A row that is known to be in the log. One that leaves a gap makes the rows before it be fetched. */
  offer(row: LogRow): void {
    if (this.#stopped) return;
    this.#options.onKnown(row.position);
    this.#keep(row);
    if (row.position > this.#taken + 1 && !this.#early.has(this.#taken + 1)) this.fetch();
    this.#apply();
  }

  /** Looks for rows after the newest one here. */
  fetch(): void {
    if (this.#stopped) return;
    if (this.#fetching) {
      this.#fetchAgain = true;
      return;
    }
    this.#fetching = true;
    const { log, onFatal } = this.#options;
    log.fetch(this.#taken, FETCH_ROWS, this.#takenRow).then(
      (rows) => {
        this.#fetching = false;
        this.#fetched(rows);
      },
      (error: unknown) => {
        this.#fetching = false;
        // The next poll tries again.
        if (!this.#stopped && !(error instanceof OutcomeUnknown)) onFatal(error);
      },
    );
  }

  /** Resolves when everything up to this position is visible. Rejects with `NodeStopped`. */
  reach(position: number): Promise<void> {
    if (this.#stopped) return Promise.reject(new NodeStopped());
    if (this.#options.sink.position >= position) return Promise.resolve();
    const reached = new Promise<void>((resolve, reject) => this.#waiting.push({ position, resolve, reject }));
    if (!this.#early.has(this.#taken + 1)) this.fetch();
    return reached;
  }

  #poll(): void {
    const { schedule, isFed } = this.#options;
    this.#cancelPoll = schedule.timer(POLL_MS, () => {
      this.#poll();
      if (!isFed(POLL_MS)) this.fetch();
    });
  }

  #fetched(rows: readonly LogRow[]): void {
    if (this.#stopped) return;
    const newest = rows.at(-1);
    if (newest !== undefined) this.#options.onKnown(newest.position);
    // An answer has a bound: there may be more.
    if (newest !== undefined) this.#fetchAgain = true;
    for (const row of rows) this.#keep(row);
    this.#apply();
  }

  #keep(row: LogRow): void {
    if (row.position <= this.#taken || this.#early.has(row.position)) return;
    const isNext = row.position === this.#taken + 1;
    const isFull = this.#early.size >= EARLY_ROWS_MAX || this.#earlyBytes >= EARLY_BYTES_MAX;
    if (isFull && !isNext) return;
    this.#early.set(row.position, row);
    this.#earlyBytes += row.body.length;
  }

  #apply(): void {
    if (this.#applying || this.#stopped) return;
    const rows = this.#nextRows();
    // The next rows are on their way while these are applied.
    if (this.#fetchAgain && !this.#fetching) {
      this.#fetchAgain = false;
      this.fetch();
    }
    if (rows.length === 0) return;
    const { sink, onRows, onApplied, onFatal } = this.#options;
    this.#applying = true;
    onRows(rows);
    sink.apply(rows).then(
      () => {
        this.#applying = false;
        if (this.#stopped) return;
        onApplied();
        this.#reached(sink.position);
        // Rows that came early, and a gap before them.
        if (this.#early.size > 0 && !this.#early.has(this.#taken + 1)) this.#fetchAgain = true;
        this.#apply();
      },
      (error: unknown) => {
        if (!this.#stopped) onFatal(error);
      },
    );
  }

  #nextRows(): readonly LogRow[] {
    const rows: LogRow[] = [];
    while (rows.length < FETCH_ROWS) {
      const row = this.#early.get(this.#taken + 1);
      if (row === undefined) break;
      this.#early.delete(row.position);
      this.#earlyBytes -= row.body.length;
      this.#taken = row.position;
      this.#takenRow = nameOf(row);
      rows.push(row);
    }
    return rows;
  }

  #reached(position: number): void {
    const reached = this.#waiting.filter((each) => each.position <= position);
    if (reached.length === 0) return;
    this.#waiting = this.#waiting.filter((each) => each.position > position);
    for (const { resolve } of reached) resolve();
  }
}
