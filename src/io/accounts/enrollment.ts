/**
 * Registration of a key (spec 4.3). With a session the key joins the account, by claim or by proof; without one it creates
 * an account, by proof only. Defines the order of the checks.
 */
import { timingSafeEqual } from 'node:crypto';
import { user } from '../../actors/accounts/user.ts';
import type { AddedKey, AddKey } from '../../actors/accounts/user-enrollment.ts';
import type { AddPasskey } from '../../actors/accounts/user-passkeys.ts';
import type { SignedUp, SignUp } from '../../actors/accounts/user-sign-up.ts';
import type { UsedChallenge } from '../../actors/accounts/user-types.ts';
import type { Proof } from '../../actors/accounts/verification.ts';
import type { Challenge } from '../../domain/challenges.ts';
import { GatewayError } from '../../domain/errors.ts';
import { decodeBase64url } from '../../domain/ids.ts';
import type { UserKey } from '../../domain/keys.ts';
import { browserMessage } from '../../domain/proofs.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { Ceremony } from '../../workers/fido2.ts';
import type { RouteContext } from '../http/table/route.ts';
import { askOptions } from './account.ts';
import {
  type ChallengeDeps,
  challengePrefix,
  countingGuesses,
  credentialHolderOf,
  type FirstAnswer,
  holderOf,
  originOf,
  PUBLIC_KEY_BYTES,
  requireBytes,
  SECRET_BYTES,
  SIGNATURE_BYTES,
  usedOf,
  usingChallenge,
} from './login-parts.ts';
import {
  type AttestationJson,
  ceremonyOf,
  checkAttestation,
  NO_CEREMONY,
  readAttestation,
} from './passkeys.ts';

/** Attempts when the holder of the key changed while a proof was verified. A proof wins over a claim. */
const TRIES = 2;

export interface Registration {
  readonly challengeId: string | number;
  readonly code: string;
  readonly credential?: AttestationJson;
  readonly publicKey?: string;
  readonly passKeyFlag?: boolean;
  /** False: the key may only use MCP. */
  readonly browserLogin?: boolean;
  readonly name?: string;
}

export interface Registered {
  readonly key: UserKey;
  readonly userId: string;
  readonly newAccount: boolean;
  /** The key is the one of the caller's session. */
  readonly current: boolean;
  readonly replaced: readonly string[];
  readonly expiresMs: number;
  readonly opened?: { readonly token: string; readonly createdMs: number };
}

type Context = RouteContext<unknown, unknown>;

export async function register(
  deps: ChallengeDeps,
  context: Context,
  request: Registration,
): Promise<Registered> {
  const { publicKey, credential, passKeyFlag } = request;
  if ((publicKey === undefined) === (credential === undefined))
    throw new GatewayError('InvalidInput', 'exactly one of publicKey and credential is required');
  if (credential !== undefined && passKeyFlag === true)
    throw new GatewayError('InvalidInput', 'passKeyFlag goes with publicKey');
  if (request.browserLogin === false) checkMcpKey(context, request);
  if (credential !== undefined) return registerPasskey(deps, context, request, credential);
  if (publicKey === undefined) throw new GatewayError('InvalidInput', 'publicKey: is required');
  requireBytes(publicKey, PUBLIC_KEY_BYTES, 'publicKey');
  const { session } = context;
  const first = firstAnswer(context, (own) => join(context, own, request, publicKey, {}));
  const answered = await first();
  if (answered !== undefined) return answered;
  const answer = readCode(request.code, session === undefined);
  context.limiter.checkUnknownKeys();
  const { challengeId } = request;
  const use = { challengeId, kinds: ['register', 'login'], repeatable: session !== undefined } as const;
  return usingChallenge(
    deps,
    context,
    use,
    (challenge) => registerKey(context, request, publicKey, answer, challenge),
    first,
  );
}

/** A key that may only use MCP joins an account: a new account would have no way in. */
function checkMcpKey({ session }: Context, { credential, passKeyFlag }: Registration): void {
  if (credential !== undefined)
    throw new GatewayError('InvalidInput', 'browserLogin: a passkey logs in to browsers alone');
  if (passKeyFlag === true)
    throw new GatewayError('InvalidInput', 'browserLogin: a key with passKeyFlag logs in to browsers');
  if (session === undefined)
    throw new GatewayError('InvalidInput', 'browserLogin: false needs the session of an account');
}

async function registerKey(
  context: Context,
  request: Registration,
  publicKey: string,
  answer: ReturnType<typeof readCode>,
  challenge: Challenge,
): Promise<Registered> {
  const { session } = context;
  if (answer.echo !== undefined && !isCodeOf(challenge, answer.echo))
    throw new GatewayError('ChallengeExpired');
  const message = browserMessage(challengePrefix(context, challenge), publicKey);
  const proof = answer.signature === undefined ? undefined : { message, signature: answer.signature };
  return countingGuesses(context, proof !== undefined, async () => {
    const used = usedOf(context, challenge);
    if (session !== undefined)
      return join(context, session, request, publicKey, { challenge: used, ...(proof && { proof }) });
    if (proof === undefined) throw new GatewayError('InvalidInput', 'code: expected a signature');
    return found(context, challenge, request, publicKey, proof);
  });
}

