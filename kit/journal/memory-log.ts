/**
 * The shared log in memory, for the simulation and for tests. Every call has two steps that the driver takes: the
 * question reaches the engine, the answer reaches the client. Either may be late or lost.
 */
import { readClock } from '../../src/actors/runtime/replication/clock-check.ts';
import {
  checkRowAt,
  type DigestSample,
  type Entered,
  Expelled,
  LogLost,
  type LogRow,
  type LogWrite,
  NameTaken,
  type NodeState,
  OutcomeUnknown,
  type Renewed,
  type RowName,
  type SharedLog,
} from '../../src/actors/runtime/replication/port.ts';

/** Node numbers, as ids carry them: 1 to 63. */
const NODES_MAX = 63;

interface NodeRecord {
  readonly node: number;
  readonly name: string;
  incarnation: number;
  joined: boolean;
  renewals: number;
  renewedMs: number;
  applied: number;
  sample: DigestSample | undefined;
  clockOffsetMs: number | undefined;
  leaseMs: number | undefined;
}

interface MemoryLogOptions {
  /** Takes the steps of every call. Without it they wait for the simulation. */
  readonly immediate?: (run: () => void) => void;
  /** Time of the engine: a name is free when its process has not renewed for `leaseMs`. */
  readonly clock: () => number;
  readonly leaseMs: number;
  /** The wall clock of the engine, which nodes read; default: `clock`. */
  readonly wallClock?: () => number;
  /** Names this life of the log. */
  readonly logId?: string;
  /** Planted fault: a member is expelled although it has renewed. */
  readonly expelsRenewed?: boolean;
  /** Planted fault: the question of a lost answer may still arrive after `resolve`. */
  readonly letsFormerWrite?: boolean;
}

/** One call of a client: waits until its question is executed, then until its answer is delivered. */
export interface MemoryCall {
  readonly client: number;
  readonly method: keyof SharedLog;
  /** The engine has executed it: only the answer is under way. */
  readonly executed: boolean;
  /** The client has given up; the question may still arrive. */
  readonly abandoned: boolean;
}

class Call implements MemoryCall {
  readonly client: number;
  readonly method: keyof SharedLog;
  readonly #run: () => unknown;
  readonly #resolve: (value: unknown) => void;
  readonly #reject: (error: unknown) => void;
  #answer: (() => void) | undefined;
  abandoned = false;

  constructor(
    [client, method]: readonly [number, keyof SharedLog],
    run: () => unknown,
    resolve: (value: unknown) => void,
    reject: (error: unknown) => void,
  ) {
    this.client = client;
    this.method = method;
    this.#run = run;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  get executed(): boolean {
    return this.#answer !== undefined;
  }

  execute(): void {
    try {
      const value = this.#run();
      this.#answer = () => this.#resolve(value);
    } catch (error) {
      this.#answer = () => this.#reject(error);
    }
  }

  deliver(): void {
    if (!this.abandoned) this.#answer?.();
  }

  lose(): void {
    this.abandoned = true;
    this.#reject(new OutcomeUnknown(`${this.method} of client ${this.client}`));
  }
}

export class MemoryLog {
  readonly #options: MemoryLogOptions;
  readonly #nodes: NodeRecord[] = [];
  readonly #calls: Call[] = [];
  #rows: LogRow[] = [];
  /** Rows up to this position are gone. */
  #trimmed = 0;
  #clients = 0;

  constructor(options: MemoryLogOptions) {
    this.#options = options;
  }

  /** Calls that wait for a step, the oldest first. */
  get calls(): readonly MemoryCall[] {
    return this.#calls;
  }

  get logId(): string {
    return this.#options.logId ?? 'memory';
  }

  get position(): number {
    return this.#trimmed + this.#rows.length;
  }

  get rows(): readonly LogRow[] {
    return this.#rows;
  }

