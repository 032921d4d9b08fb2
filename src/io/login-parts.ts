/**
 * Parts that sign-up, login and MCP login share: strict reading of what a key holder sends, challenges, the look-up of
 * a key, records of refusals that no account can hold.
 */
import { CHALLENGES_ID, type Challenge, type ChallengeCommand, challenges } from '../actors/challenges.ts';
import { type KeyOwner, parseKeyOwner, type SessionOwner } from '../actors/owners.ts';
import type { ActorSystem, AuditRecord } from '../actors/runtime/actor.ts';
import type { Origin } from '../actors/user-change.ts';
import { ERRORS, type ErrorName, GatewayError } from '../domain/errors.ts';
import { decodeBase64url, parseId } from '../domain/ids.ts';
import { type ChallengeKind, signPrefix } from '../domain/proofs.ts';
import { int64, readId, text } from '../domain/schema.ts';
import type { LoginType } from '../domain/sessions.ts';
import { toIso } from '../domain/time.ts';
import { requestIdsOf } from './audit-fields.ts';
import type { RouteContext } from './http/route.ts';

export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
/** Bytes of a challenge and of its `code`. */
export const SECRET_BYTES = 32;

/** Fields that register_options and login_options share. */
export const challengeFields = {
  challengeId: { type: 'integer' } as const,
  code: text(),
  challenge: text(),
  expiresUtc: text(),
  signPrefix: text(),
};
export const challengeIdSchema = int64('Number or decimal string, from register_options or login_options');

type Context = RouteContext<unknown, unknown>;

export function originOf({ client }: Pick<Context, 'client'>): Origin {
  return { ip: client.address, userAgent: client.userAgent };
}

/** Where a login comes from, and the session whose `sid` came with it: that one ends (auth.md A6). */
export function circumstances(context: Context): { origin: Origin; previous?: SessionOwner } {
  const { session } = context;
  return {
    origin: originOf(context),
    ...(session === undefined ? {} : { previous: { userId: session.userId, sessionId: session.id } }),
  };
}

/** Canonical base64url of exactly `byteLength` bytes (auth.md A2); anything else is `InvalidInput`. */
export function requireBytes(value: string, byteLength: number, field: string): Buffer {
  const bytes = decodeBase64url(value, byteLength);
  if (bytes === undefined)
    throw new GatewayError('InvalidInput', `${field}: expected ${byteLength} bytes in base64url`);
  return bytes;
}

/** Throws `InvalidInput` that names the field for an id above int64; a schema has seen to the rest. */
export function requireId(sent: string | number, field: string): string {
  const id = readId(sent);
  if (id === undefined) throw new GatewayError('InvalidInput', `${field}: expected a decimal id`);
  return id;
}

export function openChallenge(
  { actors, session, site, bounds, holder }: Context,
  kind: ChallengeKind,
): Challenge {
  const command: ChallengeCommand = {
    type: 'openChallenge',
    kind,
    userId: session?.userId ?? null,
    sessionId: session?.id ?? null,
    take: () => bounds.of('challenges').take(holder),
    leewayMs: site.fido2.timestampDriftToleranceMs,
  };
  return actors.now<Challenge>(challenges, CHALLENGES_ID, command);
}

/** A number below 2^53, also as a decimal string; anything else is `InvalidInput`. */
export function readChallengeId(challengeId: string | number): number {
  const id = Number(parseId(challengeId));
  if (!Number.isSafeInteger(id)) throw new GatewayError('InvalidInput', 'challengeId');
  return id;
}

/** Takes the challenge out of the store, before anything is verified. Throws `InvalidInput`, `ChallengeExpired`. */
export function consumeChallenge(
  { actors, session }: Context,
  challengeId: string | number,
  kinds: readonly ChallengeKind[],
  options: { readonly orAnonymous?: boolean; readonly idempotencyKey?: string } = {},
): Challenge {
  const id = readChallengeId(challengeId);
  const command: ChallengeCommand = {
    type: 'consumeChallenge',
    id,
    kinds,
    userId: session?.userId ?? null,
    sessionId: session?.id ?? null,
    ...options,
  };
  return actors.now<Challenge>(challenges, CHALLENGES_ID, command);
}

/**
 * Takes the challenge of a registration, and takes it out for good when the request has its answer (auth.md A4): only a
 * repeat that comes while the first is under way finds it again.
 */
