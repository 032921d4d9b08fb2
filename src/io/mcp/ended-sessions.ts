/**
 * Ids of /mcp sessions that their clients ended. A request with an ended id gets 404. Live ids need no storage, so any other
 * id is served.
 */

/** The form of the header `Mcp-Session-Id` of the gateway. */
const OWN_ID = /^[A-Za-z0-9_-]{24}$/;
/** Ids kept; the oldest is dropped beyond this number. */
const ENDED_MAX = 10_000;

export class EndedSessions {
  readonly #ended = new Set<string>();

  /** An id of another form is not kept, because callers may send any text: false. */
  end(id: string): boolean {
    if (!OWN_ID.test(id)) return false;
    if (this.#ended.size >= ENDED_MAX) {
      const oldest = this.#ended.values().next();
      if (oldest.done !== true) this.#ended.delete(oldest.value);
    }
    this.#ended.add(id);
    return true;
  }

  has(id: string | undefined): boolean {
    return id !== undefined && this.#ended.has(id);
  }

  get size(): number {
    return this.#ended.size;
  }
}
