/**
 * The undelivered events of one application: a start position, and a bounded list of sequences. While the list is
 * complete only these events are read; after a start or a long failure the log is scanned instead.
 */

/** Sequences listed for one application; beyond it the log is scanned. */
const LISTED_MAX = 256;

export class Backlog {
  /** Everything up to it is delivered; null when there is no backlog. */
  #from: number | null = null;
  /** Ascending. All candidate events up to `#knownTo` or, while the list is open, up to now. */
  #listed: number[] = [];
  #open = true;
  #knownTo = 0;

  get from(): number | null {
    return this.#from;
  }

  /** The log must be scanned after this position. Undefined: the list is complete. */
  get unread(): number | undefined {
    return this.#open ? undefined : Math.max(this.#knownTo, this.#from ?? 0);
  }

  /** Any event after the position may be for the application. */
  readFrom(position: number): void {
    this.#from = position;
    this.#listed = [];
    this.#open = false;
    this.#knownTo = position;
  }

  /** Adds an event that may be for the application. True when the backlog was empty. */
  offer(sequence: number): boolean {
    const hadBacklog = this.#from !== null;
    this.#from ??= sequence - 1;
    if (!this.#open) return !hadBacklog;
    if (this.#listed.length < LISTED_MAX) this.#listed.push(sequence);
    else {
      this.#open = false;
      this.#knownTo = sequence - 1;
    }
    return !hadBacklog;
  }

  /** Listed events after a position. */
  after(position: number): number[] {
    return this.#listed.filter((sequence) => sequence > position);
  }

  /** The log was scanned to its end: new events are listed from now on. */
  caughtUp(): void {
    this.#listed = [];
    this.#open = true;
  }

  /** Everything up to the position is delivered. */
  advance(position: number): void {
    this.#listed = this.after(position);
    this.#from = this.#listed.length > 0 || !this.#open ? position : null;
  }

  /** Requests one more run although the backlog may be empty. */
  keep(position: number): void {
    this.#from ??= position;
  }
}
