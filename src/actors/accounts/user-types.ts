/** The state of an account and its events, as types. */

import type { SealedKey } from '../../domain/apps.ts';

import type { Contact } from '../../domain/contacts.ts';
import type { UserKey } from '../../domain/keys.ts';
import type { HostKind } from '../../domain/oauth/clients.ts';
import type { FormerToken } from '../../domain/oauth/grants.ts';
import type { UpstreamAccounts } from '../../domain/oauth/upstream-credentials.ts';
import type { LoginType, SessionKind } from '../../domain/sessions.ts';
import type { EntryTicks } from '../apps/app-access-index.ts';
import type { LogEntry } from './login-log.ts';
import type { UpstreamEvent } from './upstream-state.ts';

export interface SessionRecord {
  readonly id: string;
  readonly kind: SessionKind;
  readonly loginType: LoginType | null;
  readonly keyId: string | null;
  readonly appId: string | null;
  /** Set for an `McpApp` login that was signed: sessions from before this was written proved nothing. */
  readonly signed?: true;
  /** Entry that opened an `McpApp` login. Sessions from before this was written have none. */
  readonly entry?: EntryTicks;
  /** Grant that the session of a connected host lives with. */
  readonly grantId?: string;
  /** Name of the device of a contact sync token, by its owner. */
  readonly name?: string;
  /** SHA-256 of the token, base64url. */
  readonly hash: string;
  readonly createdMs: number;
  /** 0: a contact sync token that was never used. */
  readonly lastSeenMs: number;
  /** Absolute end. A browser session may end sooner, when it is idle. */
  readonly expiresMs: number;
  readonly ip: string;
  readonly userAgent: string;
}

/** A session that a log-in opened. */
export type LoginRecord = SessionRecord & { readonly kind: Exclude<SessionKind, 'contactSync'> };

/** An application that the user registered. Its own actor holds everything else. */
export interface AppEntry {
  readonly appId: string;
  readonly name: string;
  readonly url: string;
  /** Request with the Idempotency-Key that registered it, kept for an hour. */
  readonly request?: AppRequest;
}

export interface AppAccess {
  readonly appId: string;
  readonly grantedMs: number;
  /** The user registered it, allowed it, or let a key log in for it: only the first two allow webhooks. */
  readonly source: 'registration' | 'consent' | 'login';
  /** Time at which the user took the access back, Unix milliseconds; null while it stands. */
  readonly revokedMs: number | null;
}

/** A host that the person connected (OAuth). Its sessions live no longer than it. */
export interface HostGrant {
  /** Tick of the opening. */
  readonly id: string;
  /** SHA-256 of the client id, base64url: client ids have up to 2 KiB. */
  readonly clientKey: string;
  readonly kind: HostKind;
  /** The name is the client's own claim. The host is where answers go. */
  readonly name: string;
  readonly host: string;
  readonly appId: string;
  /** The entry of the application that admitted it. Grants from before this was written have none. */
  readonly entry?: EntryTicks;
  /** Path of the resource. */
  readonly audience: string;
  readonly scopes: readonly string[];
  /** Key of the login in which the person consented. */
  readonly keyId: string | null;
  /** The code that opened it. */
  readonly codeId: number;
  readonly createdMs: number;
  /** The last rotation, or the opening. */
  readonly rotatedMs: number;
  /** SHA-256 of the refresh token, base64url. */
  readonly refreshHash: string;
  /** Those before it that may still work, in the order of their replacement. */
  readonly formers: readonly FormerToken[];
}

/** Remainder of an account that its person removed: modules that are notified of it. */
export interface Removal {
  readonly utcMs: number;
  /** Names of modules that have not confirmed it; null before the first try. */
  readonly modules: readonly string[] | null;
  /** Tries so far that not all modules confirmed. */
  readonly failures: number;
}

export interface UserState {
  readonly userId: string;
  /** Null: there is no such account. */
  readonly createdMs: number | null;
  /** 32 random bytes in base64url: `user.id` of the authenticators, the same for the life of the account. */
  readonly handle: string;
  readonly blocked: boolean;
  /** Name that the person chose; null: none. */
  readonly nickname: string | null;
  /** Addresses that one-time codes log in from, in the order of their adding. */
  readonly contacts: readonly Contact[];
  /** In the order of their adding, removed ones included (spec 3: the record is kept). */
  readonly keys: readonly UserKey[];
  /** Sessions in the order of their opening. */
  readonly sessions: readonly SessionRecord[];
  readonly log: readonly LogEntry[];
  /** Used challenges in the order of their use. Over ones go when another is added. */
  readonly usedChallenges: readonly UsedChallenge[];
  /** Applications that the user registered, in that order, and how many there ever were. */
  readonly apps: readonly AppEntry[];
  readonly appsPlaced: number;
  /** Applications that may act for the user, and those that no longer may. */
  readonly appAccess: readonly AppAccess[];
  /** Connected hosts, in the order of their opening. */
  readonly hostGrants: readonly HostGrant[];
  /** Credentials for other MCP servers. */
  readonly upstreams: UpstreamAccounts | null;
  /** The removal of an account; its id opens no other one. */
  readonly removal: Removal | null;
  /** Time of the timer that clears expired sessions, Unix milliseconds; null without one. */
  readonly sweepDueMs: number | null;
}

