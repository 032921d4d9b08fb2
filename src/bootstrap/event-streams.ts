/** Composes event streams and WebSockets: what they read, and the sessions that they end with. */
import { parseSessionOwner, sessionIndex } from '../actors/accounts/owners.ts';
import type { GatewayActors } from '../actors/gateway-actors.ts';
import type { ClusterView } from '../actors/runtime/cluster-view.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { EventLog } from '../domain/events/events.ts';
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import { isSessionAlive } from '../io/http/checks/session-lookup.ts';
import type { LiveCatalog } from '../io/mcp/catalog.ts';
import { ListChanges } from '../io/mcp/list-changes.ts';
import { WebSockets } from '../io/proxy/web-sockets.ts';
import { type HubOptions, StreamHub } from '../io/sse/hub.ts';

interface LiveConnectionDeps {
  readonly actors: GatewayActors;
  readonly catalog: LiveCatalog;
  readonly settings: SettingsReader;
  readonly bounds: SharedBounds;
  /** Absent outside of a cluster. */
  readonly cluster: { readonly view: Pick<ClusterView, 'admits'> } | undefined;
}

/** Those that live until `drain`, apart from event streams. */
export function openLiveConnections(deps: LiveConnectionDeps): {
  readonly listChanges: ListChanges;
  readonly sockets: WebSockets;
} {
  return { listChanges: openListChanges(deps), sockets: openWebSockets(deps) };
}

/** Streams of MCP clients that are notified of changed lists. */
function openListChanges({ actors, catalog, bounds }: LiveConnectionDeps): ListChanges {
  const listChanges = new ListChanges({
    catalog,
    bounds,
    clock: Date.now,
    schedule: nodeSchedule,
    isSessionAlive: ({ userId, id }) => isSessionAlive(actors, userId, id),
  });
  // The session may be closed at any node of a cluster.
  actors.onRelease(sessionIndex('mcp'), (_hash, owner) =>
    listChanges.sessionEnded(parseSessionOwner(owner).sessionId),
  );
  return listChanges;
}

/** WebSockets to modules. */
function openWebSockets({ actors, settings, bounds, cluster }: LiveConnectionDeps): WebSockets {
  const sockets = new WebSockets({
    settings,
    bounds,
    clock: Date.now,
    schedule: nodeSchedule,
    random: Math.random,
    admits: () => cluster?.view.admits ?? true,
    isSessionValid: ({ userId, id }) => isSessionAlive(actors, userId, id),
  });
  // The session may be closed at any node, for all kinds that may open a socket.
  for (const kind of ['browser', 'mcp', 'contactSync'] as const)
    actors.onRelease(sessionIndex(kind), (_hash, owner) =>
      sockets.sessionEnded(parseSessionOwner(owner).sessionId),
    );
  return sockets;
}

/** Streams live until `drain`, which must resolve before the actors stop. */
export function startEventStreams(
  actors: GatewayActors,
  settings: SettingsReader,
  bounds: SharedBounds,
  log: EventLog,
  node: HubOptions['node'],
): StreamHub {
  const hub = new StreamHub({
    log,
    settings,
    bounds,
    clock: Date.now,
    schedule: nodeSchedule,
    random: Math.random,
    node,
    isSessionValid: ({ userId, sessionId }) => isSessionAlive(actors, userId, sessionId),
  });
  // Every end of a session (logout, close_sessions, block, removal of the key, expiry) releases the index entry of its
  // token in the same commit, so its streams end before any answer tells of the end.
  actors.onRelease(sessionIndex('browser'), (_hash, owner) =>
    hub.sessionEnded(parseSessionOwner(owner).sessionId),
  );
  return hub;
}
