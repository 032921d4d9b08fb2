/** The caller of a file stream: the user or network that it counts for, and the quota that it shares. */
import { networkOf } from '../../domain/limits/networks.ts';

/** The caller: a quota is shared among callers, and the setting FileBandwidthKey may name them. */
export interface StreamOwner {
  /** Undefined without a session. */
  readonly userId: string | undefined;
  readonly address: string;
}

/** The user, across sessions and addresses; without a session the network. */
export function personOf({ userId, address }: StreamOwner): string {
  return userId === undefined ? networkOf(address) : `user ${userId}`;
}

/** The setting with `{user}` and `{address}` filled in; without a session the network replaces the user. */
export function quotaKey(setting: string, { userId, address }: StreamOwner): string {
  if (!setting.includes('{')) return setting;
  const network = networkOf(address);
  return setting.replaceAll('{user}', userId ?? `@${network}`).replaceAll('{address}', network);
}
