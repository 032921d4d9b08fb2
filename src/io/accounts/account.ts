/** Sessions, login log and keys of an account: shared by the REST routes and the gateway tools of /mcp, with their schemas. */

import { hash } from 'node:crypto';
import { user } from '../../actors/accounts/user.ts';
import type { ClosedSessions } from '../../actors/accounts/user-sessions.ts';
import type { Origin } from '../../actors/change.ts';
import type { ActorSystem, AskOptions } from '../../actors/runtime/actor.ts';
import { GatewayError } from '../../domain/errors.ts';
import { ID_EXAMPLE, KEY_EXAMPLE } from '../../domain/examples.ts';
import { hasFlag, KeyFlag, keyTypeOf, type UserKey } from '../../domain/keys.ts';
import {
  array,
  boolean,
  idText,
  integer,
  literal,
  named,
  nullable,
  object,
  oneOf,
  optional,
  type Static,
  text,
  utcText,
} from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { toIso } from '../../domain/time.ts';
import type { TraceSpan } from '../tracing/span.ts';

/** Spec 2.2. Extensions: `browserLogin`, `name`, `lastUsedUtc`, `proven`, and `backedUp` of passkeys. */
export const userKeySchema = named(
  'UserKey',
  object({
    id: idText(),
    publicKey: text({
      description: 'Base64url; of a passkey its credential id',
      examples: [KEY_EXAMPLE],
    }),
    keyType: oneOf(['PasswordKey', 'UserKey', 'FIDO2', 'Unknown']),
    utcCreate: utcText(),
    current: boolean(),
    mcpAccess: boolean(),
    cardDavAccess: boolean(),
    browserLogin: boolean(),
    proven: boolean(),
    name: optional(text({ examples: ['Laptop'] })),
    lastUsedUtc: optional(utcText()),
    backedUp: optional(boolean()),
  }),
);

export const sessionSchema = named(
  'Session',
  object({
    id: idText(),
    kind: oneOf(['browser', 'mcp']),
    loginType: nullable(text({ examples: ['McpVerified'] })),
    keyId: nullable(idText()),
    appId: nullable(idText()),
    createdUtc: utcText(),
    lastSeenUtc: utcText(),
    expiresUtc: utcText(),
    ip: text({ examples: ['203.0.113.7'] }),
    userAgent: text({ examples: ['Mozilla/5.0'] }),
    current: boolean(),
  }),
);

export const loginSchema = named(
  'Login',
  object({
    id: idText(),
    utc: utcText(),
    event: text({ examples: ['login'] }),
    ok: boolean(),
    error: nullable(
      text({ description: 'Row of the error table; null: it succeeded', examples: ['InvalidSignature'] }),
    ),
    kind: oneOf(['browser', 'mcp', 'contactSync']),
    loginType: nullable(text({ examples: ['McpVerified'] })),
    keyId: nullable(idText()),
    appId: nullable(idText()),
    ip: text({ examples: ['203.0.113.7'] }),
    userAgent: text({ examples: ['Mozilla/5.0'] }),
  }),
);

/** With neither field all sessions of the account end, the calling one included. Both fields are `InvalidInput`. */
export const closeSessionsSchema = object({
  sessionIds: optional(
    array(text({ minLength: 1, maxLength: 20, examples: [ID_EXAMPLE] }), {
      minItems: 1,
      maxItems: 1000,
    }),
  ),
  others: optional(literal(true)),
});

export const closedSessionsSchema = object({ sessionsClosed: integer() });

type UserKeyItem = Static<typeof userKeySchema>;
export type SessionItem = Static<typeof sessionSchema>;
type LoginItem = Static<typeof loginSchema>;
type CloseSessions = Static<typeof closeSessionsSchema>;

