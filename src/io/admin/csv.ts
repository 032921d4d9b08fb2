/** Lists as CSV (RFC 4180), streamed: a bound of rows and of exports at a time, and cells that no spreadsheet runs. */
import { GatewayError } from '../../domain/errors.ts';
import { type OutgoingBody, type OutgoingSource, StreamReply } from '../http/exchange/stream.ts';

export const EXPORT_ROWS_MAX = 100_000;
/** Exports of this node that run at a time. */
export const EXPORTS_MAX = 4;

export type CsvCell = string | number | boolean | null;
/** Rows in pieces of at most a page, so that memory holds one page. */
export type RowPages = AsyncIterator<readonly (readonly CsvCell[])[]>;

/** Characters at the start of a text that a spreadsheet takes for a formula, also behind a tab or a carriage return. */
const FORMULA = /^[=+\-@\t\r]/;
const NEEDS_QUOTES = /[",\r\n]/;

/** A text that may be a formula gets an apostrophe in front; numbers and dates are written as they are. */
export function csvCell(cell: CsvCell): string {
  if (cell === null) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return NEEDS_QUOTES.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csvLine = (cells: readonly CsvCell[]): string => `${cells.map(csvCell).join(',')}\r\n`;

/** Says at the end of a file that it is not the whole list. */
const REST = csvLine([`The list has more rows. An export has at most ${EXPORT_ROWS_MAX}.`]);

export class CsvExports {
  #running = 0;

  /** `fileName` is plain ASCII. Throws `Overloaded` while `EXPORTS_MAX` others run. */
  reply(fileName: string, columns: readonly string[], pages: RowPages): StreamReply {
    if (this.#running >= EXPORTS_MAX) throw new GatewayError('Overloaded', 'too many exports run');
    this.#running += 1;
    const done = () => {
      this.#running -= 1;
    };
    return new StreamReply(200, new CsvSource(columns, pages, done), {
      contentType: 'text/csv; charset=utf-8; header=present',
      headers: [
        ['Content-Disposition', `attachment; filename="${fileName}"`],
        ['Cache-Control', 'no-store'],
      ],
    });
  }
}

class CsvSource implements OutgoingSource {
  readonly #columns: readonly string[];
  readonly #pages: RowPages;
  readonly #done: () => void;
  #out: OutgoingBody | undefined;
  #rows = 0;
  #isOver = false;
  /** A page is being read: `drained` must not read another one. */
  #isReading = false;

  constructor(columns: readonly string[], pages: RowPages, done: () => void) {
    this.#columns = columns;
    this.#pages = pages;
    this.#done = done;
  }

  start(out: OutgoingBody): void {
    this.#out = out;
    // The mark at the start makes spreadsheets read the file as UTF-8.
    if (out.send(`\uFEFF${csvLine(this.#columns)}`)) void this.#goOn();
  }

  drained(): void {
    void this.#goOn();
  }

  lost(): void {
    this.#end();
  }

  /** Sends pages until the connection is full. A fault of a page cuts the answer, so that no part passes for the whole. */
  async #goOn(): Promise<void> {
    if (this.#isReading || this.#isOver) return;
    this.#isReading = true;
    try {
      for (;;) {
        const { value, done } = await this.#pages.next();
        if (this.#isOver || this.#out === undefined) return;
        if (done === true) {
          this.#end();
          this.#out.end();
          return;
        }
        const left = EXPORT_ROWS_MAX - this.#rows;
        const shown = value.slice(0, left);
        this.#rows += shown.length;
        const isCut = value.length > left;
        const isFree = this.#out.send(shown.map(csvLine).join('') + (isCut ? REST : ''));
        if (isCut) {
          this.#end();
          this.#out.end();
          return;
        }
        if (!isFree) return;
      }
    } catch (error) {
      if (this.#isOver) return;
      this.#end();
      this.#out?.cut(error instanceof GatewayError ? error.row : 'InternalError');
    } finally {
      this.#isReading = false;
    }
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#done();
  }
}
