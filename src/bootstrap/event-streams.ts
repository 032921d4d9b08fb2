/** Puts the event streams of the browsers together: the log they read, the sessions they hang on. */
import { parseSessionOwner, sessionIndex } from '../actors/accounts/owners.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { RunningSystem } from '../actors/runtime/system.ts';
import type { EventLog } from '../domain/events/events.ts';
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import { isSessionAlive } from '../io/http/session-lookup.ts';
import { StreamHub } from '../io/sse/hub.ts';

/** Streams live until `drain`, which the actors have to outlive. */
export function startEventStreams(
  actors: RunningSystem,
  settings: SettingsReader,
  bounds: SharedBounds,
  log: EventLog,
): StreamHub {
  const hub = new StreamHub({
    log,
    settings,
    bounds,
    clock: Date.now,
    schedule: nodeSchedule,
    random: Math.random,
    isSessionValid: ({ userId, sessionId }) => isSessionAlive(actors, userId, sessionId),
  });
  // However a session ends (logout, close_sessions, a block, a key that goes, its time), the name of its token is given
  // up in the same commit: its streams end before anybody hears that it did.
  actors.onRelease(sessionIndex('browser'), (_hash, owner) =>
    hub.sessionEnded(parseSessionOwner(owner).sessionId),
  );
  return hub;
}
