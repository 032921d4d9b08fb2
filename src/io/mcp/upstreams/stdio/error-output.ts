/** Lines of a process's standard error for the log: cut, without control characters, and at most so many a minute. */
import { MINUTE_MS } from '../../../../domain/time.ts';

const LINE_CHARACTERS_MAX = 1_000;
const LINES_PER_MINUTE_MAX = 60;
const LINE_END = /\r?\n/;

export class ErrorOutput {
  readonly #write: (line: string) => void;
  readonly #monotonicMs: () => number;
  #begun = '';
  #sinceMs = Number.NEGATIVE_INFINITY;
  #lines = 0;
  /** The last line, for the reason of an exit. */
  last = '';

  constructor(write: (line: string) => void, monotonicMs: () => number) {
    this.#write = write;
    this.#monotonicMs = monotonicMs;
  }

  read(bytes: Buffer): void {
    const [first = '', ...rest] = bytes.toString('utf8').split(LINE_END);
    const lines = [this.#begun + first, ...rest];
    this.#begun = (lines.pop() ?? '').slice(0, LINE_CHARACTERS_MAX);
    for (const line of lines) this.line(line);
  }

  /** The process has ended: what has no line end is a line too. */
  end(): void {
    this.line(this.#begun);
    this.#begun = '';
    this.#skipped();
  }

  line(text: string): void {
    const line = shown(text);
    if (line === '') return;
    this.last = line;
    const nowMs = this.#monotonicMs();
    if (nowMs - this.#sinceMs >= MINUTE_MS) {
      this.#skipped();
      this.#sinceMs = nowMs;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines <= LINES_PER_MINUTE_MAX) this.#write(line);
  }

  #skipped(): void {
    const skipped = this.#lines - LINES_PER_MINUTE_MAX;
    this.#lines = Math.min(this.#lines, LINES_PER_MINUTE_MAX);
    if (skipped > 0) this.#write(`${skipped} more lines are not shown`);
  }
}

function shown(text: string): string {
  return text
    .slice(0, LINE_CHARACTERS_MAX)
    .replace(/[^\x20-\x7e]/g, ' ')
    .trim();
}
