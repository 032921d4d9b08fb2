/**
 * One node of a cluster over the shared log: member, lease, expulsion of others, its own writes, and the gate of
 * answers that must be in effect everywhere.
 */
import { ClockCheck } from './clock-check.ts';
import { Expeller } from './expeller.ts';
import { Gates } from './gates.ts';
import { Lag } from './lag.ts';
import { NodeLease, Renewals } from './lease.ts';
import type { LogNodeOptions } from './node-options.ts';
import {
  checkLog,
  type Diverged,
  Expelled,
  type LogRow,
  type LogWrite,
  type NodeState,
  OutcomeUnknown,
  type Peers,
} from './port.ts';
import { Presence, Unsettled } from './presence.ts';
import { NodeStopped, Tail } from './tail.ts';

/** Share of the lease that a node may be behind and still renew. */
const LAG_SHARE = 0.5;

export class LogNode {
  readonly #options: LogNodeOptions;
  readonly #presence: Presence;
  readonly #tail: Tail;
  readonly #lease: NodeLease;
  readonly #renewals: Renewals;
  readonly #lag = new Lag();
  readonly #gates: Gates;
  readonly #expeller: Expeller;
  readonly #clocks = new ClockCheck();
  readonly #peers: Peers;
  #seq: number;
  /** The last of the writes, which go one after the other. */
  #writing: Promise<unknown> = Promise.resolve();
  readonly #unsettled = new Unsettled();
  #joinApplied = false;
  #leaving = false;
  /** The incarnation that leaves because of its clock. */
  #withdrawing: number | undefined;
  #stopped = false;
  #onAdmitted: (() => void) | undefined;
  /** Counts for metrics: expulsions by this node, own returns after an expulsion, lost answers that were resolved. */
  readonly counts = { expelled: 0, returned: 0, resolved: 0, renewals: 0, renewalsSkipped: 0 };

