/** Constructs the components of the runtime. Owns the order in which they start and stop. */
import type { SettingsReader } from '../../domain/settings/settings.ts';
import type { Clock } from '../../domain/time.ts';
import type { AnyKind } from './actor.ts';
import type { Cell, PendingCount } from './cell.ts';
import { Claims } from './claims.ts';
import type { ClusterView } from './cluster-view.ts';
import { Deliveries } from './deliveries.ts';
import { type EffectHandlers, performerOf } from './effects.ts';
import { Follower, type FollowerDeps } from './follower.ts';
import { GroupCommit } from './group-commit.ts';
import { IdGenerator, storedFloor } from './id-generator.ts';
import {
  floorKey,
  type Journal,
  JournalTooNew,
  KIND_VERSIONS_KEY,
  ofNoActor,
  type TimerRow,
} from './journal/port.ts';
import { Mailboxes } from './mailbox.ts';
import { Passivation } from './passivation.ts';
import type { Ports } from './ports.ts';
import { GatedTurns } from './replication/gated-turns.ts';
import type { RuntimeContext, RuntimeLimits, Schedule } from './runtime-context.ts';
import { type BugReport, Supervision } from './supervision.ts';
import { Timers } from './timers.ts';
import { Turns } from './turns.ts';

export interface WiringOptions {
  readonly kinds: readonly AnyKind[];
  readonly journal: Journal;
  /** The cluster of this node, whose journal judges. */
  readonly cluster?: ClusterView;
  readonly ports: Ports;
  readonly settings: SettingsReader;
  readonly clock: Clock;
  readonly randomBytes: (length: number) => Uint8Array;
  readonly schedule: Schedule;
  /** Number of this node, 0 to 63: bits of its ids. Absent where there is one machine. */
  readonly node?: number;
  /** A commit failed: every waiter has its answer, the process is to end with 70. */
  readonly onFatal: (error: Error) => void;
  readonly onBug: (report: BugReport) => void;
}

export interface Wiring {
  readonly context: RuntimeContext;
  readonly commit: GroupCommit;
  readonly claims: Claims;
  readonly supervision: Supervision;
  readonly passivation: Passivation;
  readonly mailboxes: Mailboxes;
  readonly timers: Timers;
  readonly turns: Turns;
  readonly deliveries: Deliveries;
  readonly count: PendingCount;
  readonly cluster: ClusterView | undefined;
  readonly follower: Follower | undefined;
  readonly nextCommandId: () => string;
  stop(): void;
}

/** Actors examined in one tick of the event loop when idle ones are removed from memory. */
const SWEEP_ACTORS = 500;

export function compose(options: WiringOptions, limits: RuntimeLimits): Wiring {
  const { kinds, journal, schedule, clock, ports, onBug, cluster } = options;
  const versions = checkVersions(kinds, journal);
  const context = contextOf(options, () => commit);
  const claims = new Claims(journal, cluster !== undefined);
  const supervision = new Supervision(context, onBug);
  const commit: GroupCommit = new GroupCommit({
    journal,
    reached: cluster === undefined ? undefined : (position, run) => cluster.reached(position, run),
    schedule,
    limits,
    onCommitted: (group) => {
      claims.committed(group);
      mailboxes.resume();
    },
    perform: (effect) => perform(effect),
    onFatal: (error) => {
      stop();
      for (const cell of passivation.cells()) cell.abandon('JournalUnavailable');
      options.onFatal(error);
    },
  });
  const passivation: Passivation = new Passivation(kinds, {
    journal,
    clock,
    liveActorsMax: limits.liveActorsMax,
    onLoaded: cluster === undefined ? undefined : (cell) => turns.takeOver(cell),
    snapshot: (cell) => writeSnapshot(cell, turns, commit),
  });
  const nextCommandId = commandIds(context.ids.next(clock()));
  const deliveries: Deliveries = new Deliveries({
    journal,
    context,
    limits,
    commit,
    passivation,
    supervision,
    mailboxes: () => mailboxes,
    timers: () => timers,
    turns: () => turns,
    nextCommandId,
    admits: () => cluster?.admits !== false,
  });
  const owns = cluster === undefined ? undefined : (kind: string, id: string) => cluster.owns(kind, id);
  const hasCapacity = () => !commit.failed && commit.backlog < 2 * limits.groupCommandsMax;
  const { deliver } = deliveries;
  const mailboxes: Mailboxes = new Mailboxes({ journal, schedule, deliver, hasCapacity, owns });
  const due = (row: TimerRow) => mailboxes.timer(row);
  const timers: Timers = new Timers({ journal, schedule, clock, due, cluster });
  const gatedTurns = cluster && new GatedTurns((position) => cluster.isReached(position), cluster.position);
  const turns: Turns = new Turns({
    journal,
    context,
    limits,
    ports,
    commit,
    claims,
    supervision,
    mailboxes,
    onEntryFailed: deliveries.failed,
    passivation,
    cluster,
    gatedTurns,
  });
  const stopSweep = sweepEvery(limits.sweepMs, schedule, passivation);
  const stop = () => {
    mailboxes.stop();
    timers.stop();
    stopSweep();
  };
  if (versions !== undefined) writeValue(journal, commit, KIND_VERSIONS_KEY, versions);
  mailboxes.start();
  timers.start();
  const parts = { context, commit, claims, supervision, passivation, mailboxes, timers, turns, deliveries };
  const perform = performerOf(handlersOf(parts));
  const follower = followerOf({ ...parts, journal, cluster, gatedTurns });
  return { ...parts, count: { pending: 0 }, nextCommandId, stop, cluster, follower };
}

