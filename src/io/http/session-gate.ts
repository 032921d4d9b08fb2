/** The way from a token to its session: hash, index, and one synchronous call of the user actor. */
import { parseSessionOwner, type SessionOwner, sessionIndex } from '../../actors/owners.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { user } from '../../actors/user.ts';
import type { EnteredSession, EnterSession } from '../../actors/user-entry.ts';
import { hashToken } from '../../domain/ids.ts';
import type { SessionKind } from '../../domain/sessions.ts';
import type { Clock } from '../../domain/time.ts';
import type { SessionGate } from './route.ts';

export interface SessionGateOptions {
  readonly actors: ActorSystem;
  readonly clock: Clock;
  /** base64url keys whose holders are admins. */
  readonly adminPublicKeys: ReadonlySet<string>;
  /** Told when a last use could not be written; the session goes on, and the next use tries again in a minute. */
  readonly onTouchFailed: (error: unknown) => void;
}

/** Who owns the session of this token; undefined when there is none. Says nothing about whether it still lives. */
export function ownerOfToken(
  actors: ActorSystem,
  token: string,
  kind: SessionKind,
): SessionOwner | undefined {
  const hash = hashToken(token);
  const owner = hash === undefined ? undefined : actors.lookup(sessionIndex(kind), hash);
  return owner === undefined ? undefined : parseSessionOwner(owner);
}

export function createSessionGate(options: SessionGateOptions): SessionGate {
  const { actors, clock, adminPublicKeys, onTouchFailed } = options;
  return {
    enter(token, kind, charge) {
      const hash = hashToken(token);
      const owner = hash === undefined ? undefined : actors.lookup(sessionIndex(kind), hash);
      if (hash === undefined || owner === undefined) return undefined;
      const { userId, sessionId } = parseSessionOwner(owner);
      const command: EnterSession = {
        type: 'enterSession',
        sessionId,
        kind,
        hash,
        adminPublicKeys,
        ...(charge === undefined ? {} : { charge }),
      };
      const entered = actors.now<EnteredSession | undefined>(user, userId, command);
      if (entered?.touch) {
        actors
          .ask(user, userId, { type: 'touchSession', sessionId, seenMs: clock() })
          .catch((error: unknown) => onTouchFailed(error));
      }
      return entered;
    },
  };
}
