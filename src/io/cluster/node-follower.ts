/** Reads the table of nodes, once a second and after every change of the members. One reading at a time. */
import type { Schedule } from '../../actors/runtime/runtime-context.ts';
import type { NodeRecord } from './node-table.ts';

interface NodeFollowerOptions {
  readonly nodes: () => Promise<readonly NodeRecord[]>;
  /** Called with every reading. */
  readonly onNodes: (nodes: readonly NodeRecord[]) => Promise<void> | void;
  /** Called before every reading, whether the database answers or not. */
  readonly onTurn: () => void;
  readonly schedule: Pick<Schedule, 'timer'>;
}

const INTERVAL_MS = 1_000;

export class NodeFollower {
  readonly #options: NodeFollowerOptions;
  #reading = false;
  /** A change came during a reading, which may not have seen it. */
  #isMissed = false;
  #stopped = false;
  #cancel = (): void => undefined;

  constructor(options: NodeFollowerOptions) {
    this.#options = options;
    this.readNow();
  }

  readNow(): void {
    this.#isMissed = this.#reading;
    if (this.#reading || this.#stopped) return;
    this.#reading = true;
    this.#cancel();
    void this.#read();
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
  }

  async #read(): Promise<void> {
    const { nodes, onNodes, onTurn, schedule } = this.#options;
    onTurn();
    try {
      const found = await nodes();
      if (!this.#stopped) await onNodes(found);
    } catch {
      // Renewals and fetches of the node report the same fault.
    }
    this.#reading = false;
    if (this.#stopped) return;
    if (this.#isMissed) this.readNow();
    else this.#cancel = schedule.timer(INTERVAL_MS, () => this.readNow());
  }
}
