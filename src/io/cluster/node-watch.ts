/**
 * Log lines about the cluster as one node sees it: who is in, whether this node serves, other nodes with another
 * configuration, a clock far from that of the database, and what the database refuses.
 */
import type { ClockReading } from '../../actors/runtime/replication/port.ts';
import { type Log, onceAMinute } from '../observability/log.ts';
import type { DatabaseFailure } from './failures.ts';
import type { NodeRecord } from './node-table.ts';

interface NodeWatchOptions {
  readonly name: string;
  /** Hash of the part that all configurations should have alike. */
  readonly configHash: () => Uint8Array;
  readonly log: Log;
  readonly monotonicMs: () => number;
}

/** A clock that is off by more is warned of. */
const OFFSET_MS = 500;
/** The warning is over below this: an offset about the bound would begin and end it with every reading. */
const OFFSET_OVER_MS = 400;

/** A line when something begins or changes, and one when it is over. */
export class NodeWatch {
  readonly #options: NodeWatchOptions;
  #names: ReadonlyMap<number, string> = new Map();
  #others: readonly string[] = [];
  #isClockOff = false;
  #serves = false;
  #wasApart = false;
  readonly #isClockDue: (reason: string) => boolean;

  constructor(options: NodeWatchOptions) {
    this.#options = options;
    this.#isClockDue = onceAMinute(options.monotonicMs);
  }

  /** Names of nodes that are in and whose configuration differs from this one. */
  get otherConfigurations(): readonly string[] {
    return this.#others;
  }

  /** The name of a node; its number while no reading has shown the node. */
  nameOf(node: number): string {
    return this.#names.get(node) ?? String(node);
  }

  read(nodes: readonly NodeRecord[], clock: ClockReading): void {
    this.#names = new Map(nodes.map(({ node, name }) => [node, name]));
    this.#compare(nodes);
    this.#readClock(clock);
  }

  /** Says which nodes have come and gone. `hasLeft`: by themselves. */
  membersChanged(before: readonly number[], now: readonly number[], hasLeft: boolean): void {
    const { log } = this.#options;
    for (const node of now) if (!before.includes(node)) log.write('nodeJoined', { node });
    for (const node of before) if (!now.includes(node)) log.write(hasLeft ? 'nodeLeft' : 'nodeOut', { node });
  }

  /** Logs when this node begins or ceases to answer from its copy of the state. Before it has begun there is no news. */
  serves(serves: boolean): void {
    if (serves === this.#serves) return;
    this.#serves = serves;
    this.#options.log.write(serves ? 'nodeServes' : 'nodeRefuses');
  }

  /** Logs the nodes whose markers are `missing` from the folder of files, and that the folder is shared again. */
  sharesFolder(isShared: boolean, missing: readonly number[]): void {
    const { log } = this.#options;
    const nodes = missing.map((node) => this.nameOf(node)).sort();
    if (nodes.length > 0) log.write(isShared ? 'markersMissing' : 'folderNotShared', { nodes });
    else if (isShared && this.#wasApart) log.write('folderShared');
    this.#wasApart = nodes.length > 0;
  }

  /** Must be called while this node is out because of its clock. */
  isOutForClock({ offsetMs }: ClockReading): void {
    if (this.#isClockDue('wrong'))
      this.#options.log.write('nodeClockWrong', { clockOffsetMs: Math.round(offsetMs) });
  }

  #compare(nodes: readonly NodeRecord[]): void {
    const { name, configHash, log } = this.#options;
    const own = Buffer.from(configHash());
    const others = nodes.filter((node) => node.joined && node.name !== name && !own.equals(node.configHash));
    const names = others.map((node) => node.name).sort();
    if (names.join() === this.#others.join()) return;
    this.#others = names;
    if (names.length > 0) log.write('configurationDiffers', { nodes: names });
    else log.write('configurationAgrees');
  }

  #readClock({ offsetMs, errorMs }: ClockReading): void {
    const { log } = this.#options;
    const clockOffsetMs = Math.round(offsetMs);
    const distanceMs = Math.abs(offsetMs);
    if (!this.#isClockOff && distanceMs - errorMs > OFFSET_MS) {
      this.#isClockOff = true;
      log.write('clockOff', { clockOffsetMs });
    } else if (this.#isClockOff && distanceMs + errorMs < OFFSET_OVER_MS) {
      this.#isClockOff = false;
      log.write('clockRight', { clockOffsetMs });
    }
  }
}

/** Classes of SQLSTATEs with a series of their own (PostgreSQL, appendix A). */
export const REFUSAL_CLASSES = ['08', '25', '28', '40', '42', '53', '57', 'other'] as const;
type RefusalClass = (typeof REFUSAL_CLASSES)[number];

interface RefusalOptions {
  readonly log: Log;
  readonly monotonicMs: () => number;
}

/** Counts what PostgreSQL refuses a node, and says so once a minute for each SQLSTATE. */
export class DatabaseRefusals {
  readonly #log: Log;
  readonly #isDue: (sqlState: string) => boolean;
  readonly counts = Object.fromEntries(REFUSAL_CLASSES.map((name) => [name, 0])) as Record<
    RefusalClass,
    number
  >;

  constructor({ log, monotonicMs }: RefusalOptions) {
    this.#log = log;
    this.#isDue = onceAMinute(monotonicMs);
  }

  /** Failures without a SQLSTATE are no refusals. */
  readonly add = ({ sqlState, message }: DatabaseFailure): void => {
    if (sqlState === undefined) return;
    this.counts[REFUSAL_CLASSES.find((name) => sqlState.startsWith(name)) ?? 'other'] += 1;
    if (this.#isDue(sqlState)) this.#log.write('databaseRefused', { sqlState, detail: message });
  };
}