type Performers = Pick<Wiring, 'claims' | 'deliveries' | 'mailboxes' | 'passivation' | 'timers' | 'turns'>;

function handlersOf(parts: Performers): EffectHandlers {
  const { claims, deliveries, mailboxes, passivation, timers, turns } = parts;
  return {
    message: ({ row }) => mailboxes.mail(row),
    timer: ({ dueMs }) => timers.stored(dueMs),
    release: ({ index, key, owner }) => claims.released(index, key, owner),
    done: ({ entry }) => deliveries.done(entry),
    notify: (effect) => turns.notify(effect),
    call: (effect) => turns.call(effect),
    passivate: ({ cell, lastUsedMs }) => passivation.snapshotStored(cell, lastUsedMs),
  };
}

type OfCluster = 'cluster' | 'gatedTurns';

function followerOf({
  cluster,
  gatedTurns,
  ...deps
}: Omit<FollowerDeps, OfCluster> & { [K in OfCluster]: FollowerDeps[K] | undefined }): Follower | undefined {
  if (cluster === undefined || gatedTurns === undefined) return undefined;
  const follower = new Follower({ ...deps, cluster, gatedTurns });
  cluster.follow(follower);
  return follower;
}

function writeSnapshot(cell: Cell, turns: Turns, commit: GroupCommit): void {
  if (turns.snapshot(cell)) commit.wrote(1, 0);
  const { gate, lastUsedMs } = cell;
  if (gate !== undefined) commit.after(gate, { type: 'passivate', cell, lastUsedMs });
}

function contextOf(options: WiringOptions, commit: () => GroupCommit): RuntimeContext {
  const { clock, randomBytes, settings, journal, node, cluster } = options;
  const reserve = (floor: bigint) => writeValue(journal, commit(), floorKey(node), floor);
  const ids = new IdGenerator(storedFloor(journal, node), reserve, node, cluster?.newestIds);
  return { clock, randomBytes, settings, ids, hasPeers: cluster !== undefined };
}

function writeValue(journal: Journal, commit: GroupCommit, key: string, value: unknown): void {
  commit.add(ofNoActor([{ op: 'meta', key, row: journal.pack(value) }]));
  commit.wrote(0, 0);
}

/** Unique over restarts: every run has a first id of its own. */
function commandIds(boot: bigint): () => string {
  const prefix = boot.toString(36);
  let commands = 0;
  return () => {
    commands += 1;
    return `${prefix}.${commands.toString(36)}`;
  };
}

function sweepEvery(sweepMs: number, schedule: Schedule, passivation: Passivation): () => void {
  let stopped = false;
  let cancel = () => {};
  const sweep = () => {
    if (stopped) return;
    if (passivation.sweep(SWEEP_ACTORS)) schedule.immediate(sweep);
    else cancel = schedule.timer(sweepMs, sweep);
  };
  cancel = schedule.timer(sweepMs, sweep);
  return () => {
    stopped = true;
    cancel();
  };
}

/** Refuses to start over rows that are newer than the code; the versions to write, when they changed. */
function checkVersions(kinds: readonly AnyKind[], journal: Journal): Record<string, number> | undefined {
  const stored = (journal.meta(KIND_VERSIONS_KEY) ?? {}) as Record<string, number>;
  const versions = { ...stored };
  const newer: string[] = [];
  for (const { kind, version } of kinds) {
    const present = stored[kind] ?? 0;
    if (present > version) newer.push(`${kind} (journal ${present}, this version ${version})`);
    versions[kind] = version;
  }
  if (newer.length > 0) {
    throw new JournalTooNew(`the journal was written by a newer version: ${newer.join(', ')}`);
  }
  return kinds.some(({ kind, version }) => stored[kind] !== version) ? versions : undefined;
}
