/**
 * One process of the simulated cluster: a running actor system of ledgers over a journal in memory that follows the
 * shared log. Planted faults break one promise each.
 */

import { MemoryJournal } from '../../../kit/journal/memory.ts';
import { Cell } from '../../../src/actors/runtime/cell.ts';
import { type Operation, VERDICT } from '../../../src/actors/runtime/journal/port.ts';
import { type ClusterNode, createClusterNode } from '../../../src/actors/runtime/replication/cluster-node.ts';
import { judge } from '../../../src/actors/runtime/replication/judge.ts';
import type { LogNode } from '../../../src/actors/runtime/replication/node.ts';
import type { LogRow, Renewed, SharedLog } from '../../../src/actors/runtime/replication/port.ts';
import { createActorSystem, type RunningSystem } from '../../../src/actors/runtime/system.ts';
import { LiveSettings } from '../../../src/domain/settings/settings.ts';
import type { LedgerState, ledgerKind } from './ledger-kind.ts';
import type { ProcessTools } from './simulated-cluster.ts';
import { LIMITS } from './simulation.ts';

/** Ways to break a promise on purpose. */
export type PlantedFault =
  | 'answers do not wait for other nodes'
  | 'the lease is not asked'
  | 'a node serves before its join is applied'
  | 'claims are not judged'
  | 'a push is applied out of order'
  | 'messages are numbered by their sender'
  | 'a member that renews is expelled'
  | 'a question arrives after its resolution'
  | 'a clock that steps decides expulsions'
  | 'a stale turn ends its node'
  | 'messages are not judged'
  | 'snapshots are not judged'
  | 'owners are not judged'
  | 'a new owner answers at once'
  | 'a trim is done twice'
  | 'each node trims audit records by itself'
  | 'clocks of members are read once'
  | 'the lease of another node is not read'
  | 'one node judges otherwise';

const SETTINGS = new LiveSettings();
/** Nodes compare digests at multiples of this position: histories are short. */
export const SAMPLE_ROWS = 4;
/** The node that judges otherwise, with that fault. */
const STRANGE_NODE = 'two';
/** Larger than any number of the log in a history. */
const SENDER_STEP = 2 ** 40;

/** State that survives a process. */
export class Disk {
  readonly journal: MemoryJournal;
  /** Completes a commit at a moment of the simulation; set by the process that runs. */
  whenWritten: (run: () => void) => void = queueMicrotask;

  constructor(fault: PlantedFault | undefined) {
    this.journal = new MemoryJournal({
      immediate: (run) => this.whenWritten(run),
      ...(fault === 'messages are numbered by their sender' && { tamper: numberedBySender }),
    });
  }
}

function numberedBySender(group: readonly Operation[]): readonly Operation[] {
  return group.map((operation) => {
    if (operation.op !== 'mail') return operation;
    const { key } = operation;
    return { ...operation, key: { ...key, seq: key.seq + key.fromId.charCodeAt(0) * SENDER_STEP } };
  });
}

export function judgeOf(fault: PlantedFault | undefined, name: string): typeof judge {
  const isStrange = fault === 'one node judges otherwise' && name === STRANGE_NODE;
  return (turn, writer, view) => {
    if (isStrange || fault === 'claims are not judged') return judge({ ...turn, claims: [] }, writer, view);
    if (fault === 'a trim is done twice')
      for (const operation of turn.operations) Reflect.deleteProperty(operation, 'trim');
    const [first] = turn.operations;
    if (first?.op === 'snapshot' && fault === 'snapshots are not judged') return VERDICT.applied;
    const verdict = judge(turn, writer, {
      isMember: (...of) => view.isMember(...of),
      ownerOf: (...of) => (fault === 'owners are not judged' ? writer.node : view.ownerOf(...of)),
      ownerOfPartition: (...of) => view.ownerOfPartition(...of),
      lastSeq: (...of) => view.lastSeq(...of),
      lookup: (...of) => view.lookup(...of),
      value: (key) => view.value(key),
      hasMail: (key) => fault === 'messages are not judged' || view.hasMail(key),
    });
    return verdict === VERDICT.stale && fault === 'a stale turn ends its node' ? VERDICT.refused : verdict;
  };
}

export interface RuntimeProcessOptions {
  readonly disk: Disk;
  readonly tools: ProcessTools;
  readonly kind: ReturnType<typeof ledgerKind>;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly fault: PlantedFault | undefined;
  readonly onBug: (error: unknown) => void;
}

export class RuntimeProcess {
  readonly #options: RuntimeProcessOptions;
  readonly cluster: ClusterNode;
  system: RunningSystem | undefined;
  #renewedMs = Number.NEGATIVE_INFINITY;
  #isStopped = false;
  #isLeaving = false;
  /** First offset of each member, for the planted fault. */
  readonly #firstOffsets = new Map<number, number | undefined>();
  /** Leaves without an order. */
  withdrawals = 0;

