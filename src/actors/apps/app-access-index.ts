/**
 * What the index `appId` says of an application: who owns it, whether it takes McpApp sessions, whose they may be. The
 * login and every later request read it there, so that closing an application ends its sessions at once, wherever they
 * are kept. Only the app actor writes it.
 */

export interface AppIndexEntry {
  readonly ownerId: string;
  /** Sessions opened before this tick are over; null: closed to all. */
  readonly openedTick: string | null;
  /** The same for sessions of the explicit key: when it was configured. */
  readonly keyTick: string;
  /** base64url of the explicit key (spec 5.1 rule 6); null without one. */
  readonly mcpPublicKey: string | null;
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

/** Is a session that was opened before still valid? `sessionId` is the tick of its opening. */
export function isSessionValid(
  indexEntry: AppIndexEntry | undefined,
  caller: IndexEntryCaller,
  sessionId: string,
): boolean {
  if (
    indexEntry === undefined ||
    indexEntry.openedTick === null ||
    !isAfter(sessionId, indexEntry.openedTick)
  )
    return false;
  if (caller.userId === indexEntry.ownerId) return true;
  return isExplicit(indexEntry, caller) && isAfter(sessionId, indexEntry.keyTick);
}

/** The third way in: consent of any account. `grantId` is the tick of the consent. */
export function isGrantValid(indexEntry: AppIndexEntry | undefined, grantId: string): boolean {
  return indexEntry?.openedTick != null && isAfter(grantId, indexEntry.openedTick);
}

function isExplicit({ mcpPublicKey }: AppIndexEntry, { publicKey }: IndexEntryCaller): boolean {
  return mcpPublicKey !== null && publicKey === mcpPublicKey;
}

function isAfter(tick: string, other: string): boolean {
  return BigInt(tick) > BigInt(other);
}
