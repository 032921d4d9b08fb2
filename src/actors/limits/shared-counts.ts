/**
 * Counts of the nodes of a cluster for the keys of one limit (decision 0105). A node sends its counts of keys that come
 * near their quota; a decision adds what others said to what it counted itself. Volatile: a window's counts end with it.
 */
import { windowIndex } from '../../domain/limits/quotas.ts';

/** Keys of one limit that a node sends in a window, and as many of each of eight. Further ones count at their node alone. */
export const SHARED_KEYS_MAX = 4_096;
const OTHERS_MAX = 8 * SHARED_KEYS_MAX;
/** A key is sent from this part of its quota on, divided by the nodes: together, unsent counts stay below a quarter. */
const UNSAID_PART = 4;

/** A count of this node that others shall know. */
export interface OwnCount {
  readonly counts: SharedCounts;
  readonly window: number;
  readonly key: string;
  used: number;
  /** It waits to be sent. */
  isDue: boolean;
}

/** Counts of one process in one window: key, count, key, count and so on. */
interface ProcessCounts {
  readonly process: string;
  /** Length and number of the window. */
  readonly seconds: number;
  readonly window: number;
  readonly said: readonly (string | number)[];
}

/** Facts that all limits of one node share. */
export interface CountsHost {
  /** Nodes that are in, this one included. */
  readonly nodes: number;
  /** A count waits to be sent. */
  due(count: OwnCount): void;
  /** A count was not exchanged because of a bound. */
  leftOut(): void;
}

/** Counts of other processes in one window. */
class OthersWindow {
  readonly window: number;
  readonly sums = new Map<string, number>();
  readonly #byProcess = new Map<string, Map<string, number>>();
  #size = 0;

  constructor(window: number) {
    this.window = window;
  }

  /** False when there is no room. */
  set(process: string, key: string, used: number): boolean {
    const before = this.#byProcess.get(process)?.get(key);
    if (before === undefined) {
      if (this.#size >= OTHERS_MAX) return false;
      this.#size += 1;
    }
    const known = this.#byProcess.get(process) ?? new Map<string, number>();
    this.#byProcess.set(process, known);
    known.set(key, used);
    this.sums.set(key, (this.sums.get(key) ?? 0) + used - (before ?? 0));
    return true;
  }
}

export class SharedCounts {
  readonly name: string;
  readonly #windowSeconds: () => number;
  readonly #host: CountsHost;
  #window = -1;
  #seconds = 0;
  #own = new Map<string, OwnCount>();
  /** Counts of the window before, which a node whose clock is behind is still in. */
  #ended = new Map<string, OwnCount>();
  #others = new OthersWindow(-1);
  /** Counts of a node whose clock is ahead. */
  #next: OthersWindow | undefined;

  /** `windowSeconds` is asked when a window ends. */
  constructor(name: string, windowSeconds: () => number, host: CountsHost) {
    this.name = name;
    this.#windowSeconds = windowSeconds;
    this.#host = host;
  }

  /**
   * Returns the count that others reported for the key in this window, whose number follows from the length of the
   * windows.
   */
  others(key: string, window: number): number {
    if (window !== this.#window && !this.#moveTo(window)) return 0;
    const { sums } = this.#others;
    return sums.size === 0 ? 0 : (sums.get(key) ?? 0);
  }

  /** This node has counted `used` of `quota` in the window that `others` was asked for. */
  note(key: string, window: number, used: number, quota: number): void {
    const { nodes } = this.#host;
    if (nodes < 2 || window !== this.#window) return;
    const isNear = used * UNSAID_PART * nodes >= quota;
    if (!isNear && !this.#others.sums.has(key)) return;
    let count = this.#own.get(key);
    if (count === undefined) {
      if (this.#own.size >= SHARED_KEYS_MAX) {
        this.#host.leftOut();
        return;
      }
      count = { counts: this, window, key, used, isDue: false };
      this.#own.set(key, count);
    }
    count.used = used;
    this.#due(count);
  }

  /** All counts of this window and the one before are to be sent again. */
  repeat(): void {
    for (const count of this.#ended.values()) this.#due(count);
    for (const count of this.#own.values()) this.#due(count);
  }

  /** Is it of this window or the one before? */
  isRecent(count: OwnCount): boolean {
    return this.#own.get(count.key) === count || this.#ended.get(count.key) === count;
  }

  /** Length of the present window. */
  get seconds(): number {
    return this.#seconds;
  }

  /** Keys of this node that others know. */
  get keys(): number {
    return this.#own.size;
  }

  /**
   * Takes counts of another process. A window that is over, one behind the next, and one of another length say nothing of
   * the present one.
   */
  take({ process, seconds, window, said }: ProcessCounts, nowMs: number): void {
    const present = windowIndex(nowMs, this.#windowSeconds());
    if (present !== this.#window) this.#moveTo(present);
    const others = seconds === this.#seconds ? this.#othersOf(window) : undefined;
    if (others === undefined) return;
    for (let at = 0; at + 1 < said.length; at += 2)
      if (!others.set(process, String(said[at]), Number(said[at + 1]))) this.#host.leftOut();
  }

  #othersOf(window: number): OthersWindow | undefined {
    if (window === this.#window) return this.#others;
    if (window !== this.#window + 1) return undefined;
    this.#next ??= new OthersWindow(window);
    return this.#next;
  }

  #due(count: OwnCount): void {
    if (count.isDue) return;
    count.isDue = true;
    this.#host.due(count);
  }

  /** False for the window before: a request of it has lasted until now. After a clock was set back, the earlier window counts. */
  #moveTo(window: number): boolean {
    const seconds = this.#windowSeconds();
    const isSameLength = seconds === this.#seconds;
    if (isSameLength && window === this.#window - 1) return false;
    const next = this.#next;
    this.#next = undefined;
    this.#others = isSameLength && next?.window === window ? next : new OthersWindow(window);
    this.#ended = isSameLength && window === this.#window + 1 ? this.#own : new Map();
    this.#own = new Map();
    this.#window = window;
    this.#seconds = seconds;
    return true;
  }
}

/** The same within one window, for a limit that keeps its own counts by window. */
export class SharedWindow {
  readonly #counts: SharedCounts;
  readonly #window: number;

  constructor(counts: SharedCounts, window: number) {
    this.#counts = counts;
    this.#window = window;
  }

  others(key: string): number {
    return this.#counts.others(key, this.#window);
  }

  note(key: string, used: number, quota: number): void {
    this.#counts.note(key, this.#window, used, quota);
  }
}
