/**
 * Connected hosts of one account (OAuth): consent, the grant that a code opens, rotation of its refresh token, and its end.
 * Codes and refresh tokens are good once; the turn that spends one writes what follows from it.
 */
import { CODE_LIFE_MS, GRANTS_MAX, grantEndMs, withFormer } from '../../domain/oauth/grants.ts';
import { loginTypeFor } from '../../domain/oauth/scopes.ts';
import { FRESH_LOGIN_MS } from '../../domain/sessions.ts';
import { SECOND_MS } from '../../domain/time.ts';
import { type AppIndexEntry, isGrantValid, ticksOf } from '../apps/app-access-index.ts';
import { audited, type Change, merged, type Origin, outcome, type UserOutcome } from '../change.ts';
import { isRefusal, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { challengeUsed, refusedChallenge } from './challenges.ts';
import { findById } from './id-list.ts';
import { hostLogged, type LogEventName } from './login-log.ts';
import { accessOf, connectedAccess, unchangedIndexEntry } from './user-app-access.ts';
import { isActive } from './user-enrollment.ts';
import { endGrants, type Opening, openSession } from './user-sessions.ts';
import type { HostGrant, SessionRecord, UsedChallenge, UserState } from './user-types.ts';

/** Facts about the host that a consent keeps. */
export type ConsentedHost = Pick<
  HostGrant,
  'clientKey' | 'kind' | 'name' | 'host' | 'appId' | 'audience' | 'scopes'
>;

export type GrantCommand =
  /** The person's answer to the question of a host. */
  | {
      readonly type: 'decideConsent';
      readonly sessionId: string;
      readonly challenge: UsedChallenge;
      readonly allow: boolean;
      /** The scopes need a recent login. */
      readonly needsFresh: boolean;
      readonly appId: string;
      readonly origin: Origin;
    }
  /** A code is exchanged. */
  | {
      readonly type: 'openGrant';
      readonly codeId: number;
      readonly endsMs: number;
      readonly host: ConsentedHost;
      /** Session that gave the consent: what ends the session also revokes the consent. */
      readonly sessionId: string;
      readonly keyId: string | null;
      readonly refreshHash: string;
      readonly indexEntry: AppIndexEntry | undefined;
      readonly origin: Origin;
    }
  | {
      readonly type: 'refreshGrant';
      /** Id of the code that opened it. */
      readonly codeId: number;
      readonly clientKey: string;
      readonly presentedHash: string;
      /** Hash of the token that follows from the presented one. */
      readonly nextHash: string;
      /**
       * Hashes of that token and those after it, in their order; a node of a build before version 8 of accounts reads
       * `nextHash` alone.
       */
      readonly nextHashes?: readonly string[];
      /** Narrower than those of the grant, for this token alone. */
      readonly scopes?: readonly string[];
      readonly indexEntry: AppIndexEntry | undefined;
      readonly origin: Origin;
    }
  /** Sent by the owner or an admin (`origin.by`), or by the host itself, which names its code and client. */
  | {
      readonly type: 'endGrant';
      readonly grant: string | { readonly codeId: number; readonly clientKey: string };
      readonly origin: Origin;
    };

export interface IssuedAccess {
  /** The access token. */
  readonly token: string;
  readonly expiresInSeconds: number;
  readonly scopes: readonly string[];
  /**
   * Hash of the newest refresh token of the grant; an owner of a build before version 8 of accounts took the next one.
   */
  readonly refreshHash?: string;
}

/** The reply to `endGrant`. */
export interface EndedGrant {
  readonly id: string;
  readonly sessionsClosed: number;
}

type Of<Type extends GrantCommand['type']> = Extract<GrantCommand, { type: Type }>;
const NO_HOST = 'no such connected host';

export function decideConsent(
  state: UserState,
  { sessionId, challenge, allow, needsFresh, appId, origin }: Of<'decideConsent'>,
  turn: Turn,
): UserOutcome<string | null> | Refusal {
  const session = findById(state.sessions, sessionId);
  if (session === undefined || session.kind !== 'browser' || state.blocked) return refuse('SessionNotFound');
  const spent = refusedChallenge(state, challenge, turn);
  if (spent !== undefined) return spent;
  if (allow && needsFresh && turn.nowMs - session.createdMs > FRESH_LOGIN_MS)
    return refuse('FreshLoginRequired');
  const used = challengeUsed(challenge, turn);
  if (allow) return outcome([used], session.keyId);
  const { keyId } = session;
  return outcome<string | null>(
    [
      used,
      logged('host_refused', { keyId, appId, loginType: null }, origin, turn),
      audited(state, turn, 'host_refused', origin, { appId }),
    ],
    keyId,
  );
}

export function openGrant(
  state: UserState,
  command: Of<'openGrant'>,
  turn: Turn,
): UserOutcome<IssuedAccess> | Refusal {
  const { codeId, endsMs, host, sessionId, keyId, indexEntry, origin } = command;
  const given = state.hostGrants.find((grant) => grant.codeId === codeId);
  if (given !== undefined) return reused(state, given, 'the code was used before', origin, turn);
  if (state.usedChallenges.some(({ id }) => id === codeId) || turn.nowMs >= endsMs)
    return refuse('OAuthInvalidGrant', 'the code is over');
  const spent = refusedChallenge(state, { id: codeId, endsMs }, turn);
  if (spent !== undefined) return spent;
  const isGone = keyId !== null && !isActive(findById(state.keys, keyId));
  if (state.blocked || isGone || findById(state.sessions, sessionId) === undefined)
    return refuse('OAuthInvalidGrant', 'the login of the consent is over');
  if ((accessOf(state, host.appId)?.revokedMs ?? 0) >= endsMs - CODE_LIFE_MS)
    return refuse('OAuthInvalidGrant', 'the access was taken back');
  const id = turn.newId();
  const entry = indexEntry === undefined ? undefined : ticksOf(indexEntry);
  if (indexEntry === undefined || entry === undefined)
    return refuse('OAuthInvalidGrant', 'the application takes no sessions');
  const access = connectedAccess(state, host.appId, turn);
  if (isRefusal(access)) return access;
  const gone = leaving(state);
  const gives = ({ grantId }: SessionRecord) => gone.some((grant) => grant.id === grantId);
  // Sessions of evicted grants end once, so the opening must not see them.
  const rest = gone.length === 0 ? state : { ...state, sessions: state.sessions.filter((s) => !gives(s)) };
  const opening = openSession(
    rest,
    turn,
    sessionOf({ ...host, id, keyId }, host.scopes, origin),
    'host_connected',
  );
  const grant: HostGrant = {
    id,
    ...host,
    entry,
    keyId,
    codeId,
    createdMs: turn.nowMs,
    rotatedMs: turn.nowMs,
    refreshHash: command.refreshHash,
    formers: [],
  };
  const fields = { appId: host.appId, grantId: id, keyId, name: host.name, host: host.host };
  return outcome(
    [
      endGrants(state, gone),
      { events: [{ type: 'grantOpened', grant }] },
      opening.change,
      access,
      challengeUsed({ id: codeId, endsMs }, turn),
      unchangedIndexEntry(host.appId, indexEntry),
      audited(state, turn, 'host_connected', origin, { ...fields, scopes: host.scopes.join(' ') }),
    ],
    issued(opening, host.scopes, command.refreshHash),
  );
}

/** Grants evicted for one more: those used longest ago, as far as uses are written (once a minute). */
function leaving({ hostGrants, sessions }: UserState): readonly HostGrant[] {
  const over = hostGrants.length + 1 - GRANTS_MAX;
  if (over <= 0) return [];
  const usedMs = new Map(hostGrants.map(({ id, rotatedMs }) => [id, rotatedMs]));
  for (const { grantId, lastSeenMs } of sessions) {
    const before = grantId === undefined ? undefined : usedMs.get(grantId);
    if (grantId !== undefined && before !== undefined) usedMs.set(grantId, Math.max(before, lastSeenMs));
  }
  const used = ({ id }: HostGrant) => usedMs.get(id) ?? 0;
  return hostGrants.toSorted((a, b) => used(a) - used(b)).slice(0, over);
}

/**
 * The current token is replaced by the one that follows from it. A former one within its time gets the current one, and changes
 * nothing else: any number of processes of one host end up with the same token.
 */
export function refreshGrant(
  state: UserState,
  command: Of<'refreshGrant'>,
  turn: Turn,
): UserOutcome<IssuedAccess> | Refusal {
  const { codeId, clientKey, presentedHash, nextHash, indexEntry, origin } = command;
  const grant = state.hostGrants.find((each) => each.codeId === codeId);
  if (grant === undefined || grant.clientKey !== clientKey)
    return refuse('OAuthInvalidGrant', 'the grant is over');
  if (turn.nowMs >= grantEndMs(grant) || state.blocked || !isGrantValid(indexEntry, grant))
    return refusedWith(endGrants(state, [grant]), 'the grant is over', turn);
  const isCurrent = presentedHash === grant.refreshHash;
  const former = grant.formers.find(({ hash }) => hash === presentedHash);
  if (!isCurrent && (former === undefined || turn.nowMs > former.endsMs))
    return reused(state, grant, 'the refresh token was replaced before', origin, turn);
  const scopes = command.scopes ?? grant.scopes;
  const opening = openSession(state, turn, sessionOf(grant, scopes, origin), 'refresh');
  // Tokens that a version before this one issued do not follow from each other: the former one begins a chain of its own.
  const follows = (command.nextHashes ?? [nextHash]).includes(grant.refreshHash);
  if (!isCurrent && follows) return outcome([opening.change], issued(opening, scopes, grant.refreshHash));
  const formers = withFormer(grant.formers, grant.refreshHash, turn.nowMs);
  const rotated = {
    type: 'grantRotated',
    grantId: grant.id,
    refreshHash: nextHash,
    formers,
    utcMs: turn.nowMs,
  } as const;
  return outcome([opening.change, { events: [rotated] }], issued(opening, scopes, nextHash));
}

export function endGrant(
  state: UserState,
  { grant: named, origin }: Of<'endGrant'>,
  turn: Turn,
): UserOutcome<EndedGrant> | Refusal {
  const grant =
    typeof named === 'string'
      ? findById(state.hostGrants, named)
      : state.hostGrants.find((each) => each.codeId === named.codeId && each.clientKey === named.clientKey);
  if (grant === undefined) return refuse('NotFound', NO_HOST);
  const { id } = grant;
  const sessionsClosed = state.sessions.filter(({ grantId }) => grantId === id).length;
  return outcome([ending(state, grant, 'host_revoked', origin, turn)], { id, sessionsClosed });
}

/** A token that is good once came again: one of two holders is not the host, so both lose it, and the owner reads it. */
function reused(
  state: UserState,
  grant: HostGrant,
  detail: string,
  origin: Origin,
  turn: Turn,
): UserOutcome<IssuedAccess> {
  return refusedWith(ending(state, grant, 'token_reused', origin, turn, detail), detail, turn);
}

/** A refusal that changes something: its events are on disk before it is answered. */
function refusedWith(change: Change, detail: string, turn: Turn): UserOutcome<IssuedAccess> {
  const { events, claims, audit } = merged([change]);
  const refusal = refuse('OAuthInvalidGrant', detail);
  return { events, claims, audit, answers: [{ commandId: turn.commandId, refusal }] };
}

function ending(
  state: UserState,
  grant: HostGrant,
  event: 'host_revoked' | 'token_reused',
  origin: Origin,
  turn: Turn,
  reason?: string,
): Change {
  const { appId, keyId, name, host, id } = grant;
  const shown = { appId, keyId, loginType: loginTypeFor(grant.scopes) };
  return merged([
    endGrants(state, [grant]),
    logged(event, shown, origin, turn, reason),
    audited(state, turn, event, origin, { appId, grantId: id, keyId, name, host, ...(reason && { reason }) }),
  ]);
}

function logged(
  event: Extract<LogEventName, `host_${string}` | 'token_reused'>,
  shown: Pick<SessionRecord, 'appId' | 'keyId' | 'loginType'>,
  origin: Origin,
  turn: Turn,
  reason?: string,
): Change {
  return { events: [hostLogged(event, shown, origin, turn, reason)] };
}

function sessionOf(
  { id, appId, keyId }: Pick<HostGrant, 'id' | 'appId' | 'keyId'>,
  scopes: readonly string[],
  origin: Origin,
) {
  const loginType = loginTypeFor(scopes);
  const kind = 'mcp' as const;
  return { kind, loginType, keyId, appId: loginType === 'McpApp' ? appId : null, grantId: id, origin };
}

function issued({ token, session }: Opening, scopes: readonly string[], refreshHash: string): IssuedAccess {
  const expiresInSeconds = Math.floor((session.expiresMs - session.createdMs) / SECOND_MS);
  return { token, expiresInSeconds, scopes, refreshHash };
}
