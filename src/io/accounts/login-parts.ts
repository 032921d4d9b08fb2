/** Shared by sign-up, login and MCP login: strict parsing, challenges, key look-up, audit records of refusals. */

import { type KeyOwner, parseKeyOwner, type SessionOwner } from '../../actors/accounts/owners.ts';
import type { UsedChallenge } from '../../actors/accounts/user-types.ts';
import type { Origin } from '../../actors/change.ts';
import type { ActorSystem, AuditRecord } from '../../actors/runtime/actor.ts';
import type { Challenge } from '../../domain/challenges.ts';
import { ERRORS, type ErrorName, errorRow, GatewayError } from '../../domain/errors.ts';
import { KEY_EXAMPLE } from '../../domain/examples.ts';
import { decodeBase64url, parseId } from '../../domain/ids.ts';
import type { SharedBound } from '../../domain/limits/shares.ts';
import { type ChallengeKind, signPrefix } from '../../domain/proofs.ts';
import { int64, readId, text, utcText } from '../../domain/schema.ts';
import type { LoginType } from '../../domain/sessions.ts';
import { SECOND_MS, toIso } from '../../domain/time.ts';
import type { RouteContext } from '../http/table/route.ts';
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

/** Origin of a login, and the session of the `sid` that came with it, which the login ends (spec 5.3). */
export function circumstances(context: Context): { origin: Origin; previous?: SessionOwner } {
  const { session } = context;
  return {
    origin: originOf(context),
    ...(session === undefined ? {} : { previous: { userId: session.userId, sessionId: session.id } }),
  };
}

/** Decodes canonical base64url of exactly `byteLength` bytes. Anything else is `InvalidInput`. */
export function requireBytes(value: string, byteLength: number, field: string): Buffer {
  const bytes = decodeBase64url(value, byteLength);
  if (bytes === undefined)
    throw new GatewayError('InvalidInput', `${field}: expected ${byteLength} bytes in base64url`);
  return bytes;
}

/** Throws `InvalidInput` that names the field for an id above int64. Schemas check everything else. */
export function requireId(sent: string | number, field: string): string {
  const id = readId(sent);
  if (id === undefined) throw new GatewayError('InvalidInput', `${field}: expected a decimal id`);
  return id;
}

/** Throws `AccessRateLimit` when the network has used up its share of open challenges. */
export function openChallenge(
  deps: ChallengeDeps,
  context: Context,
  kind: ChallengeKind,
  subject?: string,
): Challenge {
  const { session, settings } = context;
  const binding = {
    kind,
    userId: session?.userId ?? null,
    sessionId: session?.id ?? null,
    ...(subject === undefined ? {} : { subject }),
  };
  const lifetimeMs = settings.get('ChallengeSeconds') * SECOND_MS;
  return deps.challenges.open(binding, lifetimeMs, termsOf(deps, context));
}

function termsOf({ openBound }: ChallengeDeps, { nowMs, site, holder }: Context): ChallengeTerms {
  const takeSlot = () => openBound.take(holder);
  return { nowMs, leewayMs: site.fido2.timestampDriftToleranceMs, takeSlot };
}

/** The part of a used challenge that the account stores. */
export function usedOf({ site }: Context, { id, expiresMs }: Challenge): UsedChallenge {
  return { id, endsMs: expiresMs + site.fido2.timestampDriftToleranceMs };
}

/** A number below 2^53, also as a decimal string; anything else is `InvalidInput`. */
export function readChallengeId(challengeId: string | number): number {
  const id = Number(parseId(challengeId));
  if (!Number.isSafeInteger(id)) throw new GatewayError('InvalidInput', 'challengeId');
  return id;
}

interface ChallengeUse extends Pick<TakeChallenge, 'kinds' | 'orAnonymous' | 'subject'> {
  readonly challengeId: string | number;
  /** With an Idempotency-Key, a repeat gets the challenge too while the first request runs, and after a 503. */
  readonly repeatable?: boolean;
}

/** The answer of the request that this one repeats; undefined while there is none. */
export type FirstAnswer<T> = () => Promise<T | undefined>;

/**
 * Uses the challenge up before anything is verified (decision 0014). Throws `InvalidInput`, `ChallengeExpired`, and what
 * `run` throws.
 */
export async function usingChallenge<T>(
  deps: ChallengeDeps,
  context: Context,
  { challengeId, repeatable, ...use }: ChallengeUse,
  run: (challenge: Challenge) => Promise<T>,
  first?: FirstAnswer<T>,
): Promise<T> {
  const { challenges } = deps;
  const { session, idempotencyKey } = context;
  const request: TakeChallenge = {
    id: readChallengeId(challengeId),
    userId: session?.userId ?? null,
    sessionId: session?.id ?? null,
    ...use,
    ...(repeatable === true && idempotencyKey !== undefined ? { idempotencyKey } : {}),
  };
  let taken: Challenge | undefined;
  try {
    taken = challenges.take(request, termsOf(deps, context));
    const opened = await run(taken);
    challenges.spent(taken.id);
    return opened;
  } catch (error) {
    const mayComeAgain = request.idempotencyKey !== undefined && isUnavailable(error);
    if (taken !== undefined && !mayComeAgain) challenges.failed(taken.id);
    if (!(error instanceof GatewayError && error.row === 'ChallengeExpired')) throw error;
    // It may have been answered since the caller looked, which in a cluster takes a moment.
    const answered = taken === undefined ? await first?.() : undefined;
    if (answered !== undefined) return answered;
    auditRefusal(context, null, 'ChallengeExpired');
    throw error;
  }
}

/** Without a verdict: the command may have happened or not, and no guess was answered. */
function isUnavailable(error: unknown): boolean {
  return error instanceof GatewayError && errorRow(error.row).status === 503;
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

/** The owner of a software key. The key is canonical base64url, so equal keys have equal texts. */
export function holderOf(actors: ActorSystem, publicKey: string): KeyOwner | undefined {
  const owner = actors.lookup('publicKey', publicKey);
  return owner === undefined ? undefined : parseKeyOwner(owner);
}

/** The owner of a passkey credential. Credential ids have an index of their own, so they never match software keys. */
export function credentialHolderOf(actors: ActorSystem, credentialId: string): KeyOwner | undefined {
  const owner = actors.lookup('credentialId', credentialId);
  return owner === undefined ? undefined : parseKeyOwner(owner);
}

/** Runs a login. An unknown key is charged to the budget of the address (spec 5.3). */
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
 * A registration shows whether a software key exists, and such a key may be derived from a password. So it is charged to
 * the budget of unknown keys: a claim always, because success also tells that the key is free, and a failed proof.
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
    const tellsWhetherKeyExists =
      error instanceof GatewayError &&
      (error.row === 'InvalidSignature' || error.row === 'KeyAlreadyRegistered');
    if (tellsWhetherKeyExists) limiter.chargeUnknownKey();
    throw error;
  }
}

/** Audits a refusal before the account is known. The key is left out, because it may be derived from a password. */
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

/** Refusals of a well-formed registration or key change. `usingChallenge` records those of the challenge. */
const KEY_REFUSALS: ReadonlySet<ErrorName> = new Set<ErrorName>([
  'InvalidSignature',
  'KeyLimitReached',
  'KeyAlreadyRegistered',
  'KeyNotFound',
  'FreshLoginRequired',
  'Forbidden',
]);

/** Runs a sign-up or key change and audits its refusal, within a budget for each user or network. */
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
