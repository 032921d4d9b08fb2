/**
 * Proves that the folder of files of this node is that of the others (docs/decisions/0315). Each minute a node writes a
 * marker with a new value and sends the value with its renewals; nodes look for each other's markers. A copy of the
 * folder has old values, another one none.
 */
import type { Schedule } from '../../../actors/runtime/runtime-context.ts';
import { MINUTE_MS, SECOND_MS } from '../../../domain/time.ts';
import type { NodeRecord } from '../../cluster/node-table.ts';
import type { Markers } from './marker-folder.ts';

/** Milliseconds that a marker may be missing after its value was sent. */
export const MARKER_WAIT_MS = 5 * SECOND_MS;
const RENEWED_MS = MINUTE_MS;
const CHECK_INTERVAL_MS = SECOND_MS;
/** Markers of this node that are kept, with the one of before: others may not know the newest yet. */
const KEPT = 2;
/** A value becomes a name: what the database says is judged. */
const VALUE = /^[0-9a-f]{32}$/;

/** In place of a value: the node has written no marker yet. */
const NONE = '';

/** A node as the table tells it. */
type ReadNode = Pick<NodeRecord, 'node' | 'joined'> & {
  readonly figures: Pick<NonNullable<NodeRecord['figures']>, 'marker'> | undefined;
};

interface ProofOptions {
  readonly markers: Markers;
  /** 32 hexadecimal digits. */
  readonly newValue: () => string;
  readonly schedule: Pick<Schedule, 'timer'>;
  readonly monotonicMs: () => number;
  /** Called when the verdict, or the nodes whose marker is missing, have changed. */
  readonly onChange: (isShared: boolean, missing: readonly number[]) => void;
  /** A marker of this node could not be written, or one was not looked for. */
  readonly onFault: (error: unknown) => void;
}

/** Marker of another node. */
interface Seen {
  readonly value: string;
  readonly isFound: boolean;
  /** A marker before this one was found. */
  readonly wasFound: boolean;
  /** Time since which its markers are not found. */
  readonly sinceMs: number;
}

/** `silent`: it has said no value in time, and does not count. */
type Standing = 'found' | 'awaited' | 'missing' | 'silent';

export class FolderProof {
  readonly #options: ProofOptions;
  readonly #others = new Map<number, Seen>();
  readonly #own: string[] = [];
  readonly #whenShared: Promise<void>;
  #resolveShared = (): void => undefined;
  #node = 0;
  #isIn = false;
  #isShared = false;
  #missing: readonly number[] = [];
  #writtenMs = Number.NEGATIVE_INFINITY;
  #isBusy = false;
  #cancel = (): void => undefined;

