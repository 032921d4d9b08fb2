/** Drives readings of pages: the file is read, not mapped, so that a page that cannot be read ends no process. */
import { closeSync, openSync, readSync } from 'node:fs';
import { PAGE_BYTES, type PageReading, type PagesWanted } from './pages.ts';

export class PageFile {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, 'r');
  }

  run<Result>(reading: PageReading<Result>): Result {
    let step = reading.next();
    while (step.done !== true) step = reading.next(this.#read(step.value));
    return step.value;
  }

  /** Empty where the disk or the file fails. */
  #read({ page, pages }: PagesWanted): Buffer {
    const bytes = Buffer.allocUnsafe(pages * PAGE_BYTES);
    try {
      return bytes.subarray(0, readSync(this.#file, bytes, 0, bytes.length, page * PAGE_BYTES));
    } catch {
      return bytes.subarray(0, 0);
    }
  }

  close(): void {
    closeSync(this.#file);
  }
}
