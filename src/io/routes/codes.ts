/** Requests of one-time codes by phone and e-mail (spec 4.4). The login with a code is in auth.ts. */
import { parseEmail, parsePhone } from '../../domain/contacts.ts';
import { object, text } from '../../domain/schema.ts';
import { codeRequested, requestCode } from '../accounts/one-time-codes.ts';
import { defineRoute } from '../http/table/route.ts';

const ADDRESS_CHARACTERS_MAX = 320;
export const loginPhone = defineRoute({
  method: 'POST',
  path: '/auth/v1/login_phone',
  summary: 'Send a one-time code to a phone number (E.164)',
  spec: '4.4',
  description:
    'The chat module delivers the code. `login` takes it together with `challengeId`; the first code of a number creates its account. The answer does not tell whether there is one.',
  group: 'auth',
  auth: 'optional',
  body: object({ phone: text({ maxLength: ADDRESS_CHARACTERS_MAX, examples: ['+15550100'] }) }),
  result: codeRequested,
  errors: ['DeliveryUnavailable'],
  handle: (context) => requestCode(context, parsePhone(context.body.phone), 'phone: expected E.164'),
});

export const loginEmail = defineRoute({
  method: 'POST',
  path: '/auth/v1/login_email',
  summary: 'Send a one-time code to an e-mail address',
  spec: '4.4',
  description: 'As `login_phone`. Capitals of the address do not matter.',
  group: 'auth',
  auth: 'optional',
  body: object({ email: text({ maxLength: ADDRESS_CHARACTERS_MAX, examples: ['ada@mail.example'] }) }),
  result: codeRequested,
  errors: ['DeliveryUnavailable'],
  handle: (context) => requestCode(context, parseEmail(context.body.email), 'email: expected an address'),
});
