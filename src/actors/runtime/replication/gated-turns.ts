/**
 * Turns whose answers wait for other nodes, as far as some member may not have applied them. A new owner may know such a
 * turn before all nodes do: what it says of that actor waits as the first answer did. Actors without one never wait.
 */

/** When more actors wait, all are forgotten, and every actor waits for their turns. */
const ACTORS_MAX = 8_192;
/** From so many on, those that need not wait any more are looked for; then when there are twice as many as were left. */
const ACTORS_FEW = 512;

export class GatedTurns {
  readonly #isEverywhere: (position: number) => boolean;
  /** Position of the newest such turn of each actor. */
  readonly #positions = new Map<string, number>();
  #forgetAt = ACTORS_FEW;
  /** Turns up to here are not known by actor: before this process, or forgotten. */
  #unknownUpTo: number;

  /** `isEverywhere`: every other member has applied the position, or is out. `position`: applied by this process's start. */
  constructor(isEverywhere: (position: number) => boolean, position: number) {
    this.#isEverywhere = isEverywhere;
    this.#unknownUpTo = position;
  }

  /** Such a turn of an actor is applied here. */
  applied(kind: string, id: string, position: number): void {
    this.#positions.set(`${kind}\0${id}`, position);
    if (this.#positions.size > this.#forgetAt) this.#forget(position);
  }

  /** The position that answers of the actor wait for; undefined when every node shows its state. */
  positionOf(kind: string, id: string): number | undefined {
    const position = Math.max(this.#positions.get(`${kind}\0${id}`) ?? 0, this.#unknownUpTo);
    return this.#isEverywhere(position) ? undefined : position;
  }

  #forget(newest: number): void {
    for (const [name, position] of this.#positions)
      if (this.#isEverywhere(position)) this.#positions.delete(name);
    if (this.#positions.size > ACTORS_MAX) {
      this.#positions.clear();
      this.#unknownUpTo = newest;
    }
    this.#forgetAt = Math.max(ACTORS_FEW, 2 * this.#positions.size);
  }
}
