/**
 * Phone numbers and e-mail addresses that one-time codes go to (spec 4.4): which texts are one, and the
 * one spelling under which an address is known.
 */

export type ContactChannel = 'phone' | 'email';

export interface Contact {
  readonly channel: ContactChannel;
  /** Address in its one spelling. */
  readonly address: string;
}

/** Contacts of one account, at most. */
export const CONTACTS_MAX = 5;

/** ITU-T E.164: a plus sign, a country code that does not begin with 0, at most 15 digits in all. */
const PHONE = /^\+[1-9][0-9]{6,14}$/;
/** RFC 5321 4.5.3.1: 64 characters before the sign, 254 in all (with the angle brackets of a path 256). */
const EMAIL_CHARACTERS_MAX = 254;
const LOCAL_CHARACTERS_MAX = 64;
/** RFC 5322 3.2.3 dot-atom, in ASCII: quoted parts and comments only serve to smuggle. */
const LOCAL = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
/** RFC 1035 2.3.1 labels; the last one is no number, so that an address literal is no domain. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])$/;

/** Undefined for anything but E.164. */
export function parsePhone(text: string): Contact | undefined {
  return PHONE.test(text) ? { channel: 'phone', address: text } : undefined;
}

/**
 * Undefined for anything that is not plainly an address. Case is folded, also before the sign: mailboxes that differ
 * in case alone hardly exist, and each spelling would have caps of its own.
 */
export function parseEmail(text: string): Contact | undefined {
  if (text.length > EMAIL_CHARACTERS_MAX) return undefined;
  const at = text.lastIndexOf('@');
  const local = lowerAscii(text.slice(0, Math.max(at, 0)));
  const domain = lowerAscii(text.slice(at + 1));
  if (local.length > LOCAL_CHARACTERS_MAX || !LOCAL.test(local) || !DOMAIN.test(domain)) return undefined;
  return { channel: 'email', address: `${local}@${domain}` };
}

/** Only A to Z: the general mapping turns some other letters (the Kelvin sign) into ASCII ones. */
function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

export function hasContact(contacts: readonly Contact[], contact: Contact): boolean {
  const key = contactKey(contact);
  return contacts.some((each) => contactKey(each) === key);
}

export function withoutContact(contacts: readonly Contact[], contact: Contact): readonly Contact[] {
  const key = contactKey(contact);
  return contacts.filter((each) => contactKey(each) !== key);
}

/** Name in the index of contacts. */
export function contactKey({ channel, address }: Contact): string {
  return `${channel}:${address}`;
}
