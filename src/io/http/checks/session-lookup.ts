/** Finds the session of a token: hash, index, and one synchronous call of the user actor. */

import { parseSessionOwner, type SessionOwner, sessionIndex } from '../../../actors/accounts/owners.ts';
import { user } from '../../../actors/accounts/user.ts';
import type {
  AccountCounts,
  AuthenticateSession,
  CheckSession,
} from '../../../actors/accounts/user-session-check.ts';
import {
  type AppIndexEntry,
  isGrantValid,
  isSessionValid,
  parseIndexEntry,
} from '../../../actors/apps/app-access-index.ts';
import type { ActorSystem } from '../../../actors/runtime/actor.ts';
import { GatewayError } from '../../../domain/errors.ts';
import { hashToken } from '../../../domain/ids.ts';
import type { Role } from '../../../domain/roles.ts';
import type { SessionContext, SessionKind } from '../../../domain/sessions.ts';
import type { Clock } from '../../../domain/time.ts';
import type { SessionLookup, SessionTerms } from '../table/route.ts';

/**
 * Cached owners of the sessions of one kind; reading the index costs more than the rest of the lookup. Twice the number
 * of live accounts, because a full cache is cleared as a whole.
 */
const OWNERS_CACHED_MAX = 200_000;

const NO_TERMS: SessionTerms = {};

interface SessionLookupOptions {
  readonly actors: ActorSystem;
  readonly clock: Clock;
  /** base64url keys whose holders are admins. */
  readonly adminPublicKeys: ReadonlySet<string>;
  /** Roles of accounts; absent: none. */
  readonly staff?: { roleOf(userId: string): Role | undefined } | undefined;
  /** Other nodes of a cluster count too. */
  readonly shared?: AccountCounts | undefined;
  /** Called when a last use could not be written; the session stays valid, and the next use retries in a minute. */
  readonly onTouchFailed: (error: unknown) => void;
}

/** The index entry of an application; undefined when there is none. */
export function indexEntryOf(actors: ActorSystem, appId: string): AppIndexEntry | undefined {
  const value = actors.lookup('appId', appId);
  return value === undefined ? undefined : parseIndexEntry(value);
}

/** A session for an application ends when that forbids it, before its own account is notified. */
function isAllowedByApp(actors: ActorSystem, session: SessionContext): boolean {
  const { grant, appId } = session;
  if (grant !== undefined) return isGrantValid(indexEntryOf(actors, grant.appId), grant);
  return appId === null || isSessionValid(indexEntryOf(actors, appId), session, session);
}

/**
 * Is a browser session still live? For work that outlasts a request. True if the account cannot be asked now (quarantined,
 * overloaded): the end of a session is also announced, and the check repeats.
 */
export function isSessionAlive(actors: ActorSystem, userId: string, sessionId: string): boolean {
  try {
    return actors.now(user, userId, { type: 'checkSession', sessionId } satisfies CheckSession);
  } catch (error) {
    if (error instanceof GatewayError) return true;
    throw error;
  }
}

/** The owner in the index of a token's session, live or ended. */
export function ownerOf(actors: ActorSystem, kind: SessionKind, token: string): SessionOwner | undefined {
  const hash = hashToken(token);
  return hash === undefined ? undefined : readOwner(actors, kind, hash);
}

function readOwner(actors: ActorSystem, kind: SessionKind, hash: string): SessionOwner | undefined {
  const found = actors.lookup(sessionIndex(kind), hash);
  return found === undefined ? undefined : parseSessionOwner(found);
}

export function createSessionLookup(options: SessionLookupOptions): SessionLookup {
  const { actors, clock, adminPublicKeys, onTouchFailed, staff, shared } = options;
  // A session never changes its owner, and the owner checks it every time: an entry cannot be stale.
  const owners: Record<SessionKind, Map<string, SessionOwner>> = {
    browser: new Map(),
    mcp: new Map(),
    contactSync: new Map(),
  };
  return {
    authenticate(token, kind, charge, _client, { audience = null, username } = NO_TERMS) {
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
        role: staff?.roleOf(userId),
        charge,
        audience,
        username,
        shared,
      };
      const authenticated = actors.now(user, userId, command);
      if (authenticated === undefined || !isAllowedByApp(actors, authenticated.session)) {
        known.delete(hash);
        return undefined;
      }
      if (!known.has(hash)) {
        if (known.size >= OWNERS_CACHED_MAX) known.clear();
        // The account holds these texts anyway; those from the index would be copies.
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
