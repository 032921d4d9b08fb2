/** For whom a file stream is: the person that it counts for, and the quota that it shares. */
import { networkOf } from '../../domain/limits/networks.ts';

/** Who the stream is for: the person among whom a quota is shared, and the texts of the setting FileBandwidthKey. */
export interface StreamOwner {
  /** Undefined without a session. */
  readonly userId: string | undefined;
  readonly address: string;
}

/** A user, whatever its sessions and addresses; without a session the network. */
export function personOf({ userId, address }: StreamOwner): string {
  return userId === undefined ? networkOf(address) : `user ${userId}`;
}

/** The setting with `{user}` and `{address}` filled in; without a session the network stands for the user. */
export function quotaKey(setting: string, { userId, address }: StreamOwner): string {
  if (!setting.includes('{')) return setting;
  const network = networkOf(address);
  return setting.replaceAll('{user}', userId ?? `@${network}`).replaceAll('{address}', network);
}