  /** The log as one process sees it. `clock`: its wall clock; `leaseMs`: its lease, where it reports one. */
  connect(clock = this.#options.clock, leaseMs?: number): MemoryLogClient {
    this.#clients += 1;
    const ask: Ask = (...of) => this.#ask(...of);
    return new MemoryLogClient([this.#clients, ask, this], clock, leaseMs);
  }

  /** Takes the next step of a call: its question arrives, or its answer. */
  step(call: MemoryCall): void {
    const found = this.#find(call);
    if (found === undefined) return;
    if (!found.executed) {
      found.execute();
      if (!found.abandoned) return;
    } else found.deliver();
    this.#remove(call);
  }

  /** The client learns nothing of the outcome. A question that is still under way may arrive later. */
  lose(call: MemoryCall): void {
    const found = this.#find(call);
    if (found === undefined || found.abandoned) return;
    found.lose();
    if (found.executed) this.#remove(call);
  }

  /** The question never arrives. The client has given up, or does so now. */
  drop(call: MemoryCall): void {
    this.lose(call);
    this.#remove(call);
  }

  /** The process of a client has ended: its answers are lost, its questions may still arrive. */
  disconnect(client: number): void {
    for (const call of [...this.#calls]) {
      if (call.client !== client) continue;
      call.abandoned = true;
      if (call.executed) this.#remove(call);
    }
  }

  /** Removes rows up to a position, as a trimmed log has. */
  trim(upTo: number): void {
    const removed = Math.min(Math.max(0, upTo - this.#trimmed), this.#rows.length);
    this.#rows = this.#rows.slice(removed);
    this.#trimmed += removed;
  }

  #remove(call: MemoryCall): void {
    const found = this.#find(call);
    if (found !== undefined) this.#calls.splice(this.#calls.indexOf(found), 1);
  }

  #find(call: MemoryCall): Call | undefined {
    return this.#calls.find((each) => each === call);
  }

  #ask<T>(client: number, method: keyof SharedLog, run: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const call = new Call([client, method], run, (value) => resolve(value as T), reject);
      this.#calls.push(call);
      this.#options.immediate?.(() => {
        this.step(call);
        this.step(call);
      });
    });
  }

  enter(name: string, previous?: number, leaseMs?: number): Entered {
    const { clock, leaseMs: leastMs } = this.#options;
    let record = this.#nodes.find((each) => each.name === name);
    if (record === undefined) {
      const node = this.#nodes.length + 1;
      if (node > NODES_MAX) throw new RangeError(`a log has at most ${NODES_MAX} nodes`);
      const counters = { incarnation: 0, renewals: 0, renewedMs: 0, applied: 0 };
      record = {
        node,
        name,
        ...counters,
        joined: false,
        sample: undefined,
        clockOffsetMs: undefined,
        leaseMs,
      };
      this.#nodes.push(record);
    }
    const isAlive = record.joined && clock() - record.renewedMs < Math.max(leastMs, record.leaseMs ?? 0);
    if (isAlive && previous !== record.incarnation) throw new NameTaken(name);
    record.incarnation += 2;
    record.leaseMs = leaseMs;
    record.sample = undefined;
    return {
      node: record.node,
      incarnation: record.incarnation,
      logId: this.logId,
      position: this.position,
    };
  }

  append(write: LogWrite): number {
    this.#fenced(write);
    this.#rows.push({ ...write, position: this.position + 1 });
    return this.position;
  }

  join(write: LogWrite): number {
    const record = this.#fenced(write);
    record.joined = true;
    this.#renewed(record);
    return this.append(write);
  }

  leave(write: LogWrite): number {
    const record = this.#joined(write);
    const position = this.append(write);
    record.joined = false;
    return position;
  }

  expel(write: LogWrite, target: number, renewals: number): number | undefined {
    this.#fenced(write);
    const record = this.#nodes[target - 1];
    if (record?.joined !== true) return undefined;
    if (record.renewals !== renewals && this.#options.expelsRenewed !== true) return undefined;
    record.joined = false;
    record.incarnation += 1;
    return this.append(write);
  }

  renew(node: number, incarnation: number, said: Said): Seen {
    const record = this.#joined({ node, incarnation });
    this.#renewed(record);
    Object.assign(record, said);
    return this.look(node);
  }

  look(node: number): Seen {
    const { clock, wallClock = clock } = this.#options;
    const others = this.#nodes.filter((each) => each.joined && each.node !== node).map(stateOf);
    return { others, position: this.position, wallMs: wallClock() };
  }

  resolve(write: LogWrite): number | undefined {
    const record = this.#record(write.node);
    const next = write.incarnation + 1;
    if (record.incarnation !== write.incarnation && record.incarnation !== next)
      throw new Expelled(write.node, write.incarnation);
    record.incarnation = next;
    const found = this.#rows.findLast(
      ({ node, incarnation, nodeSeq }) =>
        node === write.node && incarnation === write.incarnation && nodeSeq === write.nodeSeq,
    );
    return found?.position;
  }

  fetch(after: number, limit: number, row?: RowName): readonly LogRow[] {
    if (after > this.position) throw new LogLost(`the log ends at ${this.position}, before ${after}`);
    if (after < this.#trimmed) throw new LogLost(`the rows up to ${this.#trimmed} were removed`);
    const from = after - this.#trimmed;
    // A row that was just removed was not another one.
    if (from > 0) checkRowAt(after, this.#rows[from - 1], row);
    return this.#rows.slice(from, from + limit);
  }

  #renewed(record: NodeRecord): void {
    record.renewals += 1;
    record.renewedMs = this.#options.clock();
  }

  #record(node: number): NodeRecord {
    const record = this.#nodes[node - 1];
    if (record === undefined) throw new Expelled(node, 0);
    return record;
  }

  /** The record of the writer when its incarnation is the newest. */
  #fenced({ node, incarnation }: Pick<LogWrite, 'node' | 'incarnation'>): NodeRecord {
    const record = this.#record(node);
    const isFormer = this.#options.letsFormerWrite === true && record.incarnation === incarnation + 1;
    if (record.incarnation !== incarnation && !isFormer) throw new Expelled(node, incarnation);
    return record;
  }

  #joined(writer: Pick<LogWrite, 'node' | 'incarnation'>): NodeRecord {
    const record = this.#fenced(writer);
    if (!record.joined) throw new Expelled(writer.node, writer.incarnation);
    return record;
  }
}