export interface AccountCall {
  readonly actors: ActorSystem;
  readonly settings: SettingsReader;
  readonly session: SessionContext;
  readonly origin: Origin;
  readonly nowMs: number;
  readonly idempotencyKey?: string | undefined;
  /** A repeat with the same idempotency key must have the same body. */
  readonly body?: unknown;
  /** Span of a sampled request. */
  readonly span?: TraceSpan | undefined;
}

export function userKeyItem(key: UserKey, currentKeyId: string | null): UserKeyItem {
  return {
    id: key.id,
    publicKey: key.publicKey,
    keyType: keyTypeOf(key.flags),
    utcCreate: toIso(key.createdMs),
    current: key.id === currentKeyId,
    mcpAccess: hasFlag(key.flags, KeyFlag.McpAccess),
    cardDavAccess: hasFlag(key.flags, KeyFlag.CardDav),
    browserLogin: !hasFlag(key.flags, KeyFlag.NoBrowserLogin),
    proven: key.proven,
    ...(key.name === undefined ? {} : { name: key.name }),
    ...(key.lastUsedMs === undefined ? {} : { lastUsedUtc: toIso(key.lastUsedMs) }),
    ...(key.backedUp === undefined ? {} : { backedUp: key.backedUp }),
  };
}

/** Live sessions of the account, the oldest first. */
export async function listSessions({ actors, session }: AccountCall): Promise<SessionItem[]> {
  const records = await actors.query(user, session.userId, { type: 'sessions' });
  return records.map((record) => ({
    id: record.id,
    kind: record.kind,
    loginType: record.loginType,
    keyId: record.keyId,
    appId: record.appId,
    createdUtc: toIso(record.createdMs),
    lastSeenUtc: toIso(record.lastSeenMs),
    expiresUtc: toIso(record.expiresMs),
    ip: record.ip,
    userAgent: record.userAgent,
    current: record.id === session.id,
  }));
}

/** The last logins and refused attempts, the newest first. */
export async function listLogins({ actors, session }: AccountCall): Promise<LoginItem[]> {
  const entries = await actors.query(user, session.userId, { type: 'logins' });
  return entries.map(({ utcMs, id, ...entry }) => ({ id, utc: toIso(utcMs), ...entry }));
}

/**
 * Active keys of the account, in the order of their creation. An unproven session sees only the key that it named, without
 * the name that a person gave it and without its last use.
 */
export async function listKeys({ actors, session }: AccountCall): Promise<UserKeyItem[]> {
  const keys = await actors.query(user, session.userId, { type: 'keys' });
  const items = keys.map((key) => userKeyItem(key, session.keyId));
  if (session.proven) return items;
  return items.filter(({ current }) => current).map(({ name: _, lastUsedUtc: __, ...item }) => item);
}

/** Ends sessions. An id that is not a session of the account: `NotFound`, and none is ended. */
export async function closeSessions(call: AccountCall, request: CloseSessions): Promise<ClosedSessions> {
  const { sessionIds, others } = request;
  if (sessionIds !== undefined && others !== undefined)
    throw new GatewayError('InvalidInput', 'sessionIds and others exclude each other');
  const command = {
    type: 'closeSessions' as const,
    currentSessionId: call.session.id,
    ...(sessionIds === undefined ? {} : { sessionIds }),
    ...(others === undefined ? {} : { others }),
    origin: call.origin,
  };
  return call.actors.ask(user, call.session.userId, command, askOptions('close_sessions', call));
}

/**
 * All operations of an account share one ring of idempotency keys, so a key is scoped to its operation. The fingerprint
 * of the body is the first 128 bits of its SHA-256.
 */
export function askOptions(
  operation: string,
  { idempotencyKey, body }: { readonly idempotencyKey?: string | undefined; readonly body?: unknown },
): AskOptions {
  if (idempotencyKey === undefined) return {};
  const fingerprint = hash('sha256', JSON.stringify(body) ?? '', 'base64url').slice(0, 22);
  return { idempotencyKey: `${operation}:${idempotencyKey}`, fingerprint };
}
