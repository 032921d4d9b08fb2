/**
 * Credentials of one account for other MCP servers: a login there that begins and ends, a token that the person pasted, the
 * refresh of a token, which runs once for all that ask for it, and the end.
 */
import {
  UPSTREAM_CREDENTIALS_MAX,
  UPSTREAM_LOGIN_MS,
  UPSTREAM_REFRESH_LOST_MS,
  UPSTREAM_WAITING_MAX,
  type UpstreamCredential,
  type UpstreamLogin,
} from '../../domain/oauth/upstream-credentials.ts';
import { audited, merged, type Origin, outcome, type UserOutcome } from '../change.ts';
import {
  type Answer,
  Later,
  type Outcome,
  type Refusal,
  refuse,
  runOf,
  type Turn,
} from '../runtime/actor.ts';
import type { PortResult, RenewedUpstream } from '../runtime/ports.ts';
import { findById } from './id-list.ts';
import type { UserEvent, UserState, UserTimer } from './user-types.ts';

/** The session that the person uses for it. */
interface OfSession {
  readonly sessionId: string;
}

interface RenewUpstream {
  readonly type: 'renewUpstream';
  readonly server: string;
  /** The address that the configuration has now. */
  readonly url: string;
  /** `keyId` of the sealed credential that is over: another one is there already. */
  readonly overKeyId: string;
}

interface UpstreamRefreshed {
  readonly type: 'upstreamRefreshed';
  readonly command: RenewUpstream;
  readonly result: PortResult<RenewedUpstream>;
}

export type UpstreamCommand =
  | (OfSession & {
      readonly type: 'openUpstreamLogin';
      readonly login: Omit<UpstreamLogin, 'sessionId' | 'endsMs'>;
    })
  /** The browser is back. A login is taken once. */
  | (OfSession & { readonly type: 'takeUpstreamLogin'; readonly stateHash: string })
  | (OfSession & {
      readonly type: 'connectUpstream';
      readonly credential: Omit<UpstreamCredential, 'connectedMs' | 'refreshing'>;
      readonly origin: Origin;
    })
  | RenewUpstream
  | UpstreamRefreshed
  | { readonly type: 'disconnectUpstream'; readonly server: string; readonly origin: Origin };

/** Volatile, and of any node: what it has applied. */
export interface FindUpstreamCredential {
  readonly type: 'upstreamCredential';
  readonly server: string;
}

/** Fields of a credential that a call needs. */
export type CallCredential = Pick<
  UpstreamCredential,
  'url' | 'kind' | 'sealed' | 'connectedMs' | 'expiresMs' | 'canRefresh'
>;

type Of<Type extends UpstreamCommand['type']> = Extract<UpstreamCommand, { type: Type }>;
type Renewal = Outcome<UserEvent, CallCredential, UpstreamRefreshed, CallCredential>;

export function openUpstreamLogin(
  state: UserState,
  { login, sessionId }: Of<'openUpstreamLogin'>,
  turn: Turn,
): UserOutcome<null> | Refusal {
  if (findById(state.sessions, sessionId) === undefined || state.blocked) return refuse('SessionNotFound');
  if (isFull(state, login.server)) return refuse('AppLimitReached', LIMIT);
  const opened: UpstreamLogin = { ...login, sessionId, endsMs: turn.nowMs + UPSTREAM_LOGIN_MS };
  return outcome([{ events: [{ type: 'upstreamLoginOpened', login: opened, utcMs: turn.nowMs }] }], null);
}

export function takeUpstreamLogin(
  state: UserState,
  { stateHash, sessionId }: Of<'takeUpstreamLogin'>,
  turn: Turn,
): UserOutcome<UpstreamLogin> | Refusal {
  const login = state.upstreams?.logins.find((each) => each.stateHash === stateHash);
  if (login === undefined || login.sessionId !== sessionId || turn.nowMs >= login.endsMs)
    return refuse('ChallengeExpired');
  return outcome([{ events: [{ type: 'upstreamLoginTaken', stateHash }] }], login);
}

export function connectUpstream(
  state: UserState,
  { credential: given, sessionId, origin }: Of<'connectUpstream'>,
  turn: Turn,
): Outcome<UserEvent, null, UserTimer, CallCredential | null> | Refusal {
  if (findById(state.sessions, sessionId) === undefined || state.blocked) return refuse('SessionNotFound');
  const { server, kind } = given;
  if (isFull(state, server)) return refuse('AppLimitReached', LIMIT);
  const credential: UpstreamCredential = { ...given, connectedMs: turn.nowMs, refreshing: null };
  return {
    ...merged([
      { events: [{ type: 'upstreamConnected', credential }] },
      audited(state, turn, 'upstream_connected', origin, { server, kind }),
    ]),
    answers: [atAllNodes(turn), ...answersOf(find(state, server), { reply: callCredential(credential) })],
  };
}

export function disconnectUpstream(
  state: UserState,
  { server, origin }: Of<'disconnectUpstream'>,
  turn: Turn,
): Outcome<UserEvent, null, UserTimer, CallCredential | null> | Refusal {
  const credential = find(state, server);
  if (credential === undefined) return refuse('NotFound', 'not connected');
  const { kind } = credential;
  return {
    ...merged([
      { events: [{ type: 'upstreamEnded', server }] },
      audited(state, turn, 'upstream_disconnected', origin, { server, kind }),
    ]),
    answers: [atAllNodes(turn), ...answersOf(credential, { refusal: refuse('UpstreamLoginRequired') })],
  };
}

