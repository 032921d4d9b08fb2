/** The actor system as the components of the gateway use it: on one machine, or on a node of a cluster. */
import type { ActorSystem } from './runtime/actor.ts';
import type { RunningSystem } from './runtime/system.ts';

/** Calls that stay on this node, of whatever node an actor is. */
type OfThisNode = Pick<
  RunningSystem,
  'administration' | 'onRelease' | 'onApplied' | 'stored' | 'counters' | 'healthy' | 'drain' | 'close'
>;

export interface GatewayActors extends ActorSystem, OfThisNode {}

/** Commands and queries go through `routed`; what belongs to this node is that of `local`. */
export function routedActors(
  local: RunningSystem,
  routed: ActorSystem,
  serves: () => boolean,
): GatewayActors {
  return {
    ask: (kind, id, command, options) => routed.ask(kind, id, command, options),
    now: (kind, id, command) => routed.now(kind, id, command),
    query: (kind, id, query) => routed.query(kind, id, query),
    remembers: (kind, id, idempotencyKey) => routed.remembers(kind, id, idempotencyKey),
    tell: (kind, id, command) => routed.tell(kind, id, command),
    lookup: (index, key) => routed.lookup(index, key),
    count: (index) => routed.count(index),
    exists: (kind, id) => routed.exists(kind, id),
    audit: (record) => routed.audit(record),
    auditRefusal: (record, caller) => routed.auditRefusal(record, caller),
    auditFirst: (record) => routed.auditFirst(record),
    administration: local.administration,
    onRelease: local.onRelease,
    onApplied: (kind, listener) => local.onApplied(kind, listener),
    stored: (kind, id, query) => local.stored(kind, id, query),
    counters: () => local.counters(),
    get healthy() {
      return local.healthy && serves();
    },
    drain: (timeoutMs) => local.drain(timeoutMs),
    close: () => local.close(),
  };
}
