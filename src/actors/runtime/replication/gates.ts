/**
 * Answers that may leave only when every other member has applied a position, or is out by a row that is applied here:
 * what such an answer says is in effect on every node that admits requests.
 */
import type { RowSink } from './row-sink.ts';

interface Gate {
  readonly position: number;
  readonly run: () => void;
}

export class Gates {
  readonly #sink: Pick<RowSink, 'position' | 'members'>;
  readonly #applied = new Map<number, number>();
  /** Gates by position. One that is open has only open ones before it. */
  #waiting: Gate[] = [];

  constructor(sink: Pick<RowSink, 'position' | 'members'>) {
    this.#sink = sink;
  }

  /** Answers that wait. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Another node has applied everything up to this position. */
  onApplied(node: number, position: number, own: number): void {
    if (position <= (this.#applied.get(node) ?? 0)) return;
    this.#applied.set(node, position);
    this.open(own);
  }

  /** Runs when the position is reached, perhaps at once. */
  reached(position: number, run: () => void, own: number): void {
    if (this.#waiting.length === 0 && this.isOpen(position, own)) {
      run();
      return;
    }
    let index = this.#waiting.length;
    while (index > 0 && (this.#waiting[index - 1]?.position ?? 0) > position) index -= 1;
    this.#waiting.splice(index, 0, { position, run });
    this.open(own);
  }

  /** Runs what waits no longer: to be called after every applied row. */
  open(own: number): void {
    let count = 0;
    while (count < this.#waiting.length && this.isOpen(this.#waiting[count]?.position ?? 0, own)) count += 1;
    if (count === 0) return;
    for (const { run } of this.#waiting.splice(0, count)) run();
  }

  /** Every other member has applied the position, or is out. */
  isOpen(position: number, own: number): boolean {
    const { position: applied, members } = this.#sink;
    if (applied < position) return false;
    for (const node of members.nodes()) {
      if (node === own) continue;
      // A member that came in later serves only after its own row, which is behind this position.
      const isConcerned = (members.member(node)?.since ?? 0) <= position;
      if (isConcerned && (this.#applied.get(node) ?? 0) < position) return false;
    }
    return true;
  }
}
