/**
 * Records of an account as memory keeps them: written out field by field, so that all are of one shape without room to
 * spare, and with texts that others hold already. Decoded from a row, a session takes half as much again
 * (docs/optimizations.md).
 */
import type { UserKey } from '../../domain/keys.ts';
import { shared } from '../runtime/journal/shared-texts.ts';
import { findById } from './id-list.ts';
import type { LogEntry, LogEventName } from './login-log.ts';
import type { SessionRecord, UserState } from './user-types.ts';

/** Its key is known by the same text as the record of the key. */
export function keptSession(session: SessionRecord, keys: UserState['keys']): SessionRecord {
  const { keyId, loginType, signed, grantId, entry, name } = session;
  const kept: SessionRecord = {
    id: session.id,
    kind: shared(session.kind),
    loginType: loginType === null ? null : shared(loginType),
    keyId: keyId === null ? null : (findById(keys, keyId)?.id ?? keyId),
    appId: session.appId,
    hash: session.hash,
    createdMs: session.createdMs,
    lastSeenMs: session.lastSeenMs,
    expiresMs: session.expiresMs,
    ip: session.ip,
    userAgent: shared(session.userAgent),
  };
  if (signed !== undefined) Object.assign(kept, { signed });
  if (entry !== undefined) Object.assign(kept, { entry });
  if (name !== undefined) Object.assign(kept, { name });
  return grantId === undefined ? kept : Object.assign(kept, { grantId });
}

/** A software key without a name is all that most accounts have: the fields of others follow. */
export function keptKey(key: UserKey, userId: string): UserKey {
  const {
    id,
    ownerId: owner,
    publicKey,
    signatureCounter,
    flags,
    createdMs,
    proven,
    lastUsedMs,
    ...rest
  } = key;
  // Equal, but another string: the account's own is held already.
  const ownerId = owner === userId ? userId : owner;
  const kept: UserKey =
    lastUsedMs === undefined
      ? { id, ownerId, publicKey, signatureCounter, flags, createdMs, proven }
      : { id, ownerId, publicKey, signatureCounter, flags, createdMs, proven, lastUsedMs };
  return Object.assign(kept, rest);
}

/** Makes the log entry of a session: without more, that of its opening, which is an entry under the same id. */
export function entryOf(
  session: SessionRecord,
  event: LogEventName,
  { id, utcMs }: Pick<LogEntry, 'id' | 'utcMs'> = { id: session.id, utcMs: session.createdMs },
): LogEntry {
  const { kind, loginType, keyId, appId, ip, userAgent } = session;
  return {
    id,
    utcMs,
    event: shared(event),
    ok: true,
    error: null,
    kind,
    loginType,
    keyId,
    appId,
    ip,
    userAgent,
  };
}
