/** The way from a token to its session: hash, index, and one synchronous call of the user actor. */

import { parseSessionOwner, type SessionOwner, sessionIndex } from '../../actors/accounts/owners.ts';
import { user } from '../../actors/accounts/user.ts';
import type { AuthenticateSession, CheckSession } from '../../actors/accounts/user-session-check.ts';
import { type AppIndexEntry, isSessionValid, parseIndexEntry } from '../../actors/apps/app-access-index.ts';
import type { ActorSystem } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { hashToken } from '../../domain/ids.ts';
import type { Role } from '../../domain/roles.ts';
import type { SessionContext, SessionKind } from '../../domain/sessions.ts';
import type { Clock } from '../../domain/time.ts';
import type { SessionLookup } from './route.ts';

/**
 * Owners of sessions of one kind that are held beside the index: reading that costs more than the rest of an entry.
 * Twice as many as live accounts may be: sessions in turn, one more than fit, would find none of them here.
 */
const OWNERS_CACHED_MAX = 200_000;

interface SessionLookupOptions {
  readonly actors: ActorSystem;
  readonly clock: Clock;
  /** base64url keys whose holders are admins. */
  readonly adminPublicKeys: ReadonlySet<string>;
  /** Roles that accounts were given; none unless told. */
  readonly roleOf?: (userId: string) => Role | undefined;
  /** Told when a last use could not be written; the session goes on, and the next use tries again in a minute. */
  readonly onTouchFailed: (error: unknown) => void;
}

/** What the index says of an application now; undefined when there is none. */
export function indexEntryOf(actors: ActorSystem, appId: string): AppIndexEntry | undefined {
  const value = actors.lookup('appId', appId);
  return value === undefined ? undefined : parseIndexEntry(value);
}

/** An McpApp session ends with what its application allows, before its own account has heard of it (auth.md A5). */
function isAllowedByApp(actors: ActorSystem, session: SessionContext): boolean {
  return session.appId === null || isSessionValid(indexEntryOf(actors, session.appId), session, session.id);
}

/**
 * Does a browser session still live? For what outlasts a request. An account that cannot be asked now (quarantined,
 * overloaded) is taken to have it: the end of a session is announced besides, and the question comes again.
 */
export function isSessionAlive(actors: ActorSystem, userId: string, sessionId: string): boolean {
  try {
    return actors.now(user, userId, { type: 'checkSession', sessionId } satisfies CheckSession);
  } catch (error) {
    if (error instanceof GatewayError) return true;
    throw error;
  }
}

/** What the index says of the owner of the session that a token opens, live or over. */
export function ownerOf(actors: ActorSystem, kind: SessionKind, token: string): SessionOwner | undefined {
  const hash = hashToken(token);
  return hash === undefined ? undefined : readOwner(actors, kind, hash);
}

function readOwner(actors: ActorSystem, kind: SessionKind, hash: string): SessionOwner | undefined {
  const found = actors.lookup(sessionIndex(kind), hash);
  return found === undefined ? undefined : parseSessionOwner(found);
}

export function createSessionLookup(options: SessionLookupOptions): SessionLookup {
  const { actors, clock, adminPublicKeys, onTouchFailed, roleOf } = options;
  // A session never changes its owner, and the owner is asked every time whether it lives: nothing here can be stale.
  const owners = { browser: new Map<string, SessionOwner>(), mcp: new Map<string, SessionOwner>() };
  return {
    authenticate(token, kind, charge) {
      const hash = hashToken(token);
      if (hash === undefined) return undefined;
      const known = owners[kind];
      const owner = known.get(hash) ?? readOwner(actors, kind, hash);
      if (owner === undefined) return undefined;
      const { userId, sessionId } = owner;
      const command: AuthenticateSession = {
        type: 'enterSession',
        sessionId,
        kind,
        hash,
        adminPublicKeys,
        role: roleOf?.(userId),
        charge,
      };
      const authenticated = actors.now(user, userId, command);
      if (authenticated === undefined || !isAllowedByApp(actors, authenticated.session)) {
        known.delete(hash);
        return undefined;
      }
      if (!known.has(hash)) {
        if (known.size >= OWNERS_CACHED_MAX) known.clear();
        // Texts that the account holds anyway: those read from the index are copies.
        const { session } = authenticated;
        known.set(authenticated.hash, { userId: session.userId, sessionId: session.id });
      }
      if (authenticated.touch) {
        actors
          .ask(user, userId, { type: 'touchSession', sessionId, seenMs: clock() })
          .catch((error: unknown) => onTouchFailed(error));
      }
      return authenticated;
    },
  };
}