/** Values that a renewal writes. */
type Said = Pick<NodeRecord, 'applied' | 'sample' | 'clockOffsetMs'>;
type Seen = Omit<Renewed, 'clock'> & { readonly wallMs: number };

function stateOf({ node, renewals, applied, sample, clockOffsetMs, leaseMs }: NodeRecord): NodeState {
  return { node, renewals, applied, sample, clockOffsetMs, leaseMs };
}

type Ask = <T>(client: number, method: keyof SharedLog, run: () => T) => Promise<T>;

export class MemoryLogClient implements SharedLog {
  /** Names the client among the calls of the log. */
  readonly client: number;
  readonly #ask: Ask;
  readonly #log: MemoryLog;
  readonly #clock: () => number;
  readonly #leaseMs: number | undefined;
  /** Offset measured by the last question, unless its answer was lost; said with the next renewal. */
  #clockOffsetMs: number | undefined;

  constructor(
    [client, ask, log]: readonly [number, Ask, MemoryLog],
    clock: () => number,
    leaseMs: number | undefined,
  ) {
    this.#leaseMs = leaseMs;
    this.client = client;
    this.#ask = ask;
    this.#log = log;
    this.#clock = clock;
  }

  get logId(): string {
    return this.#log.logId;
  }

  enter(name: string, previous?: number): Promise<Entered> {
    return this.#ask(this.client, 'enter', () => this.#log.enter(name, previous, this.#leaseMs));
  }

  append(write: LogWrite): Promise<number> {
    return this.#ask(this.client, 'append', () => this.#log.append(write));
  }

  join(write: LogWrite): Promise<number> {
    return this.#ask(this.client, 'join', () => this.#log.join(write));
  }

  leave(write: LogWrite): Promise<number> {
    return this.#ask(this.client, 'leave', () => this.#log.leave(write));
  }

  expel(write: LogWrite, target: number, renewals: number): Promise<number | undefined> {
    return this.#ask(this.client, 'expel', () => this.#log.expel(write, target, renewals));
  }

  renew(node: number, incarnation: number, applied: number, sample?: DigestSample): Promise<Renewed> {
    const said = { applied, sample, clockOffsetMs: this.#clockOffsetMs };
    return this.#seen('renew', () => this.#log.renew(node, incarnation, said));
  }

  look(node: number): Promise<Renewed> {
    return this.#seen('look', () => this.#log.look(node));
  }

  async #seen(method: keyof SharedLog, run: () => Seen): Promise<Renewed> {
    const sentMs = this.#clock();
    this.#clockOffsetMs = undefined;
    const { wallMs, ...seen } = await this.#ask(this.client, method, run);
    const clock = readClock(sentMs, this.#clock(), wallMs);
    this.#clockOffsetMs = clock.offsetMs;
    return { ...seen, clock };
  }

  resolve(write: LogWrite): Promise<number | undefined> {
    return this.#ask(this.client, 'resolve', () => this.#log.resolve(write));
  }

  fetch(after: number, limit: number, row?: RowName): Promise<readonly LogRow[]> {
    return this.#ask(this.client, 'fetch', () => this.#log.fetch(after, limit, row));
  }
}