  constructor(options: RuntimeProcessOptions) {
    this.#options = options;
    const { disk, tools, fault, onBug } = options;
    disk.whenWritten = (run) =>
      tools.schedule.immediate(() => {
        if (!this.#isStopped) run();
      });
    this.cluster = createClusterNode({
      ...tools,
      store: disk.journal,
      log: this.#observed(tools.client),
      judge: judgeOf(fault, tools.name),
      sampleRows: SAMPLE_ROWS,
      onBug: ({ error }) => onBug(error),
      monotonicMs: fault === 'a clock that steps decides expulsions' ? tools.clock : tools.monotonicMs,
      peers: (listener) =>
        tools.peers({
          onApplied: (node, position) => listener.onApplied(node, position),
          onPush: (row) =>
            listener.onPush(this.#isEarly(row) ? { ...row, position: this.position + 1 } : row),
        }),
    });
    this.#start().catch((error: Error) => tools.onFatal(error));
  }

  get node(): LogNode {
    return this.cluster.node;
  }

  get position(): number {
    return this.cluster.replica.position;
  }

  ownerOf(id: string): number {
    return this.cluster.replica.members.ownerOf(this.#options.kind.kind, id);
  }

  /** True if requests are admitted; the planted fault may change it. */
  get admits(): boolean {
    const { fault, tools } = this.#options;
    if (this.system === undefined) return false;
    if (fault === 'the lease is not asked')
      return this.cluster.replica.members.member(this.node.node) !== undefined;
    if (fault === 'a node serves before its join is applied')
      return tools.monotonicMs() - this.#renewedMs < tools.leaseMs * 0.8;
    return this.node.admits;
  }

  /** Removes a batch of the audit records before that time. */
  trimAudit(beforeMs: number): void {
    const { fault } = this.#options;
    if (fault === 'each node trims audit records by itself')
      void this.cluster.replica.writeLocal([{ op: 'auditTrim', ring: 'accounts', rows: 1 }]);
    else this.system?.administration.tidyAudit(beforeMs);
  }

  /** State that a request sees now. */
  stateOf(id: string): LedgerState | undefined {
    const seen = this.system?.query(this.#options.kind, id, { type: 'state' });
    if (!(seen instanceof Promise)) return seen;
    seen.catch(() => {});
    return undefined;
  }

  /** State of an actor in the store. */
  storedStateOf(id: string): LedgerState {
    const cell = new Cell(this.#options.kind, id);
    cell.replay(this.cluster.journal);
    return cell.state as LedgerState;
  }

  /** A graceful end, but for the time that callers are given. */
  async leave(): Promise<void> {
    this.#isLeaving = true;
    await this.system?.drain(0);
    await this.node.leave();
  }

  stop(): void {
    this.#isStopped = true;
    this.node.stop();
  }

  /** In the order of the program: the actors are there when the node joins. */
  async #start(): Promise<void> {
    await this.node.enter();
    this.#startSystem();
    await this.node.start();
  }

  #startSystem(): void {
    if (this.#isStopped) return;
    const { tools, kind, randomBytes, fault, onBug } = this.#options;
    const { journal, view } = this.cluster;
    const waits = fault !== 'answers do not wait for other nodes';
    const admits = () => this.admits;
    this.system = createActorSystem({
      kinds: [kind],
      journal,
      cluster: {
        newestIds: view.newestIds,
        owns: (...of) => view.owns(...of),
        follow: (listener) => view.follow(listener),
        reached: (position, run) => (waits ? view.reached(position, run) : run()),
        isReached: (position) => fault === 'a new owner answers at once' || view.isReached(position),
        get position() {
          return view.position;
        },
        get isMember() {
          return view.isMember;
        },
        get admits() {
          return admits();
        },
      },
      node: this.node.node,
      ports: { workers: { run: async () => ({ ok: false, error: 'InternalError' }) } },
      settings: SETTINGS,
      clock: tools.clock,
      randomBytes,
      schedule: tools.schedule,
      limits: LIMITS,
      onFatal: (error) => tools.onFatal(error),
      onBug: ({ error }) => onBug(error),
    });
  }

  #asFirstRead(renewed: Renewed): Renewed {
    const others = renewed.others.map((other) => {
      if (!this.#firstOffsets.has(other.node)) this.#firstOffsets.set(other.node, other.clockOffsetMs);
      return { ...other, clockOffsetMs: this.#firstOffsets.get(other.node) };
    });
    return { ...renewed, others };
  }

  #isEarly({ position }: LogRow): boolean {
    return this.#options.fault === 'a push is applied out of order' && position > this.position + 1;
  }

  /** The log, with the moment of the last renewal noted. */
  #observed(log: SharedLog): SharedLog {
    const { monotonicMs } = this.#options.tools;
    return {
      logId: log.logId,
      enter: (name, previous) => log.enter(name, previous),
      append: (write) => log.append(write),
      join: (write) => log.join(write),
      leave: (write) => {
        if (!this.#isLeaving) this.withdrawals += 1;
        return log.leave(write);
      },
      expel: (write, target, renewals) => log.expel(write, target, renewals),
      look: (node) => log.look(node),
      resolve: (write) => log.resolve(write),
      fetch: (after, limit, row) => log.fetch(after, limit, row),
      renew: async (...of) => {
        const sentMs = monotonicMs();
        const renewed = await log.renew(...of);
        this.#renewedMs = sentMs;
        const { fault } = this.#options;
        if (fault === 'clocks of members are read once') return this.#asFirstRead(renewed);
        return fault === 'the lease of another node is not read' ? withoutLeases(renewed) : renewed;
      },
    };
  }
}

function withoutLeases(renewed: Renewed): Renewed {
  return { ...renewed, others: renewed.others.map(({ leaseMs: _, ...other }) => other) };
}
