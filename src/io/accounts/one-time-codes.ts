/**
 * Logins by phone and e-mail (spec 4.4): requests for codes, and logins with one. Neither the answer nor its duration
 * tells whether an account has the address.
 */

import { user } from '../../actors/accounts/user.ts';
import type { CodeLoggedIn, CodeLogin } from '../../actors/accounts/user-codes.ts';
import { ONE_TIME_CODES_ID } from '../../actors/codes/code-messages.ts';
import {
  type IssueCode,
  oneTimeCodes,
  type RedeemCode,
  type RedeemedCode,
  type WrongCode,
} from '../../actors/codes/one-time-codes.ts';
import { CODE_DIGITS, FORMER_CODE_DIGITS, RESEND_AFTER_MS } from '../../actors/codes/state.ts';
import { type Contact, contactKey } from '../../domain/contacts.ts';
import { GatewayError } from '../../domain/errors.ts';
import { networkOf, networksOf } from '../../domain/limits/networks.ts';
import { integer, named, object, utcText } from '../../domain/schema.ts';
import { SECOND_MS, toIso } from '../../domain/time.ts';
import type { RouteContext } from '../http/table/route.ts';
import { auditRefusal, circumstances, originOf, readChallengeId } from './login-parts.ts';
import { countingSignUps, type SignUpDeps } from './sign-ups.ts';

/** No account has this id. */
const NO_USER_ID = '0';
/** The code is compared in its own length; ones of before are good until they expire. */
const CODE = new RegExp(`^(?:[0-9]{${CODE_DIGITS}}|[0-9]{${FORMER_CODE_DIGITS}})$`);

export const codeRequested = named(
  'CodeRequested',
  object({
    challengeId: { type: 'integer' } as const,
    expiresUtc: utcText(),
    codeLength: integer(),
    resendAfterSeconds: integer(),
  }),
);

/**
 * Sends a code to the contact, in the background. Throws `InvalidInput` without a contact, `DeliveryUnavailable` without a
 * chat module, `AccessRateLimit` over the caps.
 */
export async function requestCode(context: RouteContext, contact: Contact | undefined, field: string) {
  const { actors, session, client, site } = context;
  if (contact === undefined) throw new GatewayError('InvalidInput', field);
  if (!site.authMethods.includes(contact.channel)) throw new GatewayError('DeliveryUnavailable');
  const networks = networksOf(client.address);
  const holder = actors.lookup('contact', contactKey(contact)) ?? null;
  const command: IssueCode = {
    type: 'issueCode',
    ...contact,
    networks,
    known: await isKnown(context, holder, networkOf(client.address)),
    sessionId: session?.id ?? null,
    holder,
    origin: originOf(context),
  };
  const {
    id,
    expiresMs,
    digits = FORMER_CODE_DIGITS,
  } = await actors.ask(oneTimeCodes, ONE_TIME_CODES_ID, command);
  return {
    challengeId: id,
    expiresUtc: toIso(expiresMs),
    codeLength: digits,
    resendAfterSeconds: RESEND_AFTER_MS / SECOND_MS,
  };
}

/** True if the account has a login from that network. Unknown contacts query an empty account, which takes as long. */
async function isKnown({ actors }: RouteContext, holder: string | null, network: string): Promise<boolean> {
  const logins = await actors.query(user, holder ?? NO_USER_ID, { type: 'logins' });
  return logins.some(({ ok, ip }) => ok && networkOf(ip) === network);
}

/**
 * Logs in with a code. The code is used up before the account is read, so two browsers with one code get one session.
 * Throws `InvalidInput`, `ChallengeExpired`, `InvalidCode`, `AccessDenied` for a blocked user, `AccessRateLimit`.
 */
export async function codeLogin(
  deps: SignUpDeps,
  context: RouteContext,
  challengeId: string | number,
  code: string,
): Promise<CodeLoggedIn> {
  const { channel, address, newUserId, newHandle } = await redeem(context, challengeId, code);
  const userId = context.actors.lookup('contact', contactKey({ channel, address }));
  const command: CodeLogin = {
    type: 'codeLogin',
    channel,
    address,
    handle: newHandle,
    ...circumstances(context),
  };
  if (userId !== undefined) return context.actors.ask(user, userId, command);
  // Only the right code shows whether an account exists, and it is used up by now.
  return countingSignUps(deps, context, () => context.actors.ask(user, newUserId, command));
}

/** Uses the code up. Throws `InvalidInput`, `ChallengeExpired`, `InvalidCode`. */
export async function redeem(
  context: RouteContext,
  challengeId: string | number,
  code: string,
): Promise<RedeemedCode> {
  if (!CODE.test(code)) throw new GatewayError('InvalidInput', `code: expected ${CODE_DIGITS} digits`);
  const { actors, session } = context;
  const command: RedeemCode = {
    type: 'redeemCode',
    id: readChallengeId(challengeId),
    code,
    sessionId: session?.id ?? null,
    origin: originOf(context),
  };
  let answer: RedeemedCode | WrongCode;
  try {
    answer = await actors.ask(oneTimeCodes, ONE_TIME_CODES_ID, command);
  } catch (error) {
    if (error instanceof GatewayError && error.row === 'ChallengeExpired')
      auditRefusal(context, null, 'ChallengeExpired');
    throw error;
  }
  if (!answer.right) throw new GatewayError(answer.row);
  return answer;
}
