/** Passkeys in a browser with virtual authenticators, against the program. */
import { createServer } from 'node:http';
import t, { type Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { listenFor } from '../../../kit/http.ts';
import { HIGH_LIMITS, launchFor } from '../../../kit/launch.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import {
  openPasskeyPage,
  type PageAnswer,
  type PasskeyPage,
  PLATFORM,
  pageHtml,
  U2F,
} from '../../support/pages/passkey-page.ts';

const START_TIMEOUT_MS = 240_000;

t.setTimeout(START_TIMEOUT_MS);
const browser = await sharedBrowser(t);
const gateway = await launchFor(t, { configuration: { Settings: HIGH_LIMITS } });
const ORIGIN = gateway.url.replace('127.0.0.1', 'localhost');

async function open(t: Test): Promise<PasskeyPage> {
  return closeAfter(t, await openPasskeyPage(browser, ORIGIN));
}

function refused(t: Test, answer: PageAnswer, status: number, code: number, note: string): void {
  t.match(answer, { status, error: { code } }, note);
}

function keyOf(answer: PageAnswer): { id: string; publicKey: string } {
  if (answer.status !== 200) throw new Error(`register_key: ${JSON.stringify(answer)}`);
  return answer.result?.['key'] as { id: string; publicKey: string };
}

// covers R55
t.test('browser: sign-up with a passkey, log-out, log-in', async (t) => {
  const page = await open(t);
  await page.plugIn();
  const signedUp = await page.register();
  t.match(signedUp, {
    status: 200,
    result: { newAccount: true, key: { keyType: 'FIDO2', current: true, proven: true, mcpAccess: false } },
  });
  const first = await page.sid();
  t.match(first, /^[A-Za-z0-9_-]{46}$/);
  t.equal(await page.page.evaluate('document.cookie'), '', 'no script can read the session');
  t.match(await page.send('/auth/v1/logout', {}), { status: 200 });
  t.match(await page.send('/auth/v1/keys/user_keys'), { status: 401, error: { code: 1101 } });
  const loggedIn = await page.login();
  const userId = signedUp.result?.['userId'];
  t.match(loggedIn, { status: 200, result: { userId, keyType: 'FIDO2', newAccount: false } });
  t.not(await page.sid(), first, 'a new secret');
  const keys = await page.send('/auth/v1/keys/user_keys');
  t.match(keys.result, [{ keyType: 'FIDO2', current: true, publicKey: keyOf(signedUp).publicKey }]);
});

t.test(
  'browser: a second passkey needs another authenticator; the first authenticator is excluded',
  async (t) => {
    const page = await open(t);
    const first = await page.plugIn();
    const signedUp = await page.register();
    t.equal(signedUp.status, 200);
    t.match(await page.register(), { thrown: 'InvalidStateError' }, 'the authenticator is excluded');
    await page.unplug(first);
    await page.plugIn();
    const added = await page.register();
    t.match(added, { status: 200, result: { newAccount: false, key: { current: false } } });
    t.match(await page.login(), {
      status: 200,
      result: { userId: signedUp.result?.['userId'], keyId: keyOf(added).id },
    });
    const keys = await page.send('/auth/v1/keys/user_keys');
    t.match(keys.result, [
      { id: keyOf(signedUp).id, current: false },
      { id: keyOf(added).id, current: true },
    ]);
  },
);

t.test('browser: a conditional get, as used by autofill, logs in', async (t) => {
  const page = await open(t);
  await page.plugIn();
  const signedUp = await page.register();
  await page.send('/auth/v1/logout', {});
  t.match(await page.login({ mediation: 'conditional' }), {
    status: 200,
    result: { userId: signedUp.result?.['userId'] },
  });
});

t.test('browser: a U2F key signs up and logs in with the id that the client remembers', async (t) => {
  const page = await open(t);
  await page.plugIn(U2F);
  const signedUp = await page.register();
  t.match(signedUp, { status: 200, result: { key: { keyType: 'FIDO2', backedUp: false } } });
  await page.send('/auth/v1/logout', {});
  const { publicKey, id } = keyOf(signedUp);
  for (const times of ['once', 'twice'])
    t.match(await page.login({ credentialIds: [publicKey] }), { status: 200, result: { keyId: id } }, times);
});

