/**
 * Finds the nodes that have stopped: those whose counter of renewals has stood still for a whole lease by this node's
 * own monotonic clock. What another node admits ends before that, because it counts from before its last renewal. Of two
 * different leases the longer one counts: nodes have both while the setting changes from node to node.
 */
import { type LogWrite, type NodeState, OutcomeUnknown, type SharedLog } from './port.ts';

interface Seen {
  readonly renewals: number;
  readonly sinceMs: number;
}

export class Expeller {
  readonly #log: SharedLog;
  readonly #leaseMs: number;
  readonly #expelling = new Set<number>();
  #seen = new Map<number, Seen>();
  #readMs = Number.NEGATIVE_INFINITY;

  constructor(log: SharedLog, leaseMs: number) {
    this.#log = log;
    this.#leaseMs = leaseMs;
  }

  /** Takes the counters as read at `nowMs`; the nodes that are to be expelled. */
  read(others: readonly NodeState[], nowMs: number): readonly NodeState[] {
    // After a lease without an answer the engine was away, for all nodes perhaps: their time begins anew.
    if (nowMs - this.#readMs >= this.#leaseMs) this.#seen.clear();
    this.#readMs = nowMs;
    const seen = new Map<number, Seen>();
    const stopped: NodeState[] = [];
    for (const other of others) {
      const before = this.#seen.get(other.node);
      const present =
        before?.renewals === other.renewals ? before : { renewals: other.renewals, sinceMs: nowMs };
      seen.set(other.node, present);
      const isUnderWay = this.#expelling.has(other.node);
      const leaseMs = Math.max(this.#leaseMs, other.leaseMs ?? 0);
      if (nowMs - present.sinceMs >= leaseMs && !isUnderWay) stopped.push(other);
    }
    this.#seen = seen;
    return stopped;
  }

  /**
   * The position of the row; undefined when there is none, or its answer was lost: the row arrives, or the next renewal
   * tries again. Rejects with `Expelled`.
   */
  async expel(target: NodeState, write: LogWrite): Promise<number | undefined> {
    this.#expelling.add(target.node);
    try {
      return await this.#log.expel(write, target.node, target.renewals);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      return undefined;
    } finally {
      this.#expelling.delete(target.node);
    }
  }
}
