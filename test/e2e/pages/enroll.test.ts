/** Keys of agents on the home page and in the admin panel: the link of an agent, its letters, browser login of a key. */
import type { Page } from 'playwright-core';
import t from 'tap';
import { makeKey } from '../../support/account.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { defaultGateway } from '../../support/pages/gateways.ts';
import { lettersOf } from '../../support/pages/letters.ts';
import { openPage } from '../../support/pages/pages.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const gateway = await defaultGateway(t);
const HOME = `${gateway.url.replace('127.0.0.1', 'localhost')}/`;

const linkOf = (publicKey: string, name = 'laptop') => `${HOME}#agent-key=${publicKey}&agent-name=${name}`;

function changesOf(page: Page): string[] {
  const changes: string[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().includes('/auth/v1/keys/'))
      changes.push(new URL(request.url()).pathname);
  });
  return changes;
}

async function mcpLogin(publicKey: string): Promise<number> {
  const answer = await fetch(`${gateway.url}/auth/v1/mcp_login`, {
    method: 'POST',
    headers: { 'X-PublicKey': publicKey },
  });
  await answer.arrayBuffer();
  return answer.status;
}

t.test('enroll: the letters: a known key has known ones', (t) => {
  t.equal(lettersOf('AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8'), 'MMG42K');
  t.end();
});

// covers S106
t.test('enroll: the link of an agent leads through the sign-up, and its letters allow the key', async (t) => {
  const { publicKey } = makeKey();
  const { page, complaints, violations, look, picture } = await openPage(t, browser, linkOf(publicKey), {
    passkeys: true,
  });
  const changes = changesOf(page);
  await page.getByText('the account that the agent is to act for').waitFor();
  await picture('enroll-login');
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await page.getByRole('heading', { name: 'Allow an agent' }).waitFor();
  t.equal(await page.getByLabel('Key name').inputValue(), 'laptop');
  t.same(await violations(), []);
  const letters = page.getByLabel('Six letters');
  const allow = page.getByRole('button', { name: 'Allow the agent' });
  t.equal(await allow.isDisabled(), true, 'without letters');
  const [first = '', ...rest] = lettersOf(publicKey);
  await letters.fill(`${first === 'A' ? 'B' : 'A'}${rest.join('')}`);
  changes.length = 0;
  await allow.click();
  await page.getByRole('alert').getByText('do not belong to the key').waitFor();
  t.same(changes, [], 'wrong letters: nothing is sent');
  t.equal(await mcpLogin(publicKey), 401);
  await look(t, 'enroll-wrong');
  await letters.fill(lettersOf(publicKey).toLowerCase().replace(/^.../, '$& - '));
  await allow.click();
  await page.getByText('The agent is allowed').waitFor();
  t.equal(await mcpLogin(publicKey), 200);
  await picture('enroll-done');
  await page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: 'Keys' }).click();
  const key = page.getByRole('article').filter({ hasText: 'laptop' });
  await key.getByText('No browser', { exact: true }).waitFor();
  t.equal(await key.getByText('MCP', { exact: true }).count(), 1);
  await look(t, 'enroll-keys');
  t.same(complaints(), []);
});

// covers S106
t.test('enroll: a link without a whole key says so and sends nothing', async (t) => {
  const { page } = await openPage(t, browser, HOME, { passkeys: true });
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await page.getByRole('heading', { name: 'Connect an agent' }).waitFor();
  const changes = changesOf(page);
  const { publicKey } = makeKey();
  const seen: boolean[] = [];
  for (const broken of ['', publicKey.slice(1), `${publicKey}=`, '!'.repeat(43)]) {
    await page.evaluate(`location.hash = ${JSON.stringify(`agent-key=${broken}`)}`);
    await page.getByText('The link is incomplete').waitFor();
    seen.push((await page.getByLabel('Six letters').count()) === 0);
  }
  t.same(seen, [true, true, true, true]);
  t.same(changes, []);
});

t.test(
  'keys: browser login of a software key is forbidden after a question, and allowed again',
  async (t) => {
    const { page, complaints, violations } = await openPage(t, browser, HOME, { passkeys: true });
    await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
    await page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Add a key for this browser' }).click();
    const key = page.getByRole('article').filter({ hasText: 'Software key' });
    await key.getByRole('button', { name: 'Forbid browser login' }).click();
    const dialog = page.getByRole('dialog', { name: 'Forbid browser login?' });
    await dialog.getByText('Browser sessions of this key end immediately').waitFor();
    t.same(await violations(), []);
    await dialog.getByRole('button', { name: 'Forbid it' }).click();
    await key.getByText('No browser', { exact: true }).waitFor();
    await key.getByRole('button', { name: 'Allow browser login' }).click();
    await key.getByRole('button', { name: 'Forbid browser login' }).waitFor();
    const passkey = page.getByRole('article').filter({ hasText: 'Passkey' });
    t.equal(
      await passkey.getByRole('button', { name: /browser login/ }).count(),
      0,
      'a passkey has no choice',
    );
    t.same(complaints(), []);
  },
);
