/** The account in a browser: nickname, a contact by code, export, removal; and what staff see of sessions and approvals. */
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import { expectOk, request, signUp } from '../../../kit/agent.ts';
import { arrival } from '../../support/outbox.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { unlimitedGateway } from '../../support/pages/gateways.ts';
import { openPage } from '../../support/pages/pages.ts';
import { becomeAdmin, linkTo, printedLink } from '../../support/pages/panel.ts';

t.setTimeout(240_000);
const EMAIL = 'ada@mail.example';
const browser = await sharedBrowser(t);
const gateway = await unlimitedGateway(t);
const HOME = `${gateway.url.replace('127.0.0.1', 'localhost')}/`;

const part = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name });

t.test('account page: a person names the account, adds a contact, exports and removes it', async (t) => {
  const { page, complaints, look } = await openPage(t, browser, HOME, { passkeys: true });
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await part(page, 'Account').click();
  await page.getByText('There is no contact yet.').waitFor();
  await page.getByLabel('Nickname').fill('Ada');
  await page.getByRole('button', { name: 'Save the nickname' }).click();
  await page.getByText('The nickname is saved.').waitFor();
  await page.getByRole('navigation', { name: 'Parts' }).getByText('Ada').waitFor();
  await page.getByLabel('E-mail address or phone number').fill(EMAIL);
  await page.getByRole('button', { name: 'Send a code' }).click();
  await page.getByLabel('8-digit code').fill(await arrival(gateway.sandbox, EMAIL));
  await page.getByRole('button', { name: 'Add the contact' }).click();
  await page.getByText(EMAIL, { exact: true }).first().waitFor();
  await look(t, 'account');
  const downloading = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download everything' }).click();
  const download = await downloading;
  const document = JSON.parse(readFileSync(await download.path(), 'utf8'));
  t.match(document, { profile: { nickname: 'Ada', contacts: [{ channel: 'email', address: EMAIL }] } });
  await page.getByRole('button', { name: `Remove ${EMAIL}` }).click();
  await page.getByRole('button', { name: 'Remove it', exact: true }).click();
  await page.getByText('There is no contact yet.').waitFor();
  await page.getByRole('button', { name: 'Remove the account' }).click();
  await page.getByRole('dialog', { name: 'Remove the account?' }).waitFor();
  await look(t, 'account-removal');
  await page.getByRole('button', { name: 'Remove it for good' }).click();
  await page.getByText('Your account is removed.').waitFor();
  await page.getByRole('button', { name: 'Sign up with a passkey' }).waitFor();
  t.same(complaints(), []);
});

t.test('admin pages: staff end sessions, and see how many applications wait', async (t) => {
  const link = await printedLink(gateway);
  const { page, complaints, violations } = await openPage(t, browser, link, { passkeys: true });
  await becomeAdmin(page);
  const { url } = gateway;
  const person = await signUp(url);
  const headers = { Cookie: person.cookie };
  const app = { name: 'Shop', url: 'https://shop.example' };
  expectOk('app', await request(`${url}/auth/v1/app/upsert_usr_app`, { headers, body: app }));
  await linkTo(page, 'Applications').click();
  await page.getByText('1 application waits for approval.').waitFor();
  await page.getByLabel('Only those without an approval').check();
  await page.getByText('Unregistered hosts').waitFor({ state: 'hidden' });
  t.same(await violations(), []);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('0 applications wait for approval.').waitFor();
  await page.goto(`${HOME}ProxyAdmin/Account?userId=${person.userId}`);
  await page.getByRole('button', { name: 'End all sessions' }).click();
  await page.getByRole('button', { name: 'End them' }).click();
  await page.getByText('This account has no open sessions.').waitFor();
  t.equal((await request(`${url}/auth/v1/account`, { headers })).status, 401);
  t.same(await violations(), []);
  t.same(complaints(), []);
});