/** The first one that finds it over has it refreshed; those that ask meanwhile wait for the same answer. */
export function renewUpstream(state: UserState, command: RenewUpstream, turn: Turn): Renewal | Refusal {
  const { server, url, overKeyId } = command;
  const credential = find(state, server);
  if (credential === undefined || credential.url !== url || state.blocked)
    return refuse('UpstreamLoginRequired');
  const { sealed, canRefresh, refreshing } = credential;
  if (sealed.keyId !== overKeyId) return { reply: callCredential(credential) };
  if (!canRefresh) return refuse('UpstreamLoginRequired');
  const { commandId, nowMs } = turn;
  if (refreshing !== null && isRunning(refreshing, turn)) {
    if (refreshing.waiting.length >= UPSTREAM_WAITING_MAX) return refuse('Overloaded');
    return {
      events: [{ type: 'upstreamRefreshAwaited', server, commandId }],
      reply: new Later(commandId),
    };
  }
  return {
    events: [{ type: 'upstreamRefreshing', server, commandId, utcMs: nowMs }],
    // They waited for one that is lost.
    answers: answersOf(credential, { refusal: refuse('Overloaded') }),
    next: async ({ upstreams }) => ({
      type: 'upstreamRefreshed',
      command,
      result: (await upstreams?.refresh({ server, url, sealed })) ?? {
        ok: false,
        error: 'ModuleUnavailable',
      },
    }),
  };
}

/** The process that ran it is gone, or its node: its result never comes. */
function isRunning(
  { commandId, sinceMs }: NonNullable<UpstreamCredential['refreshing']>,
  turn: Turn,
): boolean {
  return runOf(commandId) === runOf(turn.commandId) && turn.nowMs - sinceMs < UPSTREAM_REFRESH_LOST_MS;
}

export function upstreamRefreshed(
  state: UserState,
  { command, result }: UpstreamRefreshed,
  turn: Turn,
): Renewal | Refusal {
  const { server, overKeyId } = command;
  const credential = find(state, server);
  // Disconnected, connected anew, or taken over meanwhile: the waiting caller has an answer.
  if (credential === undefined) return refuse('UpstreamLoginRequired');
  if (credential.sealed.keyId !== overKeyId) return { reply: callCredential(credential) };
  // A credential that came late is stored too: its refresh token is the one that works.
  if (result.ok) {
    const { sealed, expiresMs } = result.value;
    const reply = callCredential({ ...credential, sealed, expiresMs });
    return {
      events: [{ type: 'upstreamRenewed', server, sealed, expiresMs }],
      answers: answersOf(credential, { reply }),
      reply,
    };
  }
  if (credential.refreshing?.commandId !== turn.commandId) return refuse('Overloaded');
  const refusal = refuse(result.error);
  const answers = [{ commandId: turn.commandId, refusal }, ...answersOf(credential, { refusal })];
  if (result.error !== 'UpstreamLoginRequired')
    return { events: [{ type: 'upstreamRefreshFailed', server }], answers };
  // The other side ended the grant.
  const { events, audit } = merged([
    { events: [{ type: 'upstreamEnded', server }] },
    audited(state, turn, 'upstream_ended', SERVER_ITSELF, { server, kind: credential.kind }),
  ]);
  return { events, audit, answers };
}

/** No request of a person. */
const SERVER_ITSELF: Origin = { ip: '', userAgent: '' };
const LIMIT = `at most ${UPSTREAM_CREDENTIALS_MAX} connected servers`;

function isFull({ upstreams }: UserState, server: string): boolean {
  const others = upstreams?.credentials.filter((credential) => credential.server !== server) ?? [];
  return others.length >= UPSTREAM_CREDENTIALS_MAX;
}

function find({ upstreams }: UserState, server: string): UpstreamCredential | undefined {
  return upstreams?.credentials.find((credential) => credential.server === server);
}

/** An answer waits until all nodes of a cluster have applied the turn; a reply would not. */
function atAllNodes({ commandId }: Turn): Answer<null> {
  return { commandId, reply: null };
}

function answersOf(
  credential: UpstreamCredential | undefined,
  answer: { readonly reply: CallCredential } | { readonly refusal: Refusal },
): Answer<CallCredential>[] {
  return (credential?.refreshing?.waiting ?? []).map((commandId) => ({ commandId, ...answer }));
}

/** The account goes: all that wait for a refresh learn that there is no credential. */
export function endedRefreshes({ upstreams }: UserState): Answer<CallCredential>[] {
  const answer = { refusal: refuse('UpstreamLoginRequired') };
  return (upstreams?.credentials ?? []).flatMap((credential) => answersOf(credential, answer));
}

function callCredential(credential: UpstreamCredential): CallCredential {
  const { url, kind, sealed, connectedMs, expiresMs, canRefresh } = credential;
  return { url, kind, sealed, connectedMs, expiresMs, canRefresh };
}

export function findCredential(
  state: UserState,
  { server }: FindUpstreamCredential,
): CallCredential | undefined {
  const credential = state.blocked ? undefined : find(state, server);
  return credential === undefined ? undefined : callCredential(credential);
}
