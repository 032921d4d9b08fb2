/** Opens the place of this process in a cluster: the log, the links to other nodes, and the replica over the journal. */
import { randomBytes, randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { app } from '../../actors/apps/app.ts';
import { Departure } from '../../actors/departure.ts';
import { type GatewayActors, routedActors } from '../../actors/gateway-actors.ts';
import { KINDS } from '../../actors/kinds.ts';
import type { LimitExchange } from '../../actors/limits/limit-exchange.ts';
import { atOwner, createRoutedSystem, ownerUnavailable, type Routing } from '../../actors/routed-system.ts';
import type { DiskJournal } from '../../actors/runtime/journal/lmdb.ts';
import { NotOwner } from '../../actors/runtime/not-owner.ts';
import { type ClusterNode, createClusterNode } from '../../actors/runtime/replication/cluster-node.ts';
import type { PeerListener } from '../../actors/runtime/replication/port.ts';
import { nodeSchedule } from '../../actors/runtime/runtime-context.ts';
import type { RunningSystem } from '../../actors/runtime/system.ts';
import { agreementOf } from '../../domain/config/agreement.ts';
import type { ClusterConfiguration, Configuration } from '../../domain/config/configuration.ts';
import { type HostPort, parseHostPort } from '../../domain/host-port.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { createNodeLinks } from '../../io/admin/node-links.ts';
import { NODE_VERBS, type NodeWork, nodeVerbs } from '../../io/admin/node-work.ts';
import { AdminNodes } from '../../io/admin/nodes.ts';
import { ACTOR_VERBS, actorVerbs, RemoteActors } from '../../io/cluster/actor-calls.ts';
import { AUDIT_VERBS, type ClusterAudit, openClusterAudit } from '../../io/cluster/audit.ts';
import { linkKeys } from '../../io/cluster/handshake.ts';
import { createLinkLog } from '../../io/cluster/link-log.ts';
import { type ClusterFacts, clusterFacts, clusterReadings } from '../../io/cluster/node-facts.ts';
import type { NodeDescription } from '../../io/cluster/node-table.ts';
import { type DatabaseRefusals, NodeWatch } from '../../io/cluster/node-watch.ts';
import { PeerLinks } from '../../io/cluster/peers.ts';
import { PgLog } from '../../io/cluster/pg-log.ts';
import type { Head } from '../../io/cluster/pg-schema.ts';
import type { Verbs } from '../../io/cluster/rpc.ts';
import type { Transport } from '../../io/cluster/transport.ts';
import { LIMIT_VERBS } from '../../io/limits/limit-links.ts';
import { MCP_VERBS, NodeSignals } from '../../io/mcp/node-signals.ts';
import type { ClusterReadings } from '../../io/observability/cluster-metrics.ts';
import type { Log } from '../../io/observability/log.ts';
import type { NodeDurations } from '../../io/observability/metrics.ts';
import {
  type AtDeliverer,
  WEBHOOK_VERBS,
  type WebhookOwnerWork,
  webhookVerbs,
} from '../../io/webhooks/owner-work.ts';
import { secretsOf } from './commands.ts';
import { folderOf, type SharedFolder } from './folder.ts';
import { linkLimits } from './limits.ts';
import { followNodes, type KnownNodes, NOTHING_READ, openLinks, reportOf } from './nodes.ts';
import { OwnedWork } from './owned-work.ts';
import { replicaFailures, startUpkeep } from './replica.ts';

/** Bound of what the rows of a process are numbered from; the largest that Node draws is 2^48. */
const FIRST_SEQ_MAX = 2 ** 47;
const monotonicMs = () => performance.now();
/** Longest wait for a row that another node has applied. */
const FOLLOW_MS = 5_000;

export interface OpenedCluster extends ClusterNode, SharedFolder {
  readonly links: PeerLinks;
  readonly pgLog: PgLog;
  readonly leaseMs: number;
  readonly audit: ClusterAudit;
  /** Events and webhooks: what this node does of them, and when that changes. */
  readonly work: OwnedWork;
  /** Other nodes are answered from now on. Returns the system that asks the owner of an actor. */
  serve(local: RunningSystem): GatewayActors;
  /** Opens links to the other nodes and joins. Resolves when this node admits. */
  join(): Promise<void>;
  /** Other nodes may cancel calls and end sessions of /mcp here from now on. */
  mcpSignals(): NodeSignals;
  /** Other nodes may ask for the work from now on. Returns the nodes as the panel reaches them. */
  adminNodes(work: NodeWork): AdminNodes;
  /** Other nodes may ask for the work from now on. Returns how an operation gets to the node that delivers. */
  webhookOwners(work: WebhookOwnerWork): AtDeliverer;
  facts(): ClusterFacts;
  readings(): ClusterReadings;
  /** A reload has applied this configuration: other nodes compare theirs with it. */
  reloaded(configuration: Configuration): void;
  /** Reports no health from now on, and serves. */
  announceLeave(): void;
  /** Gives up the place of this node, after its own writes. Resolves when its calls go to the new owners. */
  leave(local: Pick<RunningSystem, 'drain'>): Promise<void>;
  close(): Promise<void>;
}

interface ClusterOptions {
  readonly configuration: Configuration;
  readonly version: string;
  readonly journal: DiskJournal;
  readonly settings: SettingsReader;
  /** Position and digest of the log, as the start has found it. */
  readonly head: Head;
  readonly refusals: DatabaseRefusals;
  readonly exchange: LimitExchange;
  readonly log: Log;
  readonly observer: NodeDurations | undefined;
  readonly onFatal: (error: Error) => void;
}

/** Parts that exist once the node has entered; before that it has no links and answers nothing. */
interface Holder {
  parts: ClusterNode | undefined;
  known: KnownNodes | undefined;
  listener: PeerListener | undefined;
  verbs: Verbs | undefined;
  readonly departure: Departure;
  /** Another node has opened a link to this one. */
  onLink(): void;
  /** Resolves with `open`: its actors answer. Others send it calls as soon as its join is applied at their node. */
  readonly served: Promise<void>;
  open(): void;
}

function createHolder(): Holder {
  let open = (): void => undefined;
  const served = new Promise<void>((resolve) => {
    open = resolve;
  });
  const departure = new Departure(nodeSchedule);
  const onLink = (): void => undefined;
  const known = undefined;
  return { parts: undefined, known, listener: undefined, verbs: undefined, departure, onLink, served, open };
}

/** Resolves when the node has entered and caught up; it owns nothing before `join`. Rejects with `ClusterUnusable`, `ClusterMisconfigured`, `LogLost`, `NameTaken`. */
export async function openCluster(
  cluster: ClusterConfiguration,
  options: ClusterOptions,
): Promise<OpenedCluster> {
  const { configuration, version, journal, settings, log, observer, refusals, exchange } = options;
  const holder = createHolder();
  const links = createLinks(cluster, holder, options);
  const address = await listenForNodes(links, cluster);
  const { name, leaseMilliseconds: leaseMs } = cluster;
  const self = { address, version, configHash: agreementOf(configuration) };
  const secrets = secretsOf(cluster);
  const { dataPath } = configuration;
  const { onFatal, onBug } = replicaFailures(dataPath, options);
  const pgLog = createPgLog(cluster, { ...options, holder, links, self, secrets });
  const parts = createClusterNode({
    store: journal,
    log: pgLog,
    peers: (listener) => {
      holder.listener = listener;
      return links;
    },
    schedule: nodeSchedule,
    clock: Date.now,
    monotonicMs,
    leaseMs,
    name,
    ...(observer === undefined ? {} : { observer }),
    firstSeq: randomInt(FIRST_SEQ_MAX),
    ...{ onFatal, onBug },
  });
  holder.parts = parts;
  const watch = new NodeWatch({ name, configHash: () => self.configHash, log, monotonicMs });
  const work = new OwnedWork(parts.view);
  const limits = linkLimits(exchange, { ...parts, links });
  const own = { links, pgLog, watch, refusals, exchange, limits, work, name, leaseMs };
  const known: KnownNodes = { ...parts, ...NOTHING_READ, ...own };
  holder.known = known;
  const follower = followNodes(known);
  holder.onLink = () => follower.readNow();
  await parts.node.enter();
  const audit = openClusterAudit(cluster, { parts, pgLog, links, journal, settings, secrets, log });
  const trimAudit = () => audit.trim();
  const endUpkeep = startUpkeep(cluster, parts, { journal, dataPath, log, onFatal, trimAudit });
  return {
    ...parts,
    ...{ links, pgLog, leaseMs, audit, work },
    ...folderOf(known, log),
    serve: (local) => serve(local, known, holder, audit),
    async join() {
      await openLinks(known);
      await parts.node.start();
      known.isStarted = true;
    },
    mcpSignals() {
      const signals = new NodeSignals(links.callAll);
      holder.verbs = { ...holder.verbs, ...signals.verbs };
      return signals;
    },
    adminNodes: (work) => openAdminNodes(work, known, holder),
    webhookOwners: (work) => openWebhookOwners(work, known, holder),
    facts: () => clusterFacts(known),
    readings: () => clusterReadings(known),
    reloaded(now) {
      const { mcpTools, mcpResources, mcpProfiles } = now;
      self.configHash = agreementOf({ ...configuration, mcpTools, mcpResources, mcpProfiles });
    },
    announceLeave: () => holder.departure.announce(),
    leave: (local) => holder.departure.leave(local, () => parts.node.leave()),
    async close() {
      follower.stop();
      limits.stop();
      known.proof?.close();
      await endUpkeep();
      parts.node.stop();
      await parts.replica.settled();
      await links.close();
      pgLog.close();
    },
  };
}

interface PgLogParts {
  readonly head: Head;
  readonly refusals: DatabaseRefusals;
  readonly holder: Holder;
  readonly links: PeerLinks;
  readonly self: NodeDescription;
  readonly secrets: readonly Uint8Array[];
}

function createPgLog(
  { url, leaseMilliseconds }: ClusterConfiguration,
  { head, refusals, holder, links, self, secrets }: PgLogParts,
): PgLog {
  const options = {
    url,
    secrets,
    monotonicMs,
    wait,
    onRefused: refusals.add,
    leaseMs: leaseMilliseconds,
    process: self,
    applied: () => holder.parts?.replica,
    figures() {
      const { refused, thrown } = holder.parts?.replica.turnsRefused ?? { refused: 0, thrown: 0 };
      const marker = holder.known?.proof?.marker ?? null;
      return { links: links.linked.outgoing.length, turnsRefused: refused, turnsThrown: thrown, marker };
    },
  };
  return new PgLog(options, head);
}

function createLinks(
  cluster: ClusterConfiguration,
  holder: Holder,
  { version, head, log, exchange }: Pick<ClusterOptions, 'version' | 'head' | 'log' | 'exchange'>,
): PeerLinks {
  const verb =
    (name: string) =>
    (...args: readonly unknown[]): unknown => {
      const answer = holder.verbs?.[name];
      if (answer !== undefined) return answer(...args);
      if (holder.verbs !== undefined) throw ownerUnavailable();
      return holder.served.then(() => verb(name)(...args));
    };
  const held: (verb: Verbs[string]) => Verbs[string] =
    (verb) =>
    (...args) =>
      holder.departure.hold(() => verb(...args));
  const linkLog = createLinkLog({ log, clock: Date.now });
  return new PeerLinks({
    self: () => ({
      node: holder.parts?.node.node ?? 0,
      incarnation: holder.parts?.node.incarnation ?? 0,
      logId: head.logId,
      version,
    }),
    keys: linkKeys(cluster.secret),
    randomBytes,
    random: Math.random,
    schedule: nodeSchedule,
    transport: { tls: readTls(cluster.tls), plain: cluster.plain },
    listener: {
      onPush: (row) => holder.listener?.onPush(row),
      onApplied: (node, position) => holder.listener?.onApplied(node, position),
    },
    verbs: Object.fromEntries([
      ...[...ACTOR_VERBS, ...WEBHOOK_VERBS].map((name) => [name, held(verb(name))] as const),
      ...[...NODE_VERBS, ...MCP_VERBS, ...AUDIT_VERBS, ...LIMIT_VERBS].map(
        (name) => [name, verb(name)] as const,
      ),
    ]),
    position: () => holder.parts?.replica.position ?? 0,
    observer: {
      ...linkLog,
      onOpened(peer, outgoing) {
        linkLog.onOpened(peer, outgoing);
        if (outgoing) exchange.repeat();
        else holder.onLink();
      },
    },
  });
}

/** The files are checked before a start (`checkTls`). A new certificate takes a restart. */
function readTls(files: ClusterConfiguration['tls']): Transport['tls'] {
  if (files === undefined) return undefined;
  const read = (path: string) => readFileSync(path, 'utf8');
  return { cert: read(files.cert), key: read(files.key), ca: read(files.ca) };
}

/** Listens for other nodes. Resolves with the configured address, or else with that of the listener. */
async function listenForNodes(
  links: PeerLinks,
  { listen, advertise }: ClusterConfiguration,
): Promise<string> {
  const wanted = addressOf(listen);
  const port = await links.listen(wanted);
  return advertise ?? (wanted.host.includes(':') ? `[${wanted.host}]:${port}` : `${wanted.host}:${port}`);
}

/** A configuration that was loaded has no other form. */
function addressOf(text: string): HostPort {
  const address = parseHostPort(text);
  if (address === undefined) throw new TypeError(`${text} is no host and port`);
  return address;
}

function serve(local: RunningSystem, known: KnownNodes, holder: Holder, audit: ClusterAudit): GatewayActors {
  const { view, links, replica, limits, work } = known;
  work.followMembers(replica);
  const admit = () => {
    if (!view.admits) throw ownerUnavailable();
  };
  const owns = (kind: string, id: string) => view.owns(kind, id);
  holder.verbs = {
    ...actorVerbs({ local, kinds: KINDS, owns, admit }),
    ...audit.verbs(local.administration),
    ...limits.verbs,
  };
  holder.open();
  const remote = new RemoteActors(links.call);
  const routing = routingOf(known, holder);
  const routed = createRoutedSystem({ local, remote, routing, kinds: KINDS });
  return routedActors(local, routed, () => view.admits && !holder.departure.isAnnounced);
}

function routingOf({ node, replica }: ClusterNode, { departure }: Holder): Routing {
  return {
    node: node.node,
    departure,
    ownerOf: (kind, id) => replica.members.ownerOf(kind, id),
    appliedAtLeast: (position) => withDeadline(replica.appliedAtLeast(position)),
  };
}

function openAdminNodes(work: NodeWork, known: KnownNodes, holder: Holder): AdminNodes {
  const { name, view, replica, links, watch } = known;
  const owns = (kind: string, id: string) => {
    if (!view.admits) throw ownerUnavailable();
    return view.owns(kind, id);
  };
  holder.verbs = { ...holder.verbs, ...nodeVerbs(work, owns) };
  const nodeLinks = createNodeLinks({
    name,
    routing: routingOf(known, holder),
    members: () => replica.members.nodes(),
    nameOf: (node) => watch.nameOf(node),
    report: () => reportOf(known),
    call: links.call,
  });
  return new AdminNodes(work, nodeLinks);
}

function openWebhookOwners(work: WebhookOwnerWork, known: KnownNodes, holder: Holder): AtDeliverer {
  const { view, links } = known;
  const routing = routingOf(known, holder);
  const admit = (appId: string) => {
    if (!view.owns(app.kind, appId)) throw new NotOwner();
    if (!view.admits) throw ownerUnavailable();
  };
  holder.verbs = { ...holder.verbs, ...webhookVerbs(work, admit) };
  return async <Result>(
    verb: string,
    appId: string,
    here: () => Promise<Result>,
    ...args: readonly unknown[]
  ): Promise<Result> => {
    const there = (node: number) => links.call(node, verb, appId, ...args);
    // The node there runs the same program: it has checked what it was given, and sends what `here` gives.
    return (await atOwner(routing, app.kind, appId, { here, there, waits: true })) as Result;
  };
}

/** The command has happened: the caller of a repeat with its key gets the first reply. */
function withDeadline(applied: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = nodeSchedule.timer(FOLLOW_MS, () => reject(ownerUnavailable()));
    applied.then(() => {
      cancel();
      resolve();
    }, reject);
  });
}
