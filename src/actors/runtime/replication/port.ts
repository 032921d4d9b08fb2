/**
 * The shared log of a cluster as the runtime uses it. Types only: an engine gives every row a position, one after the
 * other without gaps, and keeps it; what a row does is decided by every node when it applies the row.
 */

/** Names a row by who wrote it: no two rows that were ever written have one name, also when a database has lost some. */
export interface RowName {
  readonly node: number;
  readonly incarnation: number;
  /** Rises by one with each row of a process. */
  readonly nodeSeq: number;
}

/** One row: a group of writes of a node, or a change of the members. */
export interface LogRow extends RowName {
  /** Position in the log, from 1. A row is visible only when all before it are. */
  readonly position: number;
  readonly body: Uint8Array;
}

/** A row on its way to the log. */
export type LogWrite = Omit<LogRow, 'position'>;

/** One life of a node: rows of an earlier incarnation cannot reach the log any more. */
export interface Entered {
  /** 1 to 63. */
  readonly node: number;
  readonly incarnation: number;
  /** Names one life of the log: a restored copy gets another. */
  readonly logId: string;
  /** Newest position of the log. */
  readonly position: number;
}

/** Digest of what a node has applied, as of a position. */
export interface DigestSample {
  readonly position: number;
  readonly digest: Uint8Array;
}

/** Values of a node that a renewal reads. */
export interface NodeState {
  readonly node: number;
  /** Counts renewals; the expeller watches it stand still. */
  readonly renewals: number;
  readonly applied: number;
  /** The last sample of its state that the node reported. */
  readonly sample?: DigestSample | undefined;
  /** Clock of the engine minus its own, at the renewal before its last one; undefined where that had no answer. Milliseconds. */
  readonly clockOffsetMs?: number | undefined;
  /** Lease that it has configured, where it reported one. */
  readonly leaseMs?: number | undefined;
}

/** Offset of the wall clock of this process from that of the engine, with its error. Milliseconds. */
export interface ClockReading {
  /** Clock of the engine minus that of this process. */
  readonly offsetMs: number;
  /** Largest error of the offset. */
  readonly errorMs: number;
}

export interface Renewed {
  /** Every joined node but the one that renews. */
  readonly others: readonly NodeState[];
  /** Newest position of the log. */
  readonly position: number;
  readonly clock: ClockReading;
}

/** The node is out: its incarnation was raised by another node, or it has not joined. Nothing was written. */
export class Expelled extends Error {
  constructor(node: number, incarnation: number) {
    super(`node ${node} with incarnation ${incarnation} is not in`);
    this.name = 'Expelled';
  }
}

/** The answer was lost, or the engine cannot be reached: what was asked has happened, or not, or will. */
export class OutcomeUnknown extends Error {
  constructor(reason: string) {
    super(`no answer: ${reason}`);
    this.name = 'OutcomeUnknown';
  }
}

/** The log is no longer the one that this node has applied: another database, or one that lost rows. */
export class LogLost extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'LogLost';
  }
}

/** This node has applied the same rows with another result than the others. */
export class Diverged extends Error {
  /** The others are right: the copy of this node is to be fetched anew. Otherwise nothing decides. */
  readonly isOutvoted: boolean;
  /** The sample of this node at which they differ. */
  readonly own: DigestSample;

  constructor(reason: string, isOutvoted: boolean, own: DigestSample) {
    super(reason);
    this.name = 'Diverged';
    this.isOutvoted = isOutvoted;
    this.own = own;
  }
}

/** Another process that lives has this node's name. */
export class NameTaken extends Error {
  constructor(name: string) {
    super(`another process uses the node name ${name}`);
    this.name = 'NameTaken';
  }
}

/**
 * The engine. Every method settles within seconds, with `OutcomeUnknown` when the answer is lost by then. All but `enter`, `look` and
 * `fetch` reject with `Expelled`.
 */
export interface SharedLog {
  /** Names the life of the log that was opened. */
  readonly logId: string;
  /**
   * Gives a name its node number and a new incarnation: two above the newest, so that the process before it cannot
   * take it for its own in `resolve`. `previous`: the incarnation that this process had. Without it, or when it is not
   * the newest, rejects with `NameTaken` while a process that has the name renews.
   */
  enter(name: string, previous?: number): Promise<Entered>;
  /** Writes the row; its position. */
  append(write: LogWrite): Promise<number>;
  /** Writes the row, and the node is joined, both or neither. Counts as a renewal. */
  join(write: LogWrite): Promise<number>;
  /** Writes the row, and the node is no longer joined. */
  leave(write: LogWrite): Promise<number>;
  /**
   * Writes the row, and `target` is out: its incarnation is raised. Undefined when the target's counter is no longer
   * at `renewals`, or the target is out already: then nothing is written. Rejects with `Expelled` when the writer is out.
   */
  expel(write: LogWrite, target: number, renewals: number): Promise<number | undefined>;
  /** Raises the node's counter and stores what it has applied. `enter` removes the sample of an earlier incarnation. */
  renew(node: number, incarnation: number, applied: number, sample?: DigestSample): Promise<Renewed>;
  /** Reads the same as a renewal, without one: for a node that is not in. */
  look(node: number): Promise<Renewed>;
  /**
   * Settles a write after a lost answer: raises the incarnation to one more than `write.incarnation`, so that the old
   * statement cannot land any more. The position of the row when it did. May be repeated.
   */
  resolve(write: LogWrite): Promise<number | undefined>;
  /**
   * Rows after a position, in order. Rejects with `LogLost` when they, or the row at `after`, are not there, or when that
   * row has another name than `row`.
   */
  fetch(after: number, limit: number, row?: RowName): Promise<readonly LogRow[]>;
}

/** The direct connections to other nodes. Frames may be lost, doubled or late; the log is the truth. */
export interface Peers {
  push(row: LogRow): void;
  /** Tells every other node how far this one is: the position is visible in its store. */
  applied(position: number): void;
  /** The node has a connection to this one, over which its rows arrive. */
  isFedBy(node: number): boolean;
}

/** Listener for messages on the connections of other nodes. */
export interface PeerListener {
  onPush(row: LogRow): void;
  onApplied(node: number, position: number): void;
}

/** Throws `LogLost` unless the log is the one that this node has followed. To be asked before rows are compared. */
export function checkLog(logId: string, followed: string | undefined): void {
  if (followed !== undefined && followed !== logId)
    throw new LogLost(`the log is ${logId}, and this node has followed ${followed}`);
}

/** Names a row, without its content. */
export function nameOf({ node, incarnation, nodeSeq }: RowName): RowName {
  return { node, incarnation, nodeSeq };
}

/** Throws `LogLost` when the log has no row there, or another one than that which was applied. */
export function checkRowAt(position: number, found: RowName | undefined, applied: RowName | undefined): void {
  if (found === undefined)
    throw new LogLost(`row ${position} of the log is gone: it was trimmed, or the database lost it`);
  const { node, incarnation, nodeSeq } = applied ?? found;
  if (found.node === node && found.incarnation === incarnation && found.nodeSeq === nodeSeq) return;
  throw new LogLost(
    `row ${position} of the log is another one than this node has applied: the database lost rows`,
  );
}
