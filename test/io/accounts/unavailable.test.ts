/** Registrations while the account cannot be reached: a 503 is no verdict, so the same request may come again. */
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { cookie, makeKey, startAccounts } from '../../support/account.ts';

/** A registration with a session that may be sent again with whatever Idempotency-Key. */
async function start(t: Test) {
  const { signUp, signed, post, actors } = closeAfter(t, startAccounts());
  const { sid } = await signUp();
  const body = await signed(makeKey(), 'register', sid);
  const register = (idempotencyKey: string) =>
    post('/auth/v1/keys/register_key', body, { ...cookie(sid), 'Idempotency-Key': idempotencyKey });
  return { system: actors.system, register };
}

t.test(
  'register_key: a repeat with its Idempotency-Key takes effect after a 503, another request does not',
  async (t) => {
    const { system, register } = await start(t);
    const { ask } = system;
    system.ask = () => Promise.reject(new GatewayError('Overloaded'));
    t.equal((await register('one')).status, 503);
    t.equal((await register('one')).status, 503);
    t.equal((await register('two')).status, 401, 'the challenge is kept for the first request');
    system.ask = ask;
    t.equal((await register('one')).status, 200);
    t.equal((await register('one')).status, 200, 'the reply is kept');
    t.equal((await register('two')).status, 401);
  },
);

t.test('register_key: a repeat gets the first answer that came while this node looked for it', async (t) => {
  const { system, register } = await start(t);
  const { remembers } = system;
  let first: Awaited<ReturnType<typeof register>> | undefined;
  const later = async (...args: Parameters<typeof remembers>) => {
    const before = remembers.apply(system, args);
    system.remembers = remembers;
    first = await register('one');
    return before;
  };
  system.remembers = later as unknown as typeof remembers;
  const repeat = await register('one');
  t.same([first?.status, repeat.status], [200, 200]);
  t.same(repeat.result, first?.result);
});
