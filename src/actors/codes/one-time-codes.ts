/**
 * One-time codes (spec 4.4), one instance for all: caps on requests, the newest code of an address, tries used.
 * Durable, so that neither a restart nor a crash resets tries or caps. The code goes to a CodeSender as a durable message.
 */
import { type Contact, type ContactChannel, contactKey } from '../../domain/contacts.ts';
import { ERRORS } from '../../domain/errors.ts';
import type { Network } from '../../domain/limits/networks.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../domain/time.ts';
import { USER } from '../accounts/user-messages.ts';
import type { Origin } from '../change.ts';
import {
  defineActor,
  type Message,
  type Outcome,
  type Refusal,
  refuse,
  type Turn,
} from '../runtime/actor.ts';
import type { PortResult } from '../runtime/ports.ts';
import { messageTo, type Protocol } from '../runtime/protocol.ts';
import { type ForgetContacts, ONE_TIME_CODES } from './code-messages.ts';
import { senderOf } from './code-sender.ts';
import {
  CODE_DIGITS,
  CODE_LIFE_MS,
  CODE_TRIES_MAX,
  type CodeEvent,
  evolveCodes,
  FORMER_CODE_DIGITS,
  initialCodes,
  type OneTimeCodesState,
  type OpenCode,
  RESEND_AFTER_MS,
  recentlySent,
} from './state.ts';

export interface IssueCode extends Contact {
  readonly type: 'issueCode';
  /** Networks that the cap per network counts by, the narrowest first. */
  readonly networks: readonly Network[];
  /**
   * The account of the contact was logged in to from that network before. Such requests have codes and a cap of their
   * own, so that requests of others neither replace nor use them up. Decision 0014.
   */
  readonly known: boolean;
  readonly sessionId: string | null;
  /** Account that has this contact now, from the index. The answer does not depend on it. */
  readonly holder: string | null;
  readonly origin: Origin;
}

export interface RedeemCode {
  readonly type: 'redeemCode';
  readonly id: number;
  /** Its digits. It is in no event and in no message. */
  readonly code: string;
  readonly sessionId: string | null;
  readonly origin: Origin;
}

type CodeCommand = IssueCode | RedeemCode | CodeCompared | ForgetContacts;

interface CodeCompared {
  readonly type: 'codeCompared';
  readonly command: RedeemCode;
  /** Number of this try: others may have come in while the code was compared. */
  readonly attempt: number;
  readonly result: PortResult<boolean>;
}

export interface IssuedCode {
  readonly id: number;
  readonly expiresMs: number;
  /** Absent from a node of the version before: `FORMER_CODE_DIGITS`. */
  readonly digits?: number;
}

/** A code that was right, once. */
export interface RedeemedCode {
  readonly right: true;
  readonly channel: ContactChannel;
  readonly address: string;
  /** Id and authenticator handle of the account that this login creates when the contact has none. */
  readonly newUserId: string;
  readonly newHandle: string;
}

/** A wrong code, or the one too many. It is in the audit log, and in the login log of the account if there is one. */
export interface WrongCode {
  readonly right: false;
  readonly row: 'InvalidCode' | 'ChallengeExpired';
}

export type CodeProtocol = Protocol<
  CodeCommand,
  {
    readonly issueCode: IssuedCode;
    readonly redeemCode: RedeemedCode | WrongCode;
    readonly codeCompared: RedeemedCode | WrongCode;
  }
>;

export const oneTimeCodes = defineActor<OneTimeCodesState, CodeProtocol, CodeEvent>({
  kind: ONE_TIME_CODES,
  version: 2,
  limits: { mailbox: 256, snapshotEvery: 200, idleMs: 600_000 },
  initial: initialCodes,
  evolve: evolveCodes,
  decide: { issueCode: issue, redeemCode: redeem, codeCompared: compared, forgetContacts },
});

function issue(
  state: OneTimeCodesState,
  command: IssueCode,
  turn: Turn,
): Outcome<CodeEvent, IssuedCode> | Refusal {
  const waitMs = waitOf(state, command, turn);
  if (waitMs > 0) return refuse('AccessRateLimit', undefined, Math.ceil(waitMs / SECOND_MS), 'i');
  const { channel, address, sessionId, holder, networks, known, origin } = command;
  const [network = '', ...wider] = networks.map(({ name }) => name);
  const code: OpenCode = {
    id: freshId(state, turn),
    channel,
    address,
    seed: base64url(turn.randomBytes(32)),
    digits: CODE_DIGITS,
    sessionId,
    holder,
    expiresMs: turn.nowMs + CODE_LIFE_MS,
    tries: 0,
    ...(known ? { known } : {}),
  };
  const reply: IssuedCode = { id: code.id, expiresMs: code.expiresMs, digits: CODE_DIGITS };
  return {
    events: [
      {
        type: 'codeIssued',
        code,
        network,
        ...(wider.length === 0 ? {} : { wider }),
        known,
        utcMs: turn.nowMs,
      },
    ],
    send: [senderOf(code)],
    audit: [
      { utcMs: turn.nowMs, event: 'code_requested', userId: holder, fields: { ip: origin.ip, channel } },
    ],
    reply,
  };
}

