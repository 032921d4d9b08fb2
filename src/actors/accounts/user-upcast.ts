/**
 * Accounts of versions 1 to 9; the shape of a field says whether it is old. 1: sessions by id, bare ids of applications.
 * 2: keys by id. 7: one former refresh token of a host. 2 to 8: one contact, no nickname. Without: 3 used challenges,
 * 4 Idempotency-Keys, 5 hosts, 6 entries of sessions and grants (stay without), 8 contact sync tokens, 9 upstreams.
 */
import type { Contact } from '../../domain/contacts.ts';
import type { UserKey } from '../../domain/keys.ts';
import { type FormerToken, withFormer } from '../../domain/oauth/grants.ts';
import type { UpstreamAccounts } from '../../domain/oauth/upstream-credentials.ts';
import { withRecord } from './id-list.ts';
import type {
  AppAccess,
  AppEntry,
  HostGrant,
  Removal,
  SessionRecord,
  UsedChallenge,
  UserEvent,
  UserState,
} from './user-types.ts';

interface Row {
  version: number;
  events?: unknown[];
  state?: unknown;
}

/** Until version 7, the former token worked once more for 60 s. */
interface EarlierGrant extends Omit<HostGrant, 'formers'> {
  readonly formerHash: string | null;
  readonly sessionId: string;
}

/** Whatever of these is there. */
interface Earlier {
  readonly sessions?: readonly SessionRecord[] | Readonly<Record<string, SessionRecord>>;
  readonly keys?: readonly UserKey[] | Readonly<Record<string, UserKey>>;
  readonly usedChallenges?: readonly UsedChallenge[];
  readonly contact?: Contact | null;
  readonly contacts?: readonly Contact[];
  readonly nickname?: string | null;
  readonly removal?: Removal | null;
  readonly apps?: readonly AppEntry[];
  readonly appsPlaced?: number;
  readonly appIds?: readonly string[];
  readonly hostGrants?: readonly (HostGrant | EarlierGrant)[];
  readonly upstreams?: UpstreamAccounts | null;
  readonly appAccess?: readonly (Pick<AppAccess, 'appId' | 'grantedMs'> & Partial<AppAccess>)[];
}

export function upcastUser({ version, events, state }: Row): { events?: unknown[]; state?: unknown } {
  return {
    ...(events === undefined ? {} : { events: version >= 8 ? events : events.map(upcastEvent) }),
    ...(state === undefined ? {} : { state: upcastState(state as Earlier & UserState) }),
  };
}

function listed<T extends { readonly id: string }>(
  records: readonly T[] | Readonly<Record<string, T>> | undefined,
): readonly T[] {
  if (Array.isArray(records)) return records as readonly T[];
  return Object.values(records ?? {}).reduce<readonly T[]>(withRecord, []);
}

function upcastState(earlier: Earlier & UserState): UserState {
  const { contact, appIds, ...kept } = earlier;
  const {
    sessions,
    keys,
    usedChallenges,
    contacts,
    nickname,
    removal,
    apps,
    appsPlaced,
    appAccess,
    hostGrants,
  } = earlier as Earlier;
  // Names and addresses of those were kept nowhere: their own actors did not exist yet.
  const entries = apps ?? (appIds ?? []).map((appId): AppEntry => ({ appId, name: '', url: '' }));
  const access = (appAccess ?? []).map(
    (each): AppAccess => ({
      ...each,
      source: each.source ?? (entries.some(({ appId }) => appId === each.appId) ? 'registration' : 'consent'),
      revokedMs: each.revokedMs ?? null,
    }),
  );
  return {
    ...kept,
    keys: listed(keys),
    sessions: listed(sessions),
    usedChallenges: usedChallenges ?? [],
    nickname: nickname ?? null,
    removal: removal ?? null,
    contacts: contacts ?? (contact ? [contact] : []),
    apps: entries,
    appsPlaced: appsPlaced ?? entries.length,
    appAccess: access,
    hostGrants: (hostGrants ?? []).map(upcastGrant),
    upstreams: (earlier as Earlier).upstreams ?? null,
  };
}

function upcastGrant(grant: HostGrant | EarlierGrant): HostGrant {
  if (!('formerHash' in grant)) return grant;
  const { formerHash, sessionId: _, ...kept } = grant;
  return { ...kept, formers: formersOf(formerHash, grant.rotatedMs) };
}

function formersOf(hash: string | null, rotatedMs: number): readonly FormerToken[] {
  return hash === null ? [] : withFormer([], hash, rotatedMs);
}

type EarlierEvent =
  | { readonly type: 'grantOpened'; readonly grant: HostGrant | EarlierGrant }
  | (Pick<HostGrant, 'refreshHash'> & {
      readonly type: 'grantRotated';
      readonly grantId: string;
      readonly formerHash: string | null;
      readonly utcMs: number;
    })
  | { readonly type: 'appAccessRevoked'; readonly appId: string; readonly utcMs?: number };

function upcastEvent(event: unknown): unknown {
  const earlier = event as EarlierEvent;
  if (earlier.type === 'grantOpened')
    return { type: 'grantOpened', grant: upcastGrant(earlier.grant) } satisfies UserEvent;
  if (earlier.type === 'grantRotated') {
    const { grantId, refreshHash, formerHash, utcMs } = earlier;
    const formers = formersOf(formerHash, utcMs);
    return { type: 'grantRotated', grantId, refreshHash, formers, utcMs } satisfies UserEvent;
  }
  // It took the access off the list then; what was taken back is remembered only since it has a time.
  if (earlier.type === 'appAccessRevoked' && earlier.utcMs === undefined)
    return { type: 'appAccessDropped', appId: earlier.appId } satisfies UserEvent;
  return event;
}
