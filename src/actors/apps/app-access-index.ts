/**
 * What the index `appId` says of an application: who owns it, whether it takes McpApp sessions, whose they may be. The
 * login and every later request read it there, so that closing an application ends its sessions at once, wherever they
 * are kept. Only the app actor writes it.
 */

export interface AppDoor {
  readonly ownerId: string;
  /** Sessions opened before this tick are over; null: closed to all. */
  readonly openedTick: string | null;
  /** The same for sessions of the explicit key: when it was configured. */
  readonly keyTick: string;
  /** base64url of the explicit key (spec 5.1 rule 6); null without one. */
  readonly mcpPublicKey: string | null;
}

export interface DoorCaller {
  readonly userId: string;
  /** base64url of the key of the login. */
  readonly publicKey: string | null;
}

const PATTERN = /^([0-9]+):([0-9]+|-):([0-9]+):([A-Za-z0-9_-]{43})?$/;

/** `<owner>:<opened tick or ->:<key tick>:<explicit key or nothing>`. */
export function formatDoor({ ownerId, openedTick, keyTick, mcpPublicKey }: AppDoor): string {
  return `${ownerId}:${openedTick ?? '-'}:${keyTick}:${mcpPublicKey ?? ''}`;
}

export function parseDoor(value: string): AppDoor {
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
export function letsIn(door: AppDoor | undefined, caller: DoorCaller): boolean {
  if (door === undefined || door.openedTick === null) return false;
  return caller.userId === door.ownerId || isExplicit(door, caller);
}

/** Does a session that was let in once still live? `sessionId` is the tick of its opening. */
export function keepsIn(door: AppDoor | undefined, caller: DoorCaller, sessionId: string): boolean {
  if (door === undefined || door.openedTick === null || !isAfter(sessionId, door.openedTick)) return false;
  if (caller.userId === door.ownerId) return true;
  return isExplicit(door, caller) && isAfter(sessionId, door.keyTick);
}

function isExplicit({ mcpPublicKey }: AppDoor, { publicKey }: DoorCaller): boolean {
  return mcpPublicKey !== null && publicKey === mcpPublicKey;
}

function isAfter(tick: string, other: string): boolean {
  return BigInt(tick) > BigInt(other);
}