/** Milliseconds until the caps of contact, network and day allow one more; 0 when they do now. */
function waitOf(state: OneTimeCodesState, command: IssueCode, { nowMs, settings }: Turn): number {
  const recent = recentlySent(state, nowMs);
  const contact = contactKey(command);
  const toContact = recent.filter(
    (sending) => sending.contact === contact && (sending.known ?? false) === command.known,
  );
  const perNetwork = settings.get('OneTimeCodesPerIpHour');
  const networkWaits = command.networks.map(({ name, shares }) => {
    const sendings = recent.filter(({ network, wider }) => network === name || wider?.includes(name));
    return capWait(sendings, perNetwork * shares, nowMs);
  });
  const day = Math.floor(nowMs / DAY_MS);
  const sentToday = day > state.day ? 0 : state.sentToday;
  const resendMs = (toContact.at(-1)?.utcMs ?? nowMs - RESEND_AFTER_MS) + RESEND_AFTER_MS - nowMs;
  return Math.max(
    resendMs,
    capWait(toContact, settings.get('OneTimeCodesPerContactHour'), nowMs),
    ...networkWaits,
    sentToday < settings.get('OneTimeCodesPerDay') ? 0 : (Math.max(day, state.day) + 1) * DAY_MS - nowMs,
  );
}

/** Returns the milliseconds until so many of the hour's sendings have left the window that one more fits. */
function capWait(sendings: readonly { readonly utcMs: number }[], max: number, nowMs: number): number {
  const leaving = sendings.at(-max);
  return sendings.length < max || leaving === undefined ? 0 : leaving.utcMs + HOUR_MS - nowMs;
}

/** The try is on disk before the comparison begins, so that neither a crash nor parallel requests get a sixth one. */
function redeem(
  state: OneTimeCodesState,
  command: RedeemCode,
  turn: Turn,
): Outcome<CodeEvent, RedeemedCode | WrongCode, CodeCompared> | Refusal {
  const code = openCode(state, command, turn);
  if (code === undefined || code.tries >= CODE_TRIES_MAX) return refuse('ChallengeExpired');
  const { seed, digits = FORMER_CODE_DIGITS } = code;
  // No code of another length is right: it costs no try.
  if (command.code.length !== digits) return refuse('InvalidInput', `code: expected ${digits} digits`);
  return {
    events: [{ type: 'codeTried', id: code.id }],
    next: async ({ codes }) => ({
      type: 'codeCompared',
      command,
      attempt: code.tries + 1,
      result: (await codes?.matches({ seed, digits }, command.code)) ?? {
        ok: false,
        error: 'DeliveryUnavailable',
      },
    }),
  };
}

function compared(
  state: OneTimeCodesState,
  { command, attempt, result }: CodeCompared,
  turn: Turn,
): Outcome<CodeEvent, RedeemedCode | WrongCode> | Refusal {
  const code = openCode(state, command, turn);
  if (code === undefined) return refuse('ChallengeExpired');
  if (!result.ok) return refuse(result.error);
  if (!result.value)
    return wrong(code, command, attempt >= CODE_TRIES_MAX ? 'ChallengeExpired' : 'InvalidCode', turn);
  const { id, channel, address } = code;
  const reply: RedeemedCode = {
    right: true,
    channel,
    address,
    newUserId: turn.newId(),
    newHandle: base64url(turn.randomBytes(32)),
  };
  return { events: [{ type: 'codeUsed', id }], reply };
}

/** Unknown, used, replaced, expired, or asked for in another session: not there. */
function openCode(state: OneTimeCodesState, command: RedeemCode, turn: Turn): OpenCode | undefined {
  const code = state.open.find(({ id }) => id === command.id);
  if (code === undefined || turn.nowMs >= code.expiresMs) return undefined;
  return code.sessionId === null || code.sessionId === command.sessionId ? code : undefined;
}

/** The owner of the address reads of it in the login log. */
function wrong(
  code: OpenCode,
  { origin }: RedeemCode,
  row: WrongCode['row'],
  turn: Turn,
): Outcome<CodeEvent, WrongCode> {
  const { holder, channel } = code;
  const send: Message[] =
    holder === null ? [] : [messageTo(USER, holder, { type: 'codeRefused', error: row, origin })];
  const fields = { ip: origin.ip, channel, loginType: null, error: ERRORS[row].message };
  return {
    send,
    audit: [{ utcMs: turn.nowMs, event: 'login_refused', userId: holder, fields }],
    reply: { right: false, row } satisfies WrongCode,
  };
}

/** Erases also the row of this event, which names them. */
function forgetContacts(_state: OneTimeCodesState, { contacts }: ForgetContacts): Outcome<CodeEvent, null> {
  return { events: [{ type: 'contactsForgotten', contacts }], erases: true };
}

function freshId(state: OneTimeCodesState, turn: Turn): number {
  for (;;) {
    const id = Number(Buffer.from(turn.randomBytes(8)).readBigUInt64BE() >> 11n);
    if (!state.open.some((code) => code.id === id)) return id;
  }
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
