/**
 * The deterministic simulation of a cluster: one seed is one history of three nodes with asks and repeats, reads, slow
 * work, messages, timers and the faults of cluster-faults.ts. Everything that happens follows from the seed.
 */
import type { LogRow } from '../../../src/actors/runtime/replication/port.ts';
import { Replica } from '../../../src/actors/runtime/replication/replica.ts';
import { seededBytes } from './actors.ts';
import { AuditTrims } from './audit-trims.ts';
import {
  brokenPromiseOf,
  type ClusterFigures,
  ClusterHistory,
  type HistoryOptions,
} from './cluster-history.ts';
import { Disk, judgeOf, type PlantedFault, RuntimeProcess, SAMPLE_ROWS } from './cluster-runtime.ts';
import { type AskedOperation, verdictOf } from './cluster-verdict.ts';
import { type LedgerCommand, type LedgerRequest, ledgerKind } from './ledger-kind.ts';
import { OwnersOfLog } from './owners-of-log.ts';
import { LEASE_MS, type ProcessTools, type SimulatedProcess } from './simulated-cluster.ts';

const ACTORS = ['a', 'b', 'c', 'd', 'e'];
const NAMES = ['x', 'y', 'z'];
const STEPS = 60;
/** Callers without an answer repeat one of so many operations. */
const REPEATED_MAX = 8;
/** At the end timers, returns and takeovers run their course, in rounds of so many milliseconds. */
const ROUND_MS = 1_000;
const ROUNDS_MAX = 120;
/** Milliseconds passed in one step, at most. */
const PASS_MAX_MS = 250;
/** Share of the steps in which all nodes trim their audit log. */
const TRIMS = 0.25;

export interface HistoryFigures extends ClusterFigures {
  acknowledged: number;
  returns: number;
  /** Leaves because of a clock. */
  withdrawals: number;
  resolved: number;
  reads: number;
}

export interface ClusterSimulationOptions extends HistoryOptions {
  readonly fault?: PlantedFault;
  readonly figures?: HistoryFigures;
}

interface Asked extends AskedOperation {
  readonly command: LedgerRequest;
  readonly askedMs: number;
  acknowledged: boolean;
}

/** Runs one seed; what was promised and not kept, or undefined. */
export function simulateCluster(
  seed: number,
  options: ClusterSimulationOptions = {},
): Promise<string | undefined> {
  return brokenPromiseOf(() => new History(seed, options).run(STEPS), options);
}

/** One history in so many has a node with a longer lease, as while an operator raises it from node to node. */
const MIXED_LEASES = 7;
const mixedLease = (name: string) => (name === 'three' ? 3 * LEASE_MS : LEASE_MS);

class History extends ClusterHistory<RuntimeProcess, Disk, ClusterSimulationOptions> {
  /** All answers wait for every node, or those alone that change a name. */
  readonly #isGated: boolean;
  readonly #kind: ReturnType<typeof ledgerKind>;
  /** All rows there ever were: a checkpoint is made of them. */
  readonly #archive: LogRow[] = [];
  readonly #asked: Asked[] = [];
  /** Operations of each actor that an answer has told of: those that every node shows, and all, as its owner does. */
  readonly #told = { everywhere: new Map<string, number[]>(), owner: new Map<string, number[]>() };
  readonly #owners = new OwnersOfLog();
  readonly #trims = new AuditTrims();
  readonly #digests: string[] = [];
  readonly #positions = new Map<RuntimeProcess, number>();
  /** Processes that admitted when they were last looked at. */
  readonly #admitting = new Set<RuntimeProcess>();
  #works: (() => void)[] = [];
  readonly #randomBytes: (length: number) => Uint8Array;

  constructor(seed: number, options: ClusterSimulationOptions) {
    super(seed, options, {
      expelsRenewed: options.fault === 'a member that renews is expelled',
      letsFormerWrite: options.fault === 'a question arrives after its resolution',
      ...(seed % MIXED_LEASES === 0 && { leaseOf: mixedLease }),
    });
    this.#isGated = seed % 3 !== 0;
    const kind = ledgerKind(
      (operation) => this.#slow({ type: 'receive', operation }),
      (operation) => this.trace(`notified ${operation}`),
      () => this.cluster.nowMs,
    );
    this.#kind = this.#isGated ? { ...kind, gated: true } : kind;
    this.#randomBytes = seededBytes(seed);
  }

  readonly #onBug = (error: unknown) => this.break(`bug: ${String(error)}`);

  protected newDisk(): Disk {
    return new Disk(this.options.fault);
  }

