/**
 * Who has the machine: one scenario at a time, and those of `all` in turn. Each is spread over the whole run that way,
 * and what the machine does in one minute hits them all.
 */
import { SECOND_MS } from '../src/domain/time.ts';

/** Then others go on. Shorter turns would be spent on getting warm again. */
const TURN_MS = 6 * SECOND_MS;
const OVER = 'its turns are over';

export class Turns {
  readonly #endMs: number;
  readonly #nowMs: () => number;
  /** Those that are not over, of whom some have not begun. */
  readonly #open = new Set<Turn>();
  readonly #waiting: { readonly turn: Turn; go(): void; giveUp(): void }[] = [];
  #holder: Turn | undefined;

  /** By `nowMs`, `performance.now()` unless given, all that measure should be over at `endMs`. */
  constructor(endMs: number, nowMs: () => number = () => performance.now()) {
    this.#endMs = endMs;
    this.#nowMs = nowMs;
  }

  /** For one that will want the machine. What is left of the time is shared by all who joined, in these proportions. */
  join(share = 1): Turn {
    const turn = new Turn(this, share, this.#nowMs);
    this.#open.add(turn);
    return turn;
  }

  get isWanted(): boolean {
    return this.#waiting.length > 0;
  }

  /** What one has of the time until the end, beside what it had: what others do not need is everybody's. */
  leftMs(turn: Turn): number {
    let [hadMs, shares] = [0, 0];
    for (const each of this.#open) {
      hadMs += each.hadMs;
      shares += each.share;
    }
    return ((this.#endMs - this.#nowMs() + hadMs) * turn.share) / shares - turn.hadMs;
  }

  /** Resolves when the machine is this one's; rejects when it leaves instead. */
  async take(turn: Turn): Promise<void> {
    if (!this.#open.has(turn)) throw new Error(OVER);
    if (this.#holder === undefined) this.#holder = turn;
    else
      await new Promise<void>((resolve, reject) => {
        this.#waiting.push({ turn, go: resolve, giveUp: () => reject(new Error(OVER)) });
      });
  }

  /** To whoever waits longest. */
  handOver(): void {
    const next = this.#waiting.shift();
    this.#holder = next?.turn;
    next?.go();
  }

  leave(turn: Turn): void {
    this.#open.delete(turn);
    if (this.#holder === turn) this.handOver();
    const place = this.#waiting.findIndex((each) => each.turn === turn);
    if (place !== -1) this.#waiting.splice(place, 1)[0]?.giveUp();
  }
}

/** One scenario's times with the machine. */
export class Turn {
  readonly share: number;
  readonly #turns: Turns;
  readonly #nowMs: () => number;
  #beforeMs = 0;
  /** Undefined while others have it. */
  #sinceMs: number | undefined;

  constructor(turns: Turns, share: number, nowMs: () => number) {
    this.#turns = turns;
    this.share = share;
    this.#nowMs = nowMs;
  }

  get isOn(): boolean {
    return this.#sinceMs !== undefined;
  }

  /** In all so far. */
  get hadMs(): number {
    return this.#beforeMs + (this.#sinceMs === undefined ? 0 : this.#nowMs() - this.#sinceMs);
  }

  get leftMs(): number {
    return this.#turns.leftMs(this);
  }

  /** Resolves when the machine is this one's; rejects where `end` comes first. */
  async begin(): Promise<void> {
    await this.#turns.take(this);
    this.#sinceMs = this.#nowMs();
  }

  /**
   * Lets others go on where they wait and this one had its time, after `halt`: true when they had the machine meanwhile.
   * Rejects where `end` comes first.
   */
  async rest(halt: () => void = () => undefined): Promise<boolean> {
    if (this.#sinceMs === undefined) throw new Error(OVER);
    if (!this.#turns.isWanted || this.#nowMs() - this.#sinceMs < TURN_MS) return false;
    halt();
    this.#stop();
    const again = this.begin();
    this.#turns.handOver();
    await again;
    return true;
  }

  /** It needs the machine no more. */
  end(): void {
    this.#stop();
    this.#turns.leave(this);
  }

  #stop(): void {
    this.#beforeMs = this.hadMs;
    this.#sinceMs = undefined;
  }
}
