/**
 * The values that the indexes of keys and sessions hold: who owns the name. A key's value says whether its holder
 * proved to have it, because proof beats claim and the taker cannot ask the holder within its turn.
 */
import type { SessionKind } from '../../domain/sessions.ts';
import type { IndexName } from '../runtime/actor.ts';

export interface KeyOwner {
  readonly userId: string;
  readonly keyId: string;
  readonly proven: boolean;
}

export interface SessionOwner {
  readonly userId: string;
  readonly sessionId: string;
}

const KEY_OWNER_PATTERN = /^([0-9]+):([0-9]+):([pc])$/;

/** `<user>:<key>:p` for a proven key, `…:c` for a claimed one. */
export function keyOwner(owner: KeyOwner): string {
  return `${owner.userId}:${owner.keyId}:${owner.proven ? 'p' : 'c'}`;
}

export function parseKeyOwner(value: string): KeyOwner {
  const [, userId, keyId, proof] = KEY_OWNER_PATTERN.exec(value) ?? [];
  if (userId === undefined || keyId === undefined) throw new Error('unreadable owner of a key');
  return { userId, keyId, proven: proof === 'p' };
}

export function sessionOwner(owner: SessionOwner): string {
  return `${owner.userId}:${owner.sessionId}`;
}

export function parseSessionOwner(value: string): SessionOwner {
  const end = value.indexOf(':');
  if (end <= 0 || end === value.length - 1) throw new Error('unreadable owner of a session');
  return { userId: value.slice(0, end), sessionId: value.slice(end + 1) };
}

const SESSION_INDEXES: Readonly<Record<SessionKind, IndexName>> = {
  browser: 'sidHash',
  mcp: 'sessionHash',
  contactSync: 'contactSync',
};

/** Tokens of each kind are a name space of their own: a `sid` is never a bearer. */
export function sessionIndex(kind: SessionKind): IndexName {
  return SESSION_INDEXES[kind];
}
