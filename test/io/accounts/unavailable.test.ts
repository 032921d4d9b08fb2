/** Registrations while the account cannot be reached: a 503 is no verdict, so the same request may come again. */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { GatewayError } from '../../../src/domain/errors.ts';
import { cookie, makeKey, signText, startAccounts } from '../../support/account.ts';

const REGISTER = '/auth/v1/keys/register_key';

t.test(
  'register_key: a repeat with its Idempotency-Key takes effect after a 503, another request does not',
  async (t) => {
    const fixture = closeAfter(t, startAccounts());
    const { sid } = await fixture.signUp();
    const key = makeKey();
    const { challengeId, signPrefix } = await fixture.challenge('register', sid);
    const body = {
      challengeId,
      code: signText(key, signPrefix + key.publicKey),
      publicKey: key.publicKey,
    };
    const register = (idempotencyKey: string) =>
      fixture.post(REGISTER, body, { ...cookie(sid), 'Idempotency-Key': idempotencyKey });
    const { system } = fixture.actors;
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
  const fixture = closeAfter(t, startAccounts());
  const { sid } = await fixture.signUp();
  const key = makeKey();
  const { challengeId, signPrefix } = await fixture.challenge('register', sid);
  const body = { challengeId, code: signText(key, signPrefix + key.publicKey), publicKey: key.publicKey };
  const register = () => fixture.post(REGISTER, body, { ...cookie(sid), 'Idempotency-Key': 'one' });
  const { system } = fixture.actors;
  const { remembers } = system;
  let first: Awaited<ReturnType<typeof register>> | undefined;
  const later = async (...args: Parameters<typeof remembers>) => {
    const before = remembers.apply(system, args);
    system.remembers = remembers;
    first = await register();
    return before;
  };
  system.remembers = later as unknown as typeof remembers;
  const repeat = await register();
  t.same([first?.status, repeat.status], [200, 200]);
  t.same(repeat.result, first?.result);
});

t.test('register_key: a refusal uses the challenge up, also for its Idempotency-Key', async (t) => {
  const fixture = closeAfter(t, startAccounts());
  const { sid } = await fixture.signUp();
  const [key, other] = [makeKey(), makeKey()];
  const { challengeId, signPrefix } = await fixture.challenge('register', sid);
  const register = (signer: typeof key) => {
    const code = signText(signer, signPrefix + key.publicKey);
    const headers = { ...cookie(sid), 'Idempotency-Key': 'one' };
    return fixture.post(REGISTER, { challengeId, code, publicKey: key.publicKey }, headers);
  };
  t.match(await register(other), { status: 401, error: { code: 1105 } });
  t.match(await register(key), { status: 401, error: { code: 1104 } });
});
