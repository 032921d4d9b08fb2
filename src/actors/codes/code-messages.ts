/** Durable messages to the one-time codes, from accounts. */
import type { Contact } from '../../domain/contacts.ts';
import { receiver } from '../runtime/protocol.ts';

export const ONE_TIME_CODES = receiver<ForgetContacts>('codeDesk');
/** The one instance. */
export const ONE_TIME_CODES_ID = 'all';

/** Sent by an account that was removed: nothing may name these addresses any more. */
export interface ForgetContacts {
  readonly type: 'forgetContacts';
  readonly contacts: readonly Contact[];
}
