/**
 * State of OneTimeCodes: codes that may still be entered, codes sent within the hour, the number sent today. Durable and
 * bounded by the daily cap. It contains no code: a code is the HMAC of its seed under a key that the actors never see.
 */
import { type Contact, type ContactChannel, contactKey, hasContact } from '../../domain/contacts.ts';
import { DAY_MS, HOUR_MS, SECOND_MS } from '../../domain/time.ts';

export const CODE_DIGITS = 8;
/** Digits of codes from before there were eight: their records do not say how many. */
export const FORMER_CODE_DIGITS = 6;
export const CODE_LIFE_MS = 300 * SECOND_MS;
export const CODE_TRIES_MAX = 5;
export const RESEND_AFTER_MS = 60 * SECOND_MS;

export interface OpenCode {
  /** Random, below 2^53. */
  readonly id: number;
  readonly channel: ContactChannel;
  readonly address: string;
  /** 32 random bytes, base64url, of which the code is derived. */
  readonly seed: string;
  /** Number of digits of the code; absent: `FORMER_CODE_DIGITS`. */
  readonly digits?: number;
  /** Session of the browser that asked; null without one. */
  readonly sessionId: string | null;
  /** Account that had the address when the code was asked for: refusals go to its login log. */
  readonly holder: string | null;
  readonly expiresMs: number;
  /** Counted before each comparison. */
  readonly tries: number;
  /** Its class: asked for from a network from which the account was logged in to before. Absent: it was not. */
  readonly known?: true;
}

export interface SentCode {
  readonly utcMs: number;
  readonly contact: string;
  /**
   * The narrowest network of the requesting address (domain/limits/networks.ts), and the wider ones where it has any.
   */
  readonly network: string;
  readonly wider?: readonly string[];
  /** Requested from a network where the account has logged in before; absent: it has not, or it is unknown. */
  readonly known?: boolean;
}

export function initialCodes(): OneTimeCodesState {
  return { open: [], sendings: [], day: 0, sentToday: 0 };
}

export interface OneTimeCodesState {
  readonly open: readonly OpenCode[];
  /** Codes sent in the last hour, the oldest first. */
  readonly sendings: readonly SentCode[];
  /** Days since 1970, UTC. */
  readonly day: number;
  readonly sentToday: number;
}

export type CodeEvent =
  | {
      readonly type: 'codeIssued';
      readonly code: OpenCode;
      readonly network: string;
      readonly wider?: readonly string[];
      readonly known?: boolean;
      readonly utcMs: number;
    }
  | { readonly type: 'codeTried'; readonly id: number }
  | { readonly type: 'codeUsed'; readonly id: number }
  /** Written since version 2. */
  | { readonly type: 'contactsForgotten'; readonly contacts: readonly Contact[] };

export function evolveCodes(state: OneTimeCodesState, event: CodeEvent): OneTimeCodesState {
  switch (event.type) {
    case 'codeIssued':
      return issued(state, event);
    case 'codeTried': {
      const open = state.open.map((code) =>
        code.id === event.id ? { ...code, tries: code.tries + 1 } : code,
      );
      return { ...state, open };
    }
    case 'codeUsed':
      return { ...state, open: state.open.filter(({ id }) => id !== event.id) };
    case 'contactsForgotten': {
      const keys = new Set(event.contacts.map(contactKey));
      return {
        ...state,
        open: state.open.filter((code) => !hasContact(event.contacts, code)),
        sendings: state.sendings.filter(({ contact }) => !keys.has(contact)),
      };
    }
  }
}

/** A new code replaces the one of its contact and class, so a contact has two at most. What has expired goes. */
function issued(
  state: OneTimeCodesState,
  { code, network, wider, known = false, utcMs }: Extract<CodeEvent, { type: 'codeIssued' }>,
): OneTimeCodesState {
  const contact = contactKey(code);
  const day = Math.max(state.day, Math.floor(utcMs / DAY_MS));
  const others = state.open.filter(
    (each) => each.expiresMs > utcMs && (contactKey(each) !== contact || each.known !== code.known),
  );
  return {
    open: [...others, code],
    sendings: [...recentlySent(state, utcMs), { utcMs, contact, network, ...(wider && { wider }), known }],
    day,
    sentToday: (day === state.day ? state.sentToday : 0) + 1,
  };
}

export function recentlySent(state: OneTimeCodesState, nowMs: number): readonly SentCode[] {
  return state.sendings.filter(({ utcMs }) => nowMs - utcMs < HOUR_MS);
}
