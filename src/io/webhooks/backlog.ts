/**
 * What waits for one application: from where on, and which events, as long as they are few. With the list an
 * application that has its own events among those of thousands of others reads those alone; without it, after a start
 * or a long failure, it reads the log.
 */

/** Events listed for one application; of more the log is read. */
const LISTED_MAX = 256;

export class Backlog {
  /** Nothing before it is left; null when nothing waits. */
  #from: number | null = null;
  /** Ascending. All that may be for the application, up to `#knownTo` or, where the list is open, up to now. */
  #listed: number[] = [];
  #open = true;
  #knownTo = 0;

  get from(): number | null {
    return this.#from;
  }

  /** The log has to be read behind this position. Undefined: the list tells all. */
  get unread(): number | undefined {
    return this.#open ? undefined : Math.max(this.#knownTo, this.#from ?? 0);
  }

  /** Whatever stands behind the position may be for the application. */
  readFrom(position: number): void {
    this.#from = position;
    this.#listed = [];
    this.#open = false;
    this.#knownTo = position;
  }

  /** A new event may be for the application. True when nothing waited before. */
  offer(sequence: number): boolean {
    const waits = this.#from !== null;
    this.#from ??= sequence - 1;
    if (!this.#open) return !waits;
    if (this.#listed.length < LISTED_MAX) this.#listed.push(sequence);
    else {
      this.#open = false;
      this.#knownTo = sequence - 1;
    }
    return !waits;
  }

  /** Listed events behind a position. */
  after(position: number): number[] {
    return this.#listed.filter((sequence) => sequence > position);
  }

  /** The log was read to its end: from here on new events are listed. */
  caughtUp(): void {
    this.#listed = [];
    this.#open = true;
  }

  /** Nothing up to the position is left. */
  advance(position: number): void {
    this.#listed = this.after(position);
    this.#from = this.#listed.length > 0 || !this.#open ? position : null;
  }

  /** Another look although nothing may wait. */
  keep(position: number): void {
    this.#from ??= position;
  }
}
