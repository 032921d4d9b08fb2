/** Lines of an answer that arrives in pieces. */
const LINE_END = 0x0a;

export class LineBuffer {
  /** Pieces of the line that is not complete. */
  #pieces: Buffer[] = [];

  /** Calls `take` for each complete line, without its line feed, until one has a fault, which is returned. */
  read(bytes: Buffer, take: (line: string) => string | undefined): string | undefined {
    let from = 0;
    for (let at = bytes.indexOf(LINE_END); at >= 0; at = bytes.indexOf(LINE_END, from)) {
      const fault = take(this.#whole(bytes.subarray(from, at)));
      if (fault !== undefined) return fault;
      from = at + 1;
    }
    if (from < bytes.length) this.#pieces.push(Buffer.from(bytes.subarray(from)));
    return undefined;
  }

  /** Returns the text behind the last line feed. */
  rest(): string {
    return this.#whole(Buffer.alloc(0));
  }

  #whole(last: Buffer): string {
    const text = Buffer.concat([...this.#pieces, last]).toString('utf8');
    this.#pieces = [];
    return text;
  }
}
