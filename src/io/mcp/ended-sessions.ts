/**
 * Session ids of /mcp that their clients have ended. Nothing is kept under a live one, so only the ended ones are known:
 * a request that still names one is told so with 404, and everybody else is served (mcp.md).
 */

/** As `newSessionId` makes them. */
const OWN_ID = /^[A-Za-z0-9_-]{24}$/;
/** Ids remembered; the oldest is forgotten when there are more. */
const ENDED_MAX = 10_000;

export class EndedSessions {
  readonly #ended = new Set<string>();

  /** An id that cannot be one of ours is not remembered: anybody may send any. */
  end(id: string): void {
    if (!OWN_ID.test(id)) return;
    if (this.#ended.size >= ENDED_MAX) {
      const oldest = this.#ended.values().next();
      if (oldest.done !== true) this.#ended.delete(oldest.value);
    }
    this.#ended.add(id);
  }

  has(id: string | undefined): boolean {
    return id !== undefined && this.#ended.has(id);
  }

  get size(): number {
    return this.#ended.size;
  }
}
