/**
 * Entries of the index `appId`: owner of the application, McpApp sessions, and the accounts that may have them. Logins
 * and later requests read it, so closing an application ends its sessions at once, on every node. Only the app actor
 * writes it.
 */

/** Names an entry. A session or grant keeps those that admitted it, and lives while they stay (decision 0011). */
export interface EntryTicks {
  readonly openedTick: string;
  readonly keyTick: string;
}

export interface AppIndexEntry {
  readonly ownerId: string;
  /** Its opening: sessions of another one are over. Null: closed to all. */
  readonly openedTick: string | null;
  /** The same for sessions of the explicit key: when it was configured. */
  readonly keyTick: string;
  /** base64url of the explicit key (spec 5.1 rule 6); null without one. */
  readonly mcpPublicKey: string | null;
}

/** A session or a grant of an application. `id` is the tick of its opening. */
interface Admitted {
  readonly id: string;
  /** Absent where it was opened before this was kept. */
  readonly entry?: EntryTicks;
}

interface IndexEntryCaller {
  readonly userId: string;
  /** base64url of the key of the login. */
  readonly publicKey: string | null;
}

const PATTERN = /^([0-9]+):([0-9]+|-):([0-9]+):([A-Za-z0-9_-]{43})?$/;

/** `<owner>:<opened tick or ->:<key tick>:<explicit key or nothing>`. */
export function formatIndexEntry({ ownerId, openedTick, keyTick, mcpPublicKey }: AppIndexEntry): string {
  return `${ownerId}:${openedTick ?? '-'}:${keyTick}:${mcpPublicKey ?? ''}`;
}

export function parseIndexEntry(value: string): AppIndexEntry {
  const [, ownerId, opened, keyTick, mcpPublicKey] = PATTERN.exec(value) ?? [];
  if (ownerId === undefined || keyTick === undefined) throw new Error('unreadable owner of an application');
  return {
    ownerId,
    openedTick: opened === undefined || opened === '-' ? null : opened,
    keyTick,
    mcpPublicKey: mcpPublicKey ?? null,
  };
}

/** Spec 5.1 rule 6: open, and the key belongs to the owner or is the explicit one. */
export function mayOpenSession(indexEntry: AppIndexEntry | undefined, caller: IndexEntryCaller): boolean {
  if (indexEntry === undefined || indexEntry.openedTick === null) return false;
  return caller.userId === indexEntry.ownerId || isExplicit(indexEntry, caller);
}

/** Returns the ticks that a session or grant keeps which is opened now; undefined while the application is closed. */
export function ticksOf({ openedTick, keyTick }: AppIndexEntry): EntryTicks | undefined {
  return openedTick === null ? undefined : { openedTick, keyTick };
}

/** Is a session that was opened before still valid? */
export function isSessionValid(
  indexEntry: AppIndexEntry | undefined,
  caller: IndexEntryCaller,
  session: Admitted,
): boolean {
  if (indexEntry === undefined || !isGrantValid(indexEntry, session)) return false;
  if (caller.userId === indexEntry.ownerId) return true;
  return isExplicit(indexEntry, caller) && isOf(indexEntry.keyTick, session, 'keyTick');
}

/** The third way in: consent of any account. */
export function isGrantValid(indexEntry: AppIndexEntry | undefined, grant: Admitted): boolean {
  return indexEntry?.openedTick != null && isOf(indexEntry.openedTick, grant, 'openedTick');
}

/**
 * Equality, because ids of two nodes have no common order. What keeps no ticks is from before there were two: it must be
 * younger.
 */
function isOf(tick: string, { id, entry }: Admitted, name: keyof EntryTicks): boolean {
  return entry === undefined ? BigInt(id) > BigInt(tick) : entry[name] === tick;
}

function isExplicit({ mcpPublicKey }: AppIndexEntry, { publicKey }: IndexEntryCaller): boolean {
  return mcpPublicKey !== null && publicKey === mcpPublicKey;
}
