/**
 * The lists of applications of one user, and the Idempotency-Key of a registration: it is kept with the sealed API key for
 * an hour, so that a repeat gets the key again, also when the first answer was lost with the process (decision 0015).
 */

import type { SealedKey } from '../../domain/apps.ts';
import { HOUR_MS } from '../../domain/time.ts';
import type { UserOutcome } from '../change.ts';
import type { Timer, Turn } from '../runtime/actor.ts';
import type {
  AppAccess,
  AppEntry,
  AppRequest,
  ForgetAppRequest,
  RequestKey,
  UserState,
} from './user-types.ts';

const KEEP_MS = HOUR_MS;

export type KeptEntry = AppEntry & { readonly request: AppRequest };

/** Returns the request for the entry of a new application; nothing where the registration came without a key. */
export function requestOf(
  request: RequestKey | undefined,
  apiKey: SealedKey,
  { nowMs }: Turn,
): Pick<AppEntry, 'request'> {
  return request === undefined ? {} : { request: { ...request, apiKey, endsMs: nowMs + KEEP_MS } };
}

/** The application that was registered with this Idempotency-Key within the last hour. */
export function registeredWith(
  { apps }: Pick<UserState, 'apps'>,
  key: string,
  nowMs: number,
): KeptEntry | undefined {
  const isKept = (entry: AppEntry): entry is KeptEntry =>
    entry.request?.key === key && nowMs < entry.request.endsMs;
  return apps.find(isKept);
}

/** Sets the end of a request that is kept, or takes the timer of a removed application away. */
export function requestTimers(
  { appId, request }: AppEntry,
  isRemoved = false,
): readonly Timer<ForgetAppRequest>[] {
  if (request === undefined) return [];
  const name = `request:${appId}`;
  if (isRemoved) return [{ name, dueMs: null }];
  return [{ name, dueMs: request.endsMs, command: { type: 'forgetAppRequest', appId } }];
}

export function forgetAppRequest(state: UserState, { appId }: ForgetAppRequest): UserOutcome<null> {
  const isKept = state.apps.some((entry) => entry.appId === appId && entry.request !== undefined);
  return isKept ? { events: [{ type: 'appRequestForgotten', appId }] } : {};
}

export function withoutRequest(apps: readonly AppEntry[], appId: string): AppEntry[] {
  return apps.map((entry) => {
    if (entry.appId !== appId) return entry;
    const { request: _request, ...rest } = entry;
    return rest;
  });
}

type Lists = Pick<UserState, 'apps' | 'appsPlaced' | 'appAccess'>;

/**
 * A person who registers an application lets it act for them. One that is there already gets another name or address.
 */
export function withApp({ apps, appsPlaced, appAccess }: Lists, entry: AppEntry, utcMs: number): Lists {
  const index = apps.findIndex(({ appId }) => appId === entry.appId);
  if (index >= 0) return { apps: apps.with(index, entry), appsPlaced, appAccess };
  const { appId } = entry;
  const access: AppAccess = { appId, grantedMs: utcMs, source: 'registration', revokedMs: null };
  return { apps: [...apps, entry], appsPlaced: appsPlaced + 1, appAccess: [...appAccess, access] };
}

export function withAccess(list: readonly AppAccess[], access: AppAccess): AppAccess[] {
  const index = list.findIndex(({ appId }) => appId === access.appId);
  return index < 0 ? [...list, access] : list.with(index, access);
}
