/**
 * A cluster whose actors are lists of operations: what the node promises can be simulated without the runtime. The
 * store judges rows as the runtime does: member, owner, next number, free name.
 */
import { type MemberChange, Members } from '../../../src/actors/runtime/log/members.ts';
import { LogNode } from '../../../src/actors/runtime/log/node.ts';
import type { Log, LogRow, Peers } from '../../../src/actors/runtime/log/port.ts';
import type { RowSink } from '../../../src/actors/runtime/log/row-sink.ts';
import { LEASE_MS, type ProcessTools } from './simulated-cluster.ts';

const KIND = 'user';

export interface ModelTurn {
  readonly id: string;
  readonly seq: number;
  readonly operation: number;
  /** A name that only one actor may have. */
  readonly name: string | undefined;
}

type ModelVerdict = 'applied' | 'fenced' | 'stale' | 'conflict';

/** Ways to break a promise on purpose. */
export type PlantedFault =
  | 'answers do not wait for other nodes'
  | 'the lease is not asked'
  | 'a node serves before its join is applied'
  | 'claims are not judged'
  | 'a push is applied out of order'
  | 'a clock that steps decides expulsions'
  | 'a member that renews is expelled'
  | 'a question arrives after its resolution'
  | 'a stale turn ends its node'
  | 'owners and numbers are not judged';

const decode = (body: Uint8Array) =>
  JSON.parse(Buffer.from(body).toString()) as { readonly member?: MemberChange; readonly turn?: ModelTurn };
const encode = (value: object): Uint8Array => Buffer.from(JSON.stringify(value));

/** What survives a process. */
export class ModelStore implements RowSink {
  readonly #fault: PlantedFault | undefined;
  position = 0;
  readonly members = new Members();
  readonly actors = new Map<string, number[]>();
  readonly names = new Map<string, string>();
  readonly verdicts: ModelVerdict[] = [];
  /** What was applied and breaks a rule. */
  readonly faults: string[] = [];
  /** Makes a batch visible at a moment of the simulation; set by the process that runs. */
  whenWritten: (run: () => void) => void = () => {};

  constructor(fault: PlantedFault | undefined) {
    this.#fault = fault;
  }

  apply(rows: readonly LogRow[]): Promise<void> {
    return new Promise((resolve) =>
      this.whenWritten(() => {
        for (const row of rows) this.applyNow(row);
        resolve();
      }),
    );
  }

  applyNow({ position, node, incarnation, body }: LogRow): void {
    if (position !== this.position + 1) throw new Error(`row ${position} after ${this.position}`);
    const { member, turn } = decode(body);
    this.position = position;
    if (member !== undefined) this.members.change(member, node, incarnation, position);
    this.verdicts[position] = turn === undefined ? 'applied' : this.#judge(turn, node, incarnation);
  }

  operationsOf(id: string): readonly number[] {
    return this.actors.get(id) ?? [];
  }

  ownerOf(id: string): number {
    return this.members.ownerOf(KIND, id);
  }

  #judge({ id, seq, operation, name }: ModelTurn, node: number, incarnation: number): ModelVerdict {
    const operations = this.operationsOf(id);
    if (this.#fault !== 'owners and numbers are not judged') {
      if (!this.members.isMember(node, incarnation) || this.ownerOf(id) !== node) return 'fenced';
      if (seq !== operations.length + 1) return 'stale';
    } else if (seq !== operations.length + 1)
      this.faults.push(`${operation} of ${id} followed an older state`);
    const owner = name === undefined ? undefined : this.names.get(name);
    if (owner !== undefined && owner !== id) {
      if (this.#fault !== 'claims are not judged') return 'conflict';
      this.faults.push(`${name} belongs to ${owner} and ${id}`);
    }
    this.actors.set(id, [...operations, operation]);
    if (name !== undefined) this.names.set(name, id);
    return 'applied';
  }
}

export class ModelProcess {
  readonly store: ModelStore;
  readonly node: LogNode;
  readonly #fault: PlantedFault | undefined;
  readonly #tools: ProcessTools;
  readonly #parked = new Set<string>();
  #renewedMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;

  constructor(store: ModelStore, tools: ProcessTools, fault: PlantedFault | undefined) {
    this.store = store;
    this.#tools = tools;
    this.#fault = fault;
    store.whenWritten = (run) =>
      tools.schedule.immediate(() => {
        if (!this.#isStopped) run();
      });
    const steps = fault === 'a clock that steps decides expulsions';
    this.node = new LogNode({
      ...tools,
      monotonicMs: steps ? tools.clock : tools.monotonicMs,
      log: this.#observed(tools.client),
      sink: store,
      leaseMs: LEASE_MS,
      encodeMember: (member) => encode({ member }),
      peers: (listener) =>
        tools.peers({
          ...listener,
          onPush: (row) =>
            listener.onPush(this.#isNext(row) ? { ...row, position: store.position + 1 } : row),
        }) satisfies Peers,
    });
  }

  start(): void {
    this.node.start().catch(() => {});
  }

  stop(): void {
    this.#isStopped = true;
    this.node.stop();
  }

  get admits(): boolean {
    const { node, store } = this;
    if (this.#fault === 'the lease is not asked') return store.members.member(node.node) !== undefined;
    if (this.#fault === 'a node serves before its join is applied')
      return this.#tools.monotonicMs() - this.#renewedMs < LEASE_MS * 0.8;
    return node.admits;
  }

  /** Undefined when it is not taken; else the verdict, once the answer may leave. */
  ask(id: string, operation: number, name: string | undefined): Promise<ModelVerdict> | undefined {
    const { node, store } = this;
    if (!this.admits || store.ownerOf(id) !== node.node || this.#parked.has(id)) return undefined;
    const owner = name === undefined ? undefined : store.names.get(name);
    if (owner !== undefined && owner !== id) return undefined;
    this.#parked.add(id);
    const turn: ModelTurn = { id, seq: store.operationsOf(id).length + 1, operation, name };
    const position = node.append(node.nextSeq(), encode({ turn }));
    return position.then((at) => this.#answered(id, at));
  }

  #answered(id: string, position: number): Promise<ModelVerdict> {
    return new Promise((resolve) => {
      const answer = () => {
        this.#parked.delete(id);
        const verdict = this.store.verdicts[position] ?? 'fenced';
        if (verdict === 'stale' && this.#fault === 'a stale turn ends its node')
          this.#tools.onFatal(new Error('a stale turn'));
        resolve(verdict);
      };
      if (this.#fault === 'answers do not wait for other nodes') this.#applied(position, answer);
      else this.node.reached(position, answer);
    });
  }

  #applied(position: number, run: () => void): void {
    if (this.#isStopped) return;
    if (this.store.position >= position) run();
    else this.#tools.schedule.timer(1, () => this.#applied(position, run));
  }

  #isNext({ position }: LogRow): boolean {
    return this.#fault === 'a push is applied out of order' && position > this.store.position + 1;
  }

  /** The log, with the moment of the last renewal noted. */
  #observed(log: Log): Log {
    const { monotonicMs } = this.#tools;
    return {
      enter: (name, previous) => log.enter(name, previous),
      append: (write) => log.append(write),
      join: (write) => log.join(write),
      leave: (write) => log.leave(write),
      expel: (write, target, renewals) => log.expel(write, target, renewals),
      resolve: (write) => log.resolve(write),
      fetch: (after, limit) => log.fetch(after, limit),
      renew: async (...of) => {
        const sentMs = monotonicMs();
        const renewed = await log.renew(...of);
        this.#renewedMs = sentMs;
        return renewed;
      },
    };
  }
}