  protected start(tools: ProcessTools): RuntimeProcess {
    const [disk, kind, randomBytes] = [this.diskOf(tools.name), this.#kind, this.#randomBytes];
    return new RuntimeProcess({
      disk,
      tools,
      kind,
      randomBytes,
      fault: this.options.fault,
      onBug: this.#onBug,
    });
  }

  /** Slow work that the simulation ends when it likes. */
  #slow<Command extends LedgerCommand>(command: Command): Promise<Command> {
    this.trace(`calls ${command.type} ${command.operation}`);
    return new Promise((resolve) => this.#works.push(() => resolve(command)));
  }

  protected async step(): Promise<void> {
    if (this.random() < TRIMS) this.#trims.trim(this.cluster.processes, this.cluster.nowMs);
    const dice = this.random();
    if (dice < 0.35) for (let count = this.below(3); count >= 0; count -= 1) this.ask();
    else if (dice < 0.4) this.#repeatAny();
    else if (dice < 0.45) this.#works.splice(this.below(this.#works.length), 1)[0]?.();
    else if (dice < 0.58) await this.letThrough();
    else if (dice < 0.87) await this.pass(PASS_MAX_MS);
    else this.faults.disturb();
  }

  protected override ask(): void {
    const operation = this.#asked.length + 1;
    const id = this.pick(ACTORS);
    const command = this.#command(operation, id);
    this.#asked.push({ id, command, askedMs: this.cluster.nowMs, acknowledged: false });
    this.#send(operation);
  }

  #repeatAny(): void {
    if (this.#asked.length > 0) this.#send(this.below(this.#asked.length) + 1);
  }

  protected override repeat(): void {
    const first = Math.max(0, this.#asked.length - REPEATED_MAX);
    const newest = this.#asked
      .slice(first)
      .flatMap(({ acknowledged }, index) => (acknowledged ? [] : [first + index + 1]));
    if (newest.length > 0) this.#send(this.pick(newest));
  }

  #command(operation: number, id: string): LedgerRequest {
    const name = this.pick(NAMES);
    const dice = this.random();
    if (dice < 0.3) return { type: 'apply', operation };
    if (dice < 0.38) return { type: 'work', operation, work: () => this.#slow({ type: 'apply', operation }) };
    if (dice < 0.55) {
      return {
        type: 'send',
        operation,
        toId: this.pick(ACTORS),
        how: this.pick(['receive', 'fetch'] as const),
      };
    }
    if (dice < 0.72) return { type: 'take', operation, name, id };
    if (dice < 0.78) return { type: 'drop', operation, name, id };
    if (dice < 0.86) return { type: 'time', operation, name, delayMs: this.below(2_000) };
    if (dice < 0.9) return { type: 'cancel', operation, name };
    if (dice < 0.95) return { type: 'queue', operation };
    return { type: 'settle', operation };
  }

  /** A request at any node; the actor is asked at the node that this one believes to be the owner. */
  #send(operation: number): void {
    const asked = this.#asked[operation - 1];
    const process = this.pick(this.cluster.processes);
    if (asked === undefined || process === undefined || process.paused !== undefined) return;
    const owner = process.app.ownerOf(asked.id);
    const target = this.cluster.processes.find(({ app }) => app.node.node === owner);
    if (target === undefined || target.paused !== undefined || target.app.system === undefined) return;
    if (this.options.trace !== undefined)
      this.trace(`${target.name}: ask ${asked.id} ${JSON.stringify(asked.command)}`);
    target.app.system.ask(this.#kind, asked.id, asked.command, { idempotencyKey: `key-${operation}` }).then(
      (reply) => {
        this.trace(`${target.name}: acknowledged ${operation}`);
        if (reply !== operation) this.broken ??= `${operation} was answered ${String(reply)}`;
        this.#acknowledged(asked, operation);
      },
      (error: Error) => this.trace(`${target.name}: refused ${operation}: ${error.message}`),
    );
  }

  #acknowledged(asked: Asked, operation: number): void {
    if (asked.acknowledged) return;
    asked.acknowledged = true;
    const { id, command } = asked;
    const isEverywhere = this.#isGated || command.type === 'take' || command.type === 'drop';
    addTo(this.#told.owner, id, operation);
    if (isEverywhere) addTo(this.#told.everywhere, id, operation);
    if (this.options.figures !== undefined) this.options.figures.acknowledged += 1;
    for (const process of this.cluster.processes) this.#read(process);
  }

  /** A replica that is lost, or behind the log's beginning, comes from a checkpoint. */
  protected override async restart(name: string, isKept: boolean): Promise<void> {
    const { log } = this.cluster;
    const { journal } = this.diskOf(name);
    journal.crash(this.random() < 0.5 ? 'lost' : 'written');
    const trimmed = (log.rows[0]?.position ?? log.position + 1) - 1;
    const present = this.#replicaOf(name).position;
    if (!isKept || present < trimmed) {
      this.#keepRows();
      this.disks.set(name, new Disk(this.options.fault));
      if (trimmed > 0) await this.#replicaOf(name).apply(this.#archive.slice(0, trimmed));
    }
    this.trace(`${name}: starts`);
    this.cluster.startProcess(name);
  }

  /** The state on a disk, without a process. */
  #replicaOf(name: string): Replica {
    return new Replica({
      store: this.diskOf(name).journal,
      isOwn: () => false,
      logId: 'memory',
      judge: judgeOf(this.options.fault, name),
      sampleRows: SAMPLE_ROWS,
      onBug: ({ error }) => this.#onBug(error),
    });
  }

  /** Trims the log up to the position that every running process has reached, as the engine knows it. */
  protected override trim(): void {
    this.#keepRows();
    const applied = this.cluster.processes.map(({ app }) => app.position);
    this.cluster.log.trim(Math.min(...applied, this.cluster.log.position) - 1);
  }

  #keepRows(): void {
    const { rows, position } = this.cluster.log;
    for (const row of rows.slice(rows.length - (position - this.#archive.length))) {
      if (this.options.trace !== undefined)
        this.trace(`written ${row.position} by ${row.node}: ${Buffer.from(row.body).toString('base64')}`);
      this.#archive.push(row);
      this.#owners.read(row);
    }
  }

  protected override ended(name: string, error: Error): void {
    if (error.name !== 'LogLost') super.ended(name, error);
    else {
      this.trace(`${name} ended: ${error.message}`);
      void this.restart(name, false);
    }
  }

  /**
   * Equal positions have equal digests; the nodes have to find a planted difference themselves. A node that begins to admit knows what every answer has told; from then on its
   * state only grows, so it is read again when there is a new answer.
   */
  protected override check(): void {
    for (const process of this.cluster.processes) {
      const { app, name } = process;
      const { position, digest } = app.cluster.replica;
      const isCompared = this.options.fault !== 'one node judges otherwise';
      if (isCompared && this.#positions.get(app) !== position) {
        this.#positions.set(app, position);
        const text = Buffer.from(digest).toString('base64');
        this.#digests[position] ??= text;
        if (this.#digests[position] !== text) this.broken ??= `${name} differs at ${position}`;
      }
      if (app.withdrawals > 0 && !this.faults.wrongClocks.has(name))
        this.broken ??= `${name} left for its clock, which was never wrong`;
      const isAdmitting = process.paused === undefined && app.admits;
      if (isAdmitting && !this.#admitting.has(app)) this.#read(process);
      else if (!isAdmitting) this.#admitting.delete(app);
    }
  }

  #read({ name, paused, app }: SimulatedProcess<RuntimeProcess>): void {
    if (paused !== undefined || !app.admits) return;
    this.#admitting.add(app);
    if (this.options.figures !== undefined) this.options.figures.reads += 1;
    this.#keepRows();
    const { everywhere, owner } = this.#told;
    for (const id of owner.keys()) {
      const isOwner = this.#owners.isOwner(app.node.node, app.position, this.#kind.kind, id);
      const told = (isOwner ? owner : everywhere).get(id) ?? [];
      let seen: readonly number[] | undefined;
      try {
        seen = app.stateOf(id)?.applied;
      } catch (error) {
        this.broken ??= `${name} cannot read ${id}: ${String(error)}`;
      }
      const missing = seen === undefined ? undefined : told.find((operation) => !seen.includes(operation));
      if (missing !== undefined) this.broken ??= `${name} admits without ${missing} of ${id}`;
    }
  }

  protected async epilogue(): Promise<void> {
    const { cluster } = this;
    await this.settle({ roundMs: ROUND_MS, roundsMax: ROUNDS_MAX }, () => {
      for (const work of this.#works.splice(0)) work();
    });
    for (const { name, app } of cluster.processes) {
      if (!app.node.admits) this.broken ??= `${name} never came back`;
      if (app.position !== cluster.log.position)
        this.broken ??= `${name} is at ${app.position} of ${cluster.log.position}`;
      if (app.node.gated > 0) this.broken ??= `${name} holds answers back`;
    }
    if (!this.areAllUp) this.broken ??= `${cluster.processes.length} processes run`;
  }

  /** Everything runs, and no fault, work, mail, timer or write is under way. */
  protected get isIdle(): boolean {
    if (!this.areAllServing || this.#works.length > 0) return false;
    return this.cluster.processes.every(({ app }) => {
      const { backlog = 1, mailboxPending = 1 } = app.system?.counters() ?? {};
      if (app.node.gated + backlog + mailboxPending > 0) return false;
      return app.cluster.journal.timers(Number.MAX_SAFE_INTEGER, 1).length === 0;
    });
  }

  protected override count(): void {
    super.count();
    const { figures } = this.options;
    if (figures === undefined) return;
    for (const { app } of this.cluster.processes) {
      figures.returns += app.node.counts.returned;
      figures.withdrawals += app.withdrawals;
      figures.resolved += app.node.counts.resolved;
    }
  }

  protected override verdict(): string | undefined {
    this.#keepRows();
    // A write that is tried again keeps its body.
    if (new Set(this.#archive.map(({ body }) => body)).size < this.#archive.length)
      return 'the log has a row twice';
    const { processes } = this.cluster;
    const broken = verdictOf({ processes, actors: ACTORS, names: NAMES, asked: this.#asked });
    return broken ?? this.#trims.verdict(processes, this.#asked);
  }
}

function addTo(told: Map<string, number[]>, id: string, operation: number): void {
  told.set(id, [...(told.get(id) ?? []), operation]);
}
