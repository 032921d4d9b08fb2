/** Contact sync on the home page: a device gets its password once, is listed, and is removed. */
import t from 'tap';
import { launchFor } from '../../../kit/launch.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { unlimitedGateway } from '../../support/pages/gateways.ts';
import { openPage } from '../../support/pages/pages.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const gateway = await unlimitedGateway(t);

const homeOf = (url: string) => `${url.replace('127.0.0.1', 'localhost')}/`;

function propfind(url: string, username: string, token: string) {
  const authorization = `Basic ${Buffer.from(`${username}:${token}`).toString('base64')}`;
  return fetch(url, { method: 'PROPFIND', headers: { authorization, depth: '0' } });
}

t.test('contact sync: a person adds a device, whose password is shown once, and removes it', async (t) => {
  const home = homeOf(gateway.url);
  const { page, complaints, violations, look } = await openPage(t, browser, home, { passkeys: true });
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: 'Keys' }).click();
  const section = page.getByRole('region', { name: 'Contact sync' });
  await section.getByText('No device syncs contacts.').waitFor();
  await section.getByText(`${home}contacts/v1/`, { exact: true }).waitFor();
  t.same(await violations(), []);
  await section.getByRole('button', { name: 'Add a device' }).click();
  const form = page.getByRole('dialog', { name: 'Add a device' });
  await form.getByText('The key is allowed contact sync.').waitFor();
  await form.getByLabel('Name of the device').fill('Phone of Ada');
  t.same(await violations(), []);
  await form.getByRole('button', { name: 'Make a password' }).click();
  const once = page.getByRole('dialog', { name: 'Password of the device' });
  const token = (await once.getByLabel('Password').textContent()) ?? '';
  t.match(token, /^[A-Za-z0-9_-]{46}$/);
  const username = (await once.locator('dd').nth(1).textContent()) ?? '';
  await look(t, 'contact-sync');
  t.equal((await propfind(`${gateway.url}/contacts/v1/`, username, token)).status, 207);
  await once.getByRole('button', { name: 'Done' }).click();
  const row = section.getByRole('row').filter({ hasText: 'Phone of Ada' });
  await row.waitFor();
  t.notMatch(await page.content(), token, 'the password is gone');
  await page.reload();
  await row.getByText('Passkey or hardware key').waitFor();
  t.equal(await row.locator('time').count(), 2, 'when it was added, and last used');
  t.notMatch(await page.content(), token);
  await look(t, 'contact-sync-devices');
  await row.getByRole('button', { name: 'Remove' }).click();
  await page
    .getByRole('dialog', { name: 'Remove “Phone of Ada”?' })
    .getByRole('button', { name: 'Remove it' })
    .click();
  await section.getByText('No device syncs contacts.').waitFor();
  t.equal((await propfind(`${gateway.url}/contacts/v1/`, username, token)).status, 401);
  t.same(complaints(), []);
});

t.test('contact sync: a gateway whose modules sync no contacts does not show it', async (t) => {
  const bare = await launchFor(t, { configuration: {} });
  const { page, complaints } = await openPage(t, browser, homeOf(bare.url), { passkeys: true });
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('article').first().waitFor();
  await page.waitForLoadState('networkidle');
  t.equal(await page.getByRole('region', { name: 'Contact sync' }).count(), 0);
  t.same(complaints(), []);
});
