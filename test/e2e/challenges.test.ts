/** Challenges over SIGKILL of the program: open ones are valid after the restart, used ones never again. */
import t from 'tap';
import {
  type Answer,
  type Challenge,
  challenge,
  cookieOf,
  expectOk,
  type Json,
  newKey,
  request,
  type SoftwareKey,
  signText,
} from '../../kit/agent.ts';
import { create, get, makePasskey } from '../../kit/authenticator.ts';
import { launch, launchFor, type RunningGateway } from '../../kit/launch.ts';

t.setTimeout(180_000);

const REGISTER = '/auth/v1/keys/register_key';
const LOGIN = '/auth/v1/login';
/** No modules: their threads are a third of a start. */
const configuration = {};

function signed({ challengeId, signPrefix }: Challenge, key: SoftwareKey) {
  return { challengeId, publicKey: key.publicKey, code: signText(key, signPrefix + key.publicKey) };
}

function errorOf({ status, json }: Answer): string {
  return `${status}/${String(json['error']?.['code'])}`;
}

// covers R54 S53
t.test(
  'challenge: one issued before a SIGKILL signs up, adds a key and logs in after it, only once',
  async (t) => {
    const dataPath = `${t.testdir({})}/data`;
    const passkey = makePasskey('ES256');
    const [founding, another, added] = [newKey(), newKey(), newKey()];
    let gateway: RunningGateway = await launch({ dataPath, configuration });
    t.teardown(() => gateway.stop());
    const post = (path: string, body: object, headers: Record<string, string> = {}) =>
      request(`${gateway.url}${path}`, { body, headers });
    const killed = async () => {
      await gateway.kill();
      // On the same port: it is part of the origin of a passkey's ceremony.
      gateway = await launch({ dataPath, configuration, port: Number(new URL(gateway.url).port) });
    };
    const origin = gateway.url.replace('127.0.0.1', 'localhost');

    const signUp = await challenge(gateway.url, 'register');
    const byPasskey = await challenge(gateway.url, 'register');
    const ceremony = create(passkey, { challenge: byPasskey.challenge, origin, counter: 0 });
    const enrolment = { challengeId: byPasskey.challengeId, code: byPasskey.code, credential: ceremony };
    await killed();
    const account = expectOk('sign-up', await post(REGISTER, signed(signUp, founding)));
    expectOk('sign-up with a passkey', await post(REGISTER, enrolment));

    const cookie = { Cookie: cookieOf(account) };
    const login = await challenge(gateway.url, 'login');
    const assertion = await challenge(gateway.url, 'login');
    const proof = get(passkey, { challenge: assertion.challenge, origin, counter: 0 });
    const passkeyLogin = { challengeId: assertion.challengeId, credential: proof };
    const registration = await challenge(gateway.url, 'register', cookie.Cookie);
    const claim = {
      challengeId: registration.challengeId,
      code: registration.code,
      publicKey: added.publicKey,
    };
    await killed();
    const answer = expectOk('login', await post(LOGIN, signed(login, founding)));
    expectOk('login with a passkey', await post(LOGIN, passkeyLogin));
    const repeatable = { ...cookie, 'Idempotency-Key': 'once' };
    const first = expectOk('register_key', await post(REGISTER, claim, repeatable));

    for (const when of ['in the same process', 'after a SIGKILL']) {
      if (when === 'after a SIGKILL') await killed();
      const refused = [
        await post(REGISTER, signed(signUp, founding)),
        await post(REGISTER, signed(signUp, another)),
        await post(REGISTER, enrolment),
        await post(LOGIN, signed(login, founding)),
        await post(LOGIN, passkeyLogin),
        await post(REGISTER, claim, cookie),
        await post(REGISTER, { ...claim, publicKey: another.publicKey }, cookie),
      ];
      t.same(
        refused.map(errorOf),
        Array.from(refused, () => '401/1104'),
        when,
      );
      t.same(
        (await post(REGISTER, claim, repeatable)).json['result'],
        first.json['result'],
        `repeat ${when}`,
      );
    }
    const { json } = await request(`${gateway.url}/auth/v1/sessions`, {
      headers: { Cookie: cookieOf(answer) },
    });
    t.equal((json['result'] as unknown as Json[]).length, 2, 'the sign-up and one login');
  },
);

// covers S54
t.test('challenge: one of another journal is 1104, even with the same account and key', async (t) => {
  const key = newKey();
  const folder = t.testdir({});
  const start = async (name: string) => {
    const gateway = await launchFor(t, { dataPath: `${folder}/${name}`, configuration });
    return gateway;
  };
  const [one, two] = [await start('one'), await start('two')];
  const asked = await challenge(one.url, 'register');
  t.equal(errorOf(await request(`${two.url}${REGISTER}`, { body: signed(asked, key) })), '401/1104');
  expectOk('at home', await request(`${one.url}${REGISTER}`, { body: signed(asked, key) }));
});
