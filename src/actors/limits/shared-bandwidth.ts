/**
 * Parts of a bandwidth quota that the nodes of a cluster have: as many as they have of the callers with a stream (decision
 * 0105). A node sends how many it has when that changes. Volatile; bounded by keys.
 */
import { SHARED_KEYS_MAX } from './shared-counts.ts';

interface BandwidthHost {
  /** Nodes that are in, this one included. */
  readonly nodes: number;
  isIn(node: number): boolean;
  /** A number of callers waits to be sent. */
  due(): void;
  leftOut(): void;
}

export class SharedBandwidth {
  readonly #host: BandwidthHost;
  /** Callers with a stream at this node. */
  readonly #own = new Map<string, number>();
  readonly #due = new Set<string>();
  readonly #others = new Map<number, Map<string, number>>();

  constructor(host: BandwidthHost) {
    this.#host = host;
  }

  /** The part of this quota that this node may use now, above 0 to 1. Without callers, and beyond the bound: that of any node. */
  shareOf(key: string): number {
    const { nodes } = this.#host;
    if (nodes < 2) return 1;
    let others = 0;
    // A node that has left still reports its last streams, and has no part.
    for (const [node, callers] of this.#others) if (this.#host.isIn(node)) others += callers.get(key) ?? 0;
    const own = this.#own.get(key);
    return own === undefined ? 1 / Math.max(nodes, 1 + others) : own / (own + others);
  }

  /** So many callers have a stream of this quota here. */
  note(key: string, callers: number): void {
    if (callers === 0) this.#own.delete(key);
    else if (this.#own.has(key) || this.#own.size < SHARED_KEYS_MAX) this.#own.set(key, callers);
    else {
      this.#host.leftOut();
      return;
    }
    if (this.#host.nodes < 2) return;
    this.#due.add(key);
    this.#host.due();
  }

  /** Returns the changes that are due, or everything: key, callers, key, callers and so on. */
  report(isWhole: boolean): (string | number)[] {
    if (isWhole) for (const key of this.#own.keys()) this.#due.add(key);
    const said = [...this.#due].flatMap((key) => [key, this.#own.get(key) ?? 0]);
    this.#due.clear();
    return said;
  }

  take(node: number, said: readonly (string | number)[]): void {
    const known = this.#others.get(node) ?? new Map<string, number>();
    this.#others.set(node, known);
    for (let at = 0; at + 1 < said.length; at += 2) {
      const key = String(said[at]);
      const callers = Number(said[at + 1]);
      if (callers === 0) known.delete(key);
      else if (known.has(key) || known.size < SHARED_KEYS_MAX) known.set(key, callers);
      else this.#host.leftOut();
    }
  }

  /** Discards what this node sent before: it sends all of it again. */
  forget(node: number): void {
    this.#others.delete(node);
  }

  /** The nodes that are in: a node that is out has no part. */
  keep(nodes: ReadonlySet<number>): void {
    for (const node of this.#others.keys()) if (!nodes.has(node)) this.#others.delete(node);
  }
}
