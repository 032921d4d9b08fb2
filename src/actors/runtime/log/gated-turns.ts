/**
 * Turns whose answers wait for other nodes, as far as some member may not have applied them. A new owner may know such a
 * turn before all nodes do: what it says of that actor waits as the first answer did. Actors without one never wait.
 */

/** Actors kept; when there are more, all actors wait for the turns that are forgotten. */
const ACTORS_MAX = 16_384;

export class GatedTurns {
  readonly #isEverywhere: (position: number) => boolean;
  /** Position of the newest such turn of each actor, the oldest first. */
  readonly #positions = new Map<string, number>();
  /** Turns up to here are not known by actor: before this process, or forgotten. */
  #unknownUpTo: number;

  /** `isEverywhere`: every other member has applied the position, or is out. `position`: applied by this process's start. */
  constructor(isEverywhere: (position: number) => boolean, position: number) {
    this.#isEverywhere = isEverywhere;
    this.#unknownUpTo = position;
  }

  /** Such a turn of an actor is applied here. */
  applied(kind: string, id: string, position: number): void {
    const name = `${kind}\0${id}`;
    this.#positions.delete(name);
    this.#positions.set(name, position);
    this.#forget();
  }

  /** The position that answers of the actor wait for; undefined when every node shows its state. */
  positionOf(kind: string, id: string): number | undefined {
    const position = Math.max(this.#positions.get(`${kind}\0${id}`) ?? 0, this.#unknownUpTo);
    return this.#isEverywhere(position) ? undefined : position;
  }

  #forget(): void {
    for (const [name, position] of this.#positions) {
      if (!this.#isEverywhere(position)) {
        if (this.#positions.size <= ACTORS_MAX) return;
        this.#unknownUpTo = position;
      }
      this.#positions.delete(name);
    }
  }
}