/** A repeat gets the first reply, although its challenge is used up. `answer` asks the actor, which has kept it. */
function firstAnswer(
  { actors, session, idempotencyKey }: Context,
  answer: (session: SessionContext) => Promise<Registered>,
): FirstAnswer<Registered> {
  const { idempotencyKey: key } = askOptions('register_key', { idempotencyKey });
  return async () => {
    if (session === undefined || key === undefined) return undefined;
    return (await actors.remembers(user, session.userId, key)) ? answer(session) : undefined;
  };
}

/** `code` echoes the challenge; the ceremony is the proof of possession. */
async function registerPasskey(
  deps: ChallengeDeps,
  context: Context,
  request: Registration,
  credential: AttestationJson,
): Promise<Registered> {
  const { session, actors } = context;
  const code = requireBytes(request.code, SECRET_BYTES, 'code');
  checkAttestation(credential);
  const holder = credentialHolderOf(actors, credential.id);
  const parts = (ceremony: Ceremony) => ({
    offer: readAttestation(ceremony, credential),
    origin: originOf(context),
    ...(request.name === undefined ? {} : { name: request.name }),
    ...(holder === undefined ? {} : { holder }),
  });
  const add = async ({ id, userId }: SessionContext, ceremony: Ceremony, challenge?: UsedChallenge) => {
    const answered = challenge === undefined ? {} : { challenge };
    const command: AddPasskey = { type: 'addPasskey', sessionId: id, ...answered, ...parts(ceremony) };
    return actors.ask(user, userId, command, askOptions('register_key', context));
  };
  const first = firstAnswer(context, async (own) => joined(own, await add(own, NO_CEREMONY)));
  const answered = await first();
  if (answered !== undefined) return answered;
  const { challengeId } = request;
  const use = { challengeId, kinds: ['register'], repeatable: session !== undefined } as const;
  const run = async (challenge: Challenge) => {
    if (!isCodeOf(challenge, code)) throw new GatewayError('ChallengeExpired');
    const ceremony = ceremonyOf(context.site, challenge);
    const used = usedOf(context, challenge);
    if (session !== undefined) return joined(session, await add(session, ceremony, used));
    const { newHandle: handle } = challenge;
    const command: SignUp = { type: 'signUp', handle, challenge: used, ...parts(ceremony) };
    return welcome(await actors.ask(user, challenge.newUserId, command));
  };
  return usingChallenge(deps, context, use, run, first);
}

/** With a session `code` may echo the code of the challenge, which is a claim. A signature is a proof. */
function readCode(code: string, proofRequired: boolean): { echo?: Buffer; signature?: Buffer } {
  const echo = proofRequired ? undefined : decodeBase64url(code, SECRET_BYTES);
  return echo === undefined ? { signature: requireBytes(code, SIGNATURE_BYTES, 'code') } : { echo };
}

function isCodeOf(challenge: Challenge, code: Buffer): boolean {
  return timingSafeEqual(Buffer.from(challenge.code, 'base64url'), code);
}

function shared(context: Context, { name, passKeyFlag }: Registration, publicKey: string) {
  const holder = holderOf(context.actors, publicKey);
  return {
    publicKey,
    passKeyFlag: passKeyFlag === true,
    origin: originOf(context),
    ...(name === undefined ? {} : { name }),
    ...(holder === undefined ? {} : { holder }),
  };
}

async function join(
  context: Context,
  session: SessionContext,
  request: Registration,
  publicKey: string,
  answered: Pick<AddKey, 'proof' | 'challenge'>,
): Promise<Registered> {
  const added = await retryOnClaimConflict(context, publicKey, answered.proof !== undefined, () => {
    const command: AddKey = {
      type: 'addKey',
      sessionId: session.id,
      ...shared(context, request, publicKey),
      ...(request.browserLogin === undefined ? {} : { browserLogin: request.browserLogin }),
      ...answered,
    };
    return context.actors.ask(user, session.userId, command, askOptions('register_key', context));
  });
  return joined(session, added);
}

function joined({ userId }: SessionContext, { key, current, replaced, expiresMs }: AddedKey): Registered {
  return { key, userId, newAccount: false, current, replaced, expiresMs };
}

async function found(
  context: Context,
  challenge: Challenge,
  request: Registration,
  publicKey: string,
  proof: Proof,
): Promise<Registered> {
  const signedUp = await retryOnClaimConflict(context, publicKey, true, () => {
    const command: SignUp = {
      type: 'signUp',
      handle: challenge.newHandle,
      challenge: usedOf(context, challenge),
      proof,
      ...shared(context, request, publicKey),
    };
    return context.actors.ask(user, challenge.newUserId, command);
  });
  return welcome(signedUp);
}

function welcome({ key, userId, token, createdMs, expiresMs }: SignedUp): Registered {
  return {
    key,
    userId,
    newAccount: true,
    current: true,
    replaced: [],
    expiresMs,
    opened: { token, createdMs },
  };
}

/** Retries when a claim was committed between the look-up and the commit of a proven registration. */
async function retryOnClaimConflict<T>(
  { actors }: Context,
  publicKey: string,
  proven: boolean,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      const taken = error instanceof GatewayError && error.row === 'KeyAlreadyRegistered';
      const claimed = taken && proven && holderOf(actors, publicKey)?.proven === false;
      if (!claimed || tries === TRIES) throw error;
    }
  }
}