  constructor(options: LogNodeOptions) {
    const { log, sink, schedule, leaseMs } = options;
    this.#options = options;
    this.#seq = options.firstSeq ?? 0;
    this.#lease = new NodeLease(options, leaseMs);
    this.#gates = new Gates(sink);
    this.#expeller = new Expeller(log, leaseMs);
    const onFatal = (error: unknown) => this.#fatal(error);
    this.#renewals = new Renewals(options, () => this.#renew(), onFatal);
    this.#tail = new Tail({
      log,
      sink,
      schedule,
      onRows: (rows) => this.#unsettled.passing(rows),
      onApplied: () => this.#applied(),
      onKnown: (position) => this.#lag.saw(position, sink.position, options.monotonicMs()),
      isFed: (pollMs) => this.#isFedByAll() && this.behindMs < pollMs,
      onFatal,
    });
    this.#presence = new Presence({
      ...options,
      mayJoin: (seen) => this.#clocks.mayJoin(seen),
      applied: () => sink.position,
      nextSeq: () => this.nextSeq(),
      reach: (position) => this.#tail.reach(position),
      onWritten: (write, position) => this.#written(write, position),
    });
    this.#peers = options.peers({
      onPush: (row) => this.#tail.offer(row),
      onApplied: (node, position) => this.#gates.onApplied(node, position, this.node),
    });
  }

  get node(): number {
    return this.#presence.node;
  }

  get incarnation(): number {
    return this.#presence.incarnation;
  }

  /** Milliseconds for which the oldest row that is not applied here has been known. */
  get behindMs(): number {
    return this.#lag.behindMs(this.#options.monotonicMs());
  }

  /** Rows of the log that are known and not applied here. */
  get behindRows(): number {
    return this.#lag.rowsAfter(this.#options.sink.position);
  }

  /** Milliseconds for which it may still admit, by its lease. */
  get leaseLeftMs(): number {
    return this.#lease.leftMs;
  }

  /** It is not so far behind that it no longer renews its lease. */
  get keepsUp(): boolean {
    return this.behindMs <= this.#options.leaseMs * LAG_SHARE;
  }

  /** It is out, or about to be, until its clock is right. */
  get isClockOff(): boolean {
    return this.#clocks.isOff;
  }

  /** Gated answers that wait. */
  get gated(): number {
    return this.#gates.size;
  }

  /** Enters and catches up: the node has its number and can be linked, owns nothing and admits nothing. */
  async enter(): Promise<void> {
    this.#begin();
    await this.#presence.enter();
  }

  /** Joins; enters before where that has not happened. Resolves when this node admits. */
  async start(): Promise<void> {
    this.#begin();
    await this.#presence.comeIn();
    const admitted = new Promise<void>((resolve) => {
      this.#onAdmitted = resolve;
    });
    this.#renewals.start();
    await admitted;
  }

  /** Numbers the rows of this process, over its incarnations. */
  nextSeq(): number {
    this.#seq += 1;
    return this.#seq;
  }

  isOwn(row: LogRow): boolean {
    return this.#presence.isOwn(row.node, row.incarnation);
  }

  /** The node may answer from its own store: its lease runs, and its own join is applied. */
  get admits(): boolean {
    return !this.#leaving && this.#isJoined && this.#lease.runs;
  }

  /** It gives up its place: writes are rejected. */
  get isLeaving(): boolean {
    return this.#leaving;
  }

  /** Writes a row, after those before it, however often it has to be tried. Its position. */
  append(nodeSeq: number, body: Uint8Array): Promise<number> {
    return this.#oneByOne(() => this.#append(nodeSeq, body));
  }

  /** Runs when every other member has applied the position, or is out by a row that is applied here. */
  reached(position: number, run: () => void): void {
    this.#gates.reached(position, run, this.node);
  }

  /** Every other member has applied the position, or is out: `reached` would run at once. */
  isReached(position: number): boolean {
    return this.#gates.isOpen(position, this.node);
  }

  /** Ends admission, then membership. Resolves when that is applied here, or the node is out already. */
  leave(): Promise<void> {
    this.#leaving = true;
    this.#renewals.stop();
    this.#presence.leave();
    return this.#oneByOne(() => this.#leave());
  }

  /** Ends at once, as far as other nodes can see: without leaving. Writes that wait are rejected. */
  stop(): void {
    this.#stopped = true;
    this.#renewals.stop();
    this.#presence.stop();
    this.#tail.stop();
  }

  #begin(): void {
    checkLog(this.#options.log.logId, this.#options.logId);
    this.#tail.start();
  }

  get #isJoined(): boolean {
    const { node, joinPosition } = this.#presence;
    const { position, members } = this.#options.sink;
    return position >= joinPosition && members.member(node) !== undefined;
  }

  /** Every other member has a link to this node. A row that is lost on it shows by a later row, or by the next renewal. */
  #isFedByAll(): boolean {
    const { members } = this.#options.sink;
    return [...members.nodes()].every((node) => node === this.node || this.#peers.isFedBy(node));
  }

  #oneByOne<T>(write: () => Promise<T>): Promise<T> {
    const written = this.#writing.then(write);
    this.#writing = written.catch((error: unknown) => this.#fatal(error));
    return written;
  }

  async #append(nodeSeq: number, body: Uint8Array): Promise<number> {
    for (;;) {
      if (this.#stopped || this.#leaving) throw new NodeStopped();
      await this.#presence.comeIn();
      const position = await this.#try(nodeSeq, body, (write) => this.#options.log.append(write));
      if (position !== undefined) return position;
    }
  }

  async #leave(): Promise<void> {
    const { encodeMember, log } = this.#options;
    const body = encodeMember({ type: 'leave' });
    while (!this.#presence.isOut && !this.#stopped) {
      const position = await this.#try(this.nextSeq(), body, (write) => log.leave(write));
      if (position === undefined) continue;
      return await this.#tail.reach(position);
    }
  }

  /** The position of a write, after a lost answer too; undefined when it was not written. */
  async #try(
    nodeSeq: number,
    body: Uint8Array,
    ask: (write: LogWrite) => Promise<number>,
  ): Promise<number | undefined> {
    const { node, incarnation } = this.#presence;
    const write = { node, incarnation, nodeSeq, body };
    this.#unsettled.begin(write);
    try {
      const position = await ask(write);
      this.#written(write, position);
      return position;
    } catch (error) {
      if (error instanceof Expelled) {
        this.#expelled();
        return undefined;
      }
      if (!(error instanceof OutcomeUnknown)) throw error;
      return await this.#resolve(write);
    } finally {
      this.#unsettled.end();
      if (!this.#presence.isIn) this.#comeBack();
    }
  }

  async #resolve(write: LogWrite): Promise<number | undefined> {
    this.counts.resolved += 1;
    try {
      // A row that has passed may be out of the log already.
      const position = (await this.#presence.resolve(write)) ?? this.#unsettled.position;
      if (position !== undefined) this.#written(write, position);
      return position;
    } catch (error) {
      if (!(error instanceof Expelled)) throw error;
      // Another process had the name meanwhile: a new incarnation keeps the write out, and the rows tell.
      this.#expelled();
      await this.#presence.enter();
      return this.#unsettled.position;
    }
  }

  #written(write: LogWrite, position: number): void {
    const row = { ...write, position };
    this.#peers.push(row);
    this.#tail.offer(row);
  }

  #applied(): void {
    const { position } = this.#options.sink;
    const { node, joinPosition, isIn } = this.#presence;
    this.#lag.applied(position);
    this.#peers.applied(position);
    this.#gates.open(node);
    const isJoined = this.#isJoined;
    if (isJoined && !this.#joinApplied) this.#presence.joinApplied();
    this.#joinApplied = isJoined;
    if (isJoined) this.#admit();
    else if (isIn && position >= joinPosition) this.#out();
  }

  #admit(): void {
    if (!this.admits) return;
    this.#onAdmitted?.();
    this.#onAdmitted = undefined;
  }

  /** A row or a refused renewal says that this node is out. A write under way finds out for itself. */
  #out(): void {
    if (this.#unsettled.isOpen || this.#leaving || this.#stopped || this.#isWithdrawing) return;
    this.#expelled();
    this.#comeBack();
  }

  #comeBack(): void {
    if (this.#leaving || this.#stopped) return;
    this.#presence.comeIn().catch((error: unknown) => this.#fatal(error));
  }

  get #isWithdrawing(): boolean {
    return this.#withdrawing === this.#presence.incarnation;
  }

  /** Leaves because of its clock, after its writes, and comes back when that is right. */
  async #withdraw(): Promise<void> {
    const { log, encodeMember } = this.#options;
    if (!this.#presence.isIn || !this.#isWithdrawing || this.#leaving) return;
    const body = encodeMember({ type: 'leave' });
    const position = await this.#try(this.nextSeq(), body, (write) => log.leave(write));
    // Without a position the node is out by another row, or has a new incarnation, which does not join.
    if (position === undefined) return;
    this.#presence.left();
    await this.#tail.reach(position);
    this.#comeBack();
  }

  #expelled(): void {
    this.counts.returned += 1;
    this.#lease.end();
    this.#presence.expelled();
  }

  /** Passed over while this node is behind, or comes back. */
  async #renew(): Promise<void> {
    const { log, sink, monotonicMs } = this.#options;
    const { node, incarnation, isIn } = this.#presence;
    if (!this.keepsUp || this.#isWithdrawing || (!isIn && !this.#unsettled.isOpen)) {
      this.counts.renewalsSkipped += 1;
      return;
    }
    const sent = this.#lease.now();
    try {
      const renewed = await log.renew(node, incarnation, sink.position, sink.sample);
      const { others, position } = renewed;
      if (this.#stopped || incarnation !== this.#presence.incarnation) return;
      this.counts.renewals += 1;
      const diverged = sink.compare(others);
      if (diverged !== undefined) return await this.#endDiverged(diverged);
      const verdict = this.#clocks.judge(renewed, sent);
      if (verdict === 'right') this.#lease.renewed(sent);
      else this.#lease.end();
      if (verdict === 'wrong') {
        this.#withdrawing = incarnation;
        void this.#oneByOne(() => this.#withdraw());
        return;
      }
      for (const other of others) this.#gates.onApplied(other.node, other.applied, node);
      this.#lag.saw(position, sink.position, monotonicMs());
      this.#admit();
      for (const stopped of this.#expeller.read(others, monotonicMs())) void this.#expel(stopped);
    } catch (error) {
      if (error instanceof Expelled) {
        if (incarnation === this.#presence.incarnation) this.#out();
      } else if (!(error instanceof OutcomeUnknown)) throw error;
    }
  }

  /** The last renewal shows the others where this node differs: they have that position behind them. */
  async #endDiverged(diverged: Diverged): Promise<void> {
    const { log, sink } = this.#options;
    const { node, incarnation } = this.#presence;
    this.#lease.end();
    await log.renew(node, incarnation, sink.position, diverged.own).catch(() => undefined);
    this.#fatal(diverged);
  }

  async #expel(target: NodeState): Promise<void> {
    const { node, incarnation } = this.#presence;
    const body = this.#options.encodeMember({ type: 'expel', node: target.node });
    const write = { node, incarnation, nodeSeq: this.nextSeq(), body };
    try {
      const position = await this.#expeller.expel(target, write);
      if (position === undefined || this.#stopped) return;
      this.counts.expelled += 1;
      this.#written(write, position);
    } catch (error) {
      if (!(error instanceof Expelled)) this.#fatal(error);
      else if (incarnation === this.#presence.incarnation) this.#out();
    }
  }

  #fatal(error: unknown): void {
    if (this.#stopped || error instanceof NodeStopped) return;
    this.stop();
    this.#options.onFatal(error instanceof Error ? error : new Error(String(error)));
  }
}