/** A refreshed session is in no log: a host opens one each hour. */
export type SessionOpening = 'login' | 'sign_up' | 'host_connected' | 'contact_sync_added' | 'refresh';

export type UserEvent =
  | UpstreamEvent
  | {
      readonly type: 'accountCreated';
      readonly utcMs: number;
      readonly handle: string;
      readonly contact?: Contact;
    }
  /** Written by version 1 alone: a contact of an account that was there already. */
  | { readonly type: 'contactLinked'; readonly contact: Contact }
  | { readonly type: 'contactAdded'; readonly contact: Contact }
  | { readonly type: 'contactRemoved'; readonly contact: Contact }
  | { readonly type: 'nicknameSet'; readonly nickname: string | null }
  | { readonly type: 'accountRemoved'; readonly utcMs: number }
  /** `modules`: those that have not confirmed the removal; none are left when it is given up. */
  | { readonly type: 'removalTold'; readonly modules: readonly string[] }
  | { readonly type: 'keyAdded'; readonly key: UserKey }
  | { readonly type: 'keyProven'; readonly keyId: string }
  | { readonly type: 'keyFlagsSet'; readonly keyId: string; readonly flags: number }
  | { readonly type: 'keyRemoved'; readonly keyId: string }
  | {
      readonly type: 'credentialUsed';
      readonly keyId: string;
      readonly counter: number;
      readonly backedUp: boolean;
    }
  | { readonly type: 'sessionOpened'; readonly session: SessionRecord; readonly as: SessionOpening }
  | { readonly type: 'sessionTouched'; readonly sessionId: string; readonly utcMs: number }
  | { readonly type: 'sessionRebound'; readonly sessionId: string; readonly keyId: string }
  | { readonly type: 'sessionsEnded'; readonly sessionIds: readonly string[] }
  | { readonly type: 'logged'; readonly entry: LogEntry }
  | { readonly type: 'challengeUsed'; readonly challenge: UsedChallenge; readonly utcMs: number }
  /** A new application, or another name or address of a known one. */
  | { readonly type: 'appPlaced'; readonly entry: AppEntry; readonly utcMs: number }
  | { readonly type: 'appRequestForgotten'; readonly appId: string }
  | { readonly type: 'appDropped'; readonly appId: string }
  | { readonly type: 'appAccessGranted'; readonly access: AppAccess }
  | { readonly type: 'appAccessRevoked'; readonly appId: string; readonly utcMs: number }
  | { readonly type: 'appAccessDropped'; readonly appId: string }
  | { readonly type: 'grantOpened'; readonly grant: HostGrant }
  | {
      readonly type: 'grantRotated';
      readonly grantId: string;
      readonly refreshHash: string;
      readonly formers: readonly FormerToken[];
      readonly utcMs: number;
    }
  | { readonly type: 'grantsEnded'; readonly grantIds: readonly string[] }
  | { readonly type: 'blockedSet'; readonly blocked: boolean }
  | { readonly type: 'sweepScheduled'; readonly dueMs: number | null };

/** Commands of an account's timers. */
export type UserTimer = AppOverdue | ForgetAppRequest | Sweep | TellRemoval;

/** The application has not answered: it is quarantined, or its message became a dead letter. */
export interface AppOverdue {
  readonly type: 'appOverdue';
  readonly commandId: string;
}

/** An hour after a registration with an Idempotency-Key. */
export interface ForgetAppRequest {
  readonly type: 'forgetAppRequest';
  readonly appId: string;
}

/** Tells modules that the account was removed. */
export interface TellRemoval {
  readonly type: 'tellRemoval';
}

/** Removes expired sessions. */
export interface Sweep {
  readonly type: 'sweep';
}

export interface UsedChallenge {
  readonly id: number;
  /** Nothing takes it any more after this. */
  readonly endsMs: number;
}

export interface AppRequest extends RequestKey {
  readonly apiKey: SealedKey;
  /** It is forgotten then. */
  readonly endsMs: number;
}

/** Facts by which a repeat is recognised: the key, and what is the same for repeats of one body alone. */
export interface RequestKey {
  readonly key: string;
  readonly fingerprint: string;
}
