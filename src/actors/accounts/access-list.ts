/** The lists of applications of one user: those that were registered, and those that may act for the user. Immutable. */
import type { AppAccess, AppEntry, UserState } from './user-types.ts';

type Lists = Pick<UserState, 'apps' | 'appsPlaced' | 'appAccess'>;

/** Who registers an application lets it act for them. One that is there already gets another name or address. */
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