// covers R28 R55
t.test('browser: user verification given at enrollment is required at login', async (t) => {
  const page = await open(t);
  const authenticatorId = await page.plugIn();
  t.equal((await page.register()).status, 200);
  const verify = (isUserVerified: boolean) =>
    page.cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified });
  await verify(false);
  t.match(await page.login(), { thrown: 'NotAllowedError' }, 'the owner does not unlock the authenticator');
  const around = { options: { userVerification: 'discouraged' } } as const;
  refused(t, await page.login(around), 401, 1105, 'a page that asks for less than the gateway');
  await verify(true);
  t.equal((await page.login()).status, 200);

  const loose = await open(t);
  await loose.plugIn({ ...PLATFORM, hasUserVerification: false, isUserVerified: false });
  const signedUp = await loose.register();
  t.equal(signedUp.status, 200, 'enrolled without verification');
  const credentialIds = [keyOf(signedUp).publicKey];
  t.equal((await loose.login({ credentialIds })).status, 200, 'and logs in without verification');
});

// covers S23
t.test('browser: forged signatures and missing presence are refused, and the log says so', async (t) => {
  const page = await open(t);
  const authenticatorId = await page.plugIn();
  t.equal((await page.register()).status, 200);
  for (const bit of ['isBogusSignature', 'isBadUV', 'isBadUP'] as const) {
    await page.cdp.send('WebAuthn.setResponseOverrideBits', { authenticatorId, [bit]: true });
    refused(t, await page.login(), 401, 1105, bit);
    await page.cdp.send('WebAuthn.setResponseOverrideBits', { authenticatorId, [bit]: false });
  }
  const failed = { event: 'login', ok: false, error: 'Invalid signature' };
  const log = await page.send('/auth/v1/login_log');
  t.match(log.result, [failed, failed, failed, { event: 'sign_up', ok: true }]);
  t.equal((await page.login()).status, 200);
});

t.test('browser: the page in a frame of another site cannot log in', async (t) => {
  const page = await open(t);
  await page.plugIn();
  t.equal((await page.register()).status, 200);
  await page.send('/auth/v1/logout', {});
  const framed = page.page.url();
  const site = createServer((_request, response) => {
    const frame = `<iframe src="${framed}" allow="publickey-credentials-get *"></iframe>`;
    response.setHeader('Content-Type', 'text/html').end(`<!doctype html>${frame}`);
  });
  await page.page.goto((await listenFor(t, site)).url);
  const frame = page.page.frames().find((each) => each.url() === framed);
  if (frame === undefined) throw new Error('the frame did not load');
  refused(t, (await frame.evaluate('logIn()')) as PageAnswer, 401, 1105, 'crossOrigin is true');
  t.equal(await page.sid(), undefined);
});

t.test('browser: a page of Fido2.origins may log in across origins, another one may not', async (t) => {
  let target = '';
  const serve = async () => {
    const server = createServer((_request, response) => {
      response.setHeader('Content-Type', 'text/html').end(pageHtml(target));
    });
    return `http://localhost:${(await listenFor(t, server)).port}`;
  };
  const [known, strange] = [await serve(), await serve()];
  const guarded = await launchFor(t, {
    configuration: {
      Settings: HIGH_LIMITS,
      Fido2: { serverDomain: 'localhost', serverName: 'Passkey test', origins: [known] },
      AllowedOrigins: [strange],
    },
  });
  target = guarded.url.replace('127.0.0.1', 'localhost');

  const page = closeAfter(t, await openPasskeyPage(browser, known, target));
  await page.plugIn();
  t.match(await page.register(), { status: 200, result: { newAccount: true } });
  t.match(await page.login(), { status: 200 });

  const outsider = closeAfter(t, await openPasskeyPage(browser, strange, target));
  await outsider.plugIn();
  refused(t, await outsider.register(), 401, 1105, 'allowed by CORS, but not in Fido2.origins');
});
