/** Opens the journal, and starts the actor system over it with its ports. */
import { setTimeout as wait } from 'node:timers/promises';
import { settings as settingsKind } from '../actors/admin/settings.ts';
import type { GatewayActors } from '../actors/gateway-actors.ts';
import { KINDS } from '../actors/kinds.ts';
import type { LimitExchange } from '../actors/limits/limit-exchange.ts';
import type { DiskJournal } from '../actors/runtime/journal/lmdb.ts';
import type { Ownership } from '../actors/runtime/ownership.ts';
import type { Ports } from '../actors/runtime/ports.ts';
import { randomSupply } from '../actors/runtime/random.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import { createActorSystem, type RunningSystem } from '../actors/runtime/system.ts';
import { auditRowsMax, isNodeRing } from '../domain/audit.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { GatewayError } from '../domain/errors.ts';
import type { LiveSettings, SettingsReader } from '../domain/settings/settings.ts';
import { settingsReload } from '../io/admin/settings.ts';
import { bootId, markOpen } from '../io/cluster/node-folder.ts';
import { DatabaseRefusals } from '../io/cluster/node-watch.ts';
import type { Head } from '../io/cluster/pg-schema.ts';
import type { Log } from '../io/observability/log.ts';
import type { Metrics } from '../io/observability/metrics.ts';
import type { OpenedCluster } from './cluster/open.ts';
import { openStorage } from './journal.ts';
import type { AssemblyOptions } from './options.ts';

/** The file of the journal grows in steps of zeros, so that a full disk is found before a commit needs the space. */
const JOURNAL_STEP_BYTES = 64 * 1024 * 1024;
/** A step of a start is tried so long, and so often. */
const SERVED_MS = 10_000;
const SERVED_RETRY_MS = 50;

interface OpenedJournal {
  readonly journal: DiskJournal;
  /** Position and digest of a cluster's log. */
  readonly head: Head | undefined;
  readonly refusals: DatabaseRefusals;
}

/** Throws `JournalUnusable`, `JournalTooNew`; with a cluster also `ClusterUnusable` and `ClusterMisconfigured`. */
export async function openActorJournal(
  { cluster, dataPath }: Configuration,
  settings: SettingsReader,
  { log, onFatal, onProgress }: Pick<AssemblyOptions, 'log' | 'onFatal' | 'onProgress'>,
): Promise<OpenedJournal> {
  let head: Head | undefined;
  const refusals = new DatabaseRefusals({ log, monotonicMs: () => performance.now() });
  if (cluster !== undefined) {
    const { prepareReplica } = await import('./cluster/replica.ts');
    head = await prepareReplica(cluster, dataPath, { log, refusals });
    markOpen(dataPath, bootId());
  }
  const journal = await openStorage({
    directory: dataPath,
    // The log has the truth (docs/decisions/0245).
    unsynced: head !== undefined,
    // Records that all nodes have are bounded by rows of the log (docs/decisions/0096).
    auditRowsMax: (ring) =>
      head !== undefined && !isNodeRing(ring) ? Number.POSITIVE_INFINITY : auditRowsMax(settings, ring),
    stepBytes: JOURNAL_STEP_BYTES,
    onShortage(error) {
      if (error === undefined) log.write('diskRecovered');
      else log.write('diskFull', { err: error });
    },
    onDamage({ table, key, message }) {
      log.write('journalDamaged', { table, key, detail: message });
    },
    onBroken: onFatal,
    onRow: onProgress,
  });
  journal.walk((counted) => log.write('journalRead', counted));
  return { journal, head, refusals };
}

interface ActorDeps {
  readonly journal: DiskJournal;
  /** The place in a cluster; its journal is used instead. */
  readonly cluster: OpenedCluster | undefined;
  readonly ports: Ports;
  readonly settings: LiveSettings;
  readonly log: Log;
  readonly onFatal: (error: Error) => void;
  readonly ownership: Ownership;
}

interface EnterDeps {
  readonly opened: OpenedJournal;
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly metrics: Pick<Metrics, 'observeNode'>;
  readonly exchange: LimitExchange | undefined;
}

/**
 * Runs a step of a start that asks actors. A busy start may lose its lease for a moment, and owners may have no link to a
 * new node yet: a step that is refused so is tried again. Rejects as the step does.
 */
export async function untilServed<T>(step: () => Promise<T>): Promise<T> {
  const endMs = performance.now() + SERVED_MS;
  for (;;) {
    try {
      return await step();
    } catch (error) {
      const isPassing = error instanceof GatewayError && error.retryAfterSeconds === 1;
      if (!isPassing || performance.now() > endMs) throw error;
    }
    await wait(SERVED_RETRY_MS);
  }
}

/** Enters the cluster that the configuration names; the client of PostgreSQL is loaded for that alone. */
export async function enterCluster(
  { opened, metrics, exchange, ...deps }: EnterDeps,
  options: AssemblyOptions,
): Promise<OpenedCluster | undefined> {
  const { cluster } = deps.configuration;
  const { journal, head, refusals } = opened;
  if (cluster === undefined || head === undefined || exchange === undefined) return undefined;
  const { openCluster } = await import('./cluster/open.ts');
  return openCluster(cluster, {
    ...options,
    ...deps,
    journal,
    head,
    refusals,
    exchange,
    observer: metrics.observeNode,
  });
}

/**
 * Messages and timers of an earlier run are delivered from the next event-loop tick on: the ports answer by then, although
 * later parts of the gateway are still opening. `local`: the system of this node; `actors` asks the owners. Throws
 * `JournalTooNew`.
 */
export function startActors({ journal, cluster, ports, settings, log, onFatal, ownership }: ActorDeps): {
  readonly local: RunningSystem;
  readonly actors: GatewayActors;
} {
  const place =
    cluster === undefined
      ? { journal }
      : {
          journal: cluster.journal,
          cluster: cluster.view,
          node: cluster.node.node,
          callAudit: cluster.audit.calls,
        };
  const local = createActorSystem({
    kinds: KINDS,
    ...place,
    ports,
    settings,
    clock: Date.now,
    randomBytes: randomSupply(),
    schedule: nodeSchedule,
    // A node that gives up its place writes nothing more, and that ends nothing.
    onFatal: (error) => (cluster?.node.isLeaving === true ? undefined : onFatal(error)),
    ownership,
    onBug: ({ error, ...report }) => log.write('actorFailed', { ...report, err: error }),
  });
  followSettings(local, settings);
  return { local, actors: cluster?.serve(local) ?? local };
}

/** Takes over the stored settings now, and whenever a node of the cluster changes one. */
function followSettings(local: RunningSystem, live: LiveSettings): void {
  const reload = settingsReload(local, live);
  local.onApplied(settingsKind, reload);
  reload();
}