  constructor(options: ProofOptions) {
    this.#options = options;
    this.#whenShared = new Promise((resolve) => {
      this.#resolveShared = resolve;
    });
    this.#turn();
  }

  /** The value that is written; undefined before the first one is. */
  get marker(): string | undefined {
    return this.#own[0];
  }

  get isShared(): boolean {
    return this.#isShared;
  }

  /** Nodes whose marker was not found in time. */
  get missing(): readonly number[] {
    return this.#missing;
  }

  /** Resolves when the folder was found shared for the first time. */
  shared(): Promise<void> {
    return this.#whenShared;
  }

  /** Takes a reading of the table of nodes; `node`: the number of this one, 0 while it has none. */
  read(node: number, nodes: readonly ReadNode[]): void {
    this.#node = node;
    this.#isIn = nodes.some((each) => each.node === node && each.joined);
    const said = nodes.flatMap(({ node: other, joined, figures }): [number, string][] => {
      const { marker } = figures ?? {};
      if (other === node || !joined || marker === undefined) return [];
      return [[other, marker !== null && VALUE.test(marker) ? marker : NONE]];
    });
    // A node that is alone keeps what it knew: it was refused among others, and is none the wiser.
    if (said.length > 0) this.#take(new Map(said));
    this.#judge();
    void this.#work();
  }

  close(): void {
    this.#cancel();
  }

  #take(said: ReadonlyMap<number, string>): void {
    for (const node of this.#others.keys()) if (!said.has(node)) this.#others.delete(node);
    for (const [node, value] of said) {
      const known = this.#others.get(node);
      if (known?.value === value) continue;
      const isNews = known === undefined || known.isFound || known.value === NONE;
      this.#others.set(node, {
        value,
        isFound: false,
        wasFound: known !== undefined && (known.isFound || known.wasFound),
        sinceMs: isNews ? this.#options.monotonicMs() : known.sinceMs,
      });
    }
  }

  #turn(): void {
    this.#judge();
    void this.#work();
    this.#cancel = this.#options.schedule.timer(CHECK_INTERVAL_MS, () => this.#turn());
  }

  /** One call after the other: a file system that hangs holds one thread. */
  async #work(): Promise<void> {
    if (this.#isBusy || this.#node === 0) return;
    this.#isBusy = true;
    // A node whose folder is apart checks more often: its folder may have been mounted since.
    const intervalMs = this.#isShared ? RENEWED_MS : MARKER_WAIT_MS;
    const isDue = this.#options.monotonicMs() - this.#writtenMs >= intervalMs;
    if (isDue) await this.#try(() => this.#write());
    for (const [node, { value, isFound }] of [...this.#others])
      if (!isFound && value !== NONE) await this.#try(() => this.#look(node, value));
    this.#isBusy = false;
    this.#judge();
  }

  async #try(call: () => Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.#options.onFault(error);
    }
  }

  async #write(): Promise<void> {
    const { markers, newValue, monotonicMs } = this.#options;
    const value = newValue();
    await markers.write(this.#node, value);
    this.#writtenMs = monotonicMs();
    this.#own.unshift(value);
    this.#own.splice(KEPT);
    await markers.trim(this.#node, this.#own);
  }

  async #look(node: number, value: string): Promise<void> {
    const isFound = await this.#options.markers.has(node, value);
    const known = this.#others.get(node);
    if (isFound && known?.value === value) this.#others.set(node, { ...known, isFound });
  }

  #standingOf({ value, isFound, wasFound, sinceMs }: Seen): Standing {
    if (isFound) return 'found';
    if (this.#options.monotonicMs() - sinceMs > MARKER_WAIT_MS) return value === NONE ? 'silent' : 'missing';
    return wasFound ? 'found' : 'awaited';
  }

  /**
   * Most nodes decide, this one included. Half of them change nothing: of two halves with folders of their own one was
   * the lesser before. A node that is out starts anew, because another half may be the greater by now.
   */
  #judge(): void {
    const standings = [...this.#others].map(([node, seen]) => ({ node, standing: this.#standingOf(seen) }));
    const count = (wanted: Standing) => standings.filter(({ standing }) => standing === wanted).length;
    const found = 1 + count('found');
    const lost = count('missing');
    const missing = standings.flatMap(({ node, standing }) => (standing === 'missing' ? [node] : []));
    this.#say(this.#verdict(found, lost, count('awaited')), missing);
  }

  #verdict(found: number, lost: number, awaited: number): boolean {
    if (!this.#isIn) return this.#isShared && this.#others.size === 0;
    if (found > lost + awaited) return true;
    return lost > found ? false : this.#isShared;
  }

  #say(isShared: boolean, missing: readonly number[]): void {
    if (isShared === this.#isShared && missing.join() === this.#missing.join()) return;
    // Its last marker may lie in a folder that has been replaced by the shared one.
    if (isShared && !this.#isShared) this.#writtenMs = Number.NEGATIVE_INFINITY;
    this.#isShared = isShared;
    this.#missing = missing;
    if (isShared) this.#resolveShared();
    this.#options.onChange(isShared, missing);
  }
}