export async function usingChallenge<T>(
  context: Context,
  challengeId: string | number,
  kinds: readonly ChallengeKind[],
  run: (challenge: Challenge) => Promise<T>,
): Promise<T> {
  const { session, idempotencyKey, actors } = context;
  const repeatable = session !== undefined && idempotencyKey !== undefined;
  let challenge: Challenge;
  try {
    challenge = consumeChallenge(context, challengeId, kinds, repeatable ? { idempotencyKey } : {});
  } catch (error) {
    if (error instanceof GatewayError && error.row === 'ChallengeExpired')
      auditRefusal(context, null, 'ChallengeExpired');
    throw error;
  }
  try {
    return await run(challenge);
  } finally {
    const command: ChallengeCommand = { type: 'spendChallenge', id: challenge.id };
    actors.now(challenges, CHALLENGES_ID, command);
  }
}

export function challengePrefix({ site }: Context, { kind, id, challenge }: Challenge): string {
  return signPrefix(kind, site.fido2.rpId, id, challenge);
}

export function challengeView(context: Context, opened: Challenge) {
  return {
    challengeId: opened.id,
    code: opened.code,
    challenge: opened.challenge,
    expiresUtc: toIso(opened.expiresMs),
    signPrefix: challengePrefix(context, opened),
  };
}

/** Whose software key this is, by the decoded bytes in their one spelling (auth.md A2, A3). */
export function holderOf(actors: ActorSystem, publicKey: string): KeyOwner | undefined {
  const owner = actors.lookup('publicKey', publicKey);
  return owner === undefined ? undefined : parseKeyOwner(owner);
}

/** Whose credential this is (auth.md A3: never a software key). */
export function credentialHolderOf(actors: ActorSystem, credentialId: string): KeyOwner | undefined {
  const owner = actors.lookup('credentialId', credentialId);
  return owner === undefined ? undefined : parseKeyOwner(owner);
}

/** Runs a login. One whose key turns out to be unknown counts against the address (auth.md A12). */
export async function countingUnknownKeys<T>(
  context: Context,
  loginType: LoginType | null,
  login: () => Promise<T>,
): Promise<T> {
  try {
    return await login();
  } catch (error) {
    if (
      error instanceof GatewayError &&
      (error.row === 'SessionNotFound' || error.row === 'AccountNotFound')
    ) {
      context.limiter.chargeUnknownKey();
      auditRefusal(context, loginType, error.row);
    }
    throw error;
  }
}

/**
 * Whatever a registration answers about a software key is worth a guess at a password, so it spends the budget of
 * unknown keys (auth.md A12): a claim always, since its success tells that nobody has the key, a proof that fails.
 */
export async function countingGuesses<T>(
  { limiter }: Context,
  proven: boolean,
  run: () => Promise<T>,
): Promise<T> {
  if (!proven) {
    limiter.chargeUnknownKey();
    return run();
  }
  try {
    return await run();
  } catch (error) {
    const telling =
      error instanceof GatewayError &&
      (error.row === 'InvalidSignature' || error.row === 'KeyAlreadyRegistered');
    if (telling) limiter.chargeUnknownKey();
    throw error;
  }
}

/** A refusal before any account is known. The key is left out: of a password it would be a trace. */
export function auditRefusal(context: Context, loginType: LoginType | null, row: ErrorName): void {
  const record: AuditRecord = {
    utcMs: context.nowMs,
    event: 'login_refused',
    userId: null,
    fields: {
      ip: context.client.address,
      loginType,
      error: ERRORS[row].message,
      ...requestIdsOf(context),
    },
  };
  context.actors.auditRefusal(record, context.client.address);
}

/** What a registration or key change is refused for once its form was right. `usingChallenge` records the challenge. */
const KEY_REFUSALS: ReadonlySet<ErrorName> = new Set<ErrorName>([
  'InvalidSignature',
  'KeyLimitReached',
  'KeyAlreadyRegistered',
  'KeyNotFound',
  'FreshLoginRequired',
  'Forbidden',
]);

/** Runs a sign-up or key change and records its refusal; those of one user share a budget, as of one network. */
export async function auditingKeyRefusals<T>(
  context: Context,
  operation: string,
  run: () => Promise<T>,
): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof GatewayError && KEY_REFUSALS.has(error.row)) {
      const { actors, session, client, nowMs } = context;
      const record: AuditRecord = {
        utcMs: nowMs,
        event: session === undefined ? 'sign_up_refused' : 'key_change_refused',
        userId: session?.userId ?? null,
        fields: { ip: client.address, operation, error: ERRORS[error.row].message, ...requestIdsOf(context) },
      };
      const sharer = session === undefined ? client.address : `user ${session.userId}`;
      actors.auditRefusal(record, sharer);
    }
    throw error;
  }
}
