/**
 * Parts that sign-up, login and MCP login share: strict reading of what a key holder sends, challenges, the look-up of
 * a key, records of refusals that no account can hold.
 */

import { type KeyOwner, parseKeyOwner, type SessionOwner } from '../../actors/accounts/owners.ts';
import type { UsedChallenge } from '../../actors/accounts/user-types.ts';
import type { Origin } from '../../actors/change.ts';
import type { ActorSystem, AuditRecord } from '../../actors/runtime/actor.ts';
import type { Challenge } from '../../domain/challenges.ts';
import { ERRORS, type ErrorName, GatewayError } from '../../domain/errors.ts';
import { KEY_EXAMPLE } from '../../domain/examples.ts';
import { decodeBase64url, parseId } from '../../domain/ids.ts';
import type { SharedBound } from '../../domain/limits/shares.ts';
import { type ChallengeKind, signPrefix } from '../../domain/proofs.ts';
import { int64, readId, text, utcText } from '../../domain/schema.ts';
import type { LoginType } from '../../domain/sessions.ts';
import { SECOND_MS, toIso } from '../../domain/time.ts';
import type { RouteContext } from '../http/route.ts';
import { requestIdsOf } from '../observability/audit-fields.ts';
import type { Challenges, ChallengeTerms, TakeChallenge } from './challenges.ts';

export const PUBLIC_KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;
/** Bytes of a challenge and of its `code`. */
export const SECRET_BYTES = 32;

/** Fields that register_options and login_options share. */
export const challengeFields = {
  challengeId: { type: 'integer' } as const,
  code: text({
    description: 'To be sent with the answer where nothing is signed',
    examples: [KEY_EXAMPLE],
  }),
  challenge: text({
    description: 'For navigator.credentials; part of `options` too',
    examples: [KEY_EXAMPLE],
  }),
  expiresUtc: utcText(),
  signPrefix: text({
    description: 'A software key signs this and its public key in base64url behind it, as UTF-8',
    examples: ['gateway-auth/v1\nlogin\ngate.example\n7\nAQIDBAUGBwg\n'],
  }),
};
export const challengeIdSchema = int64('Number or decimal string, from register_options or login_options');

type Context = RouteContext<unknown, unknown>;

export interface ChallengeDeps {
  readonly challenges: Challenges;
  /** Challenges that may be open at once. */
  readonly openBound: SharedBound;
}

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

/** Throws `AccessRateLimit` when the network has its share of the open ones. */
export function openChallenge(deps: ChallengeDeps, context: Context, kind: ChallengeKind): Challenge {
  const { session, settings } = context;
  const binding = { kind, userId: session?.userId ?? null, sessionId: session?.id ?? null };
  const lifetimeMs = settings.get('ChallengeSeconds') * SECOND_MS;
  return deps.challenges.open(binding, lifetimeMs, termsOf(deps, context));
}

function termsOf({ openBound }: ChallengeDeps, { nowMs, site, holder }: Context): ChallengeTerms {
  const place = () => openBound.take(holder);
  return { nowMs, leewayMs: site.fido2.timestampDriftToleranceMs, place };
}

/** What the account keeps of a challenge that it was used by. */
export function usedOf({ site }: Context, { id, expiresMs }: Challenge): UsedChallenge {
  return { id, endsMs: expiresMs + site.fido2.timestampDriftToleranceMs };
}

/** A number below 2^53, also as a decimal string; anything else is `InvalidInput`. */
export function readChallengeId(challengeId: string | number): number {
  const id = Number(parseId(challengeId));
  if (!Number.isSafeInteger(id)) throw new GatewayError('InvalidInput', 'challengeId');
  return id;
}

interface ChallengeUse extends Pick<TakeChallenge, 'kinds' | 'orAnonymous'> {
  readonly challengeId: string | number;
  /** With an Idempotency-Key a repeat while the first is under way gets the challenge too. */
  readonly repeatable?: boolean;
}

/**
 * Uses the challenge up before anything is verified (auth.md A4); one that opened something is kept by the account then.
 * Throws `InvalidInput`, `ChallengeExpired`, and what `run` throws.
 */
export async function usingChallenge<T>(
  deps: ChallengeDeps,
  context: Context,
  { challengeId, repeatable, ...use }: ChallengeUse,
  run: (challenge: Challenge) => Promise<T>,
): Promise<T> {
  const { challenges } = deps;
  const { session, idempotencyKey } = context;
  const asked: TakeChallenge = {
    id: readChallengeId(challengeId),
    userId: session?.userId ?? null,
    sessionId: session?.id ?? null,
    ...use,
    ...(repeatable === true && idempotencyKey !== undefined ? { idempotencyKey } : {}),
  };
  let taken: Challenge | undefined;
  try {
    taken = challenges.take(asked, termsOf(deps, context));
    const opened = await run(taken);
    challenges.spent(taken.id);
    return opened;
  } catch (error) {
    if (taken !== undefined) challenges.failed(taken.id);
    if (error instanceof GatewayError && error.row === 'ChallengeExpired')
      auditRefusal(context, null, 'ChallengeExpired');
    throw error;
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
