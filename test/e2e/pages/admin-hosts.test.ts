/** Connected hosts in the admin panel: the list of an account, its end, the switch of unregistered hosts. */
import t from 'tap';
import { launchFor, NO_LIMITS } from '../../../kit/launch.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { CLAUDE, connectHost } from '../../support/pages/connect.ts';
import { openPage } from '../../support/pages/pages.ts';
import { becomeAdmin, linkTo, printedLink } from '../../support/pages/panel.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const gateway = await launchFor(t, { configuration: { Settings: NO_LIMITS } });
const HOME = gateway.url.replace('127.0.0.1', 'localhost');
const host = connectHost(HOME);

t.test('admin hosts: an admin ends one connection, and switches unregistered hosts off and on', async (t) => {
  const admin = await openPage(t, browser, await printedLink(gateway), { passkeys: true });
  await becomeAdmin(admin.page);
  const person = await host.openRequest(t, browser, CLAUDE);
  const agree = person.page.getByRole('button', { name: 'Agree', exact: true });
  const connect = async () => {
    await agree.click();
    return host.exchange(person.clientId, CLAUDE, (await person.landed()).get('code') ?? '');
  };
  await person.page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  const userId = (await person.page.locator('.who .id').getAttribute('title')) ?? '';
  const first = await connect();
  t.type(await host.tools(first), 'object');

  const { page, look, complaints } = admin;
  await page.goto(`${HOME}/ProxyAdmin/Account?userId=${userId}&show=hosts`);
  const row = page.getByRole('row').filter({ hasText: 'Claude' });
  await row.getByText('use tools').waitFor();
  await look(t, 'admin-hosts');
  await row.getByRole('button', { name: 'Disconnect' }).click();
  await page.getByRole('button', { name: 'Disconnect it' }).click();
  await page.getByText('No host is connected to this account.').waitFor();
  t.equal(await host.tools(first), 401);

  const url = host.authorizeUrl(person.clientId, CLAUDE);
  await person.page.goto(url);
  const second = await connect();
  t.type(await host.tools(second), 'object');
  await linkTo(page, 'Applications').click();
  const unregistered = page.getByRole('row').filter({ hasText: 'Unregistered hosts' });
  await unregistered.getByText('the gateway').waitFor();
  t.equal(await unregistered.getByRole('button').count(), 1, 'only its switch');
  await look(t, 'admin-apps-unregistered');
  await unregistered.getByRole('button', { name: 'Switch off' }).click();
  await page.getByRole('button', { name: 'Switch them off' }).click();
  await unregistered.getByText('switched off').waitFor();
  t.equal(await host.tools(second), 401, 'all their connections end');
  await person.page.goto(url);
  await person.page.getByRole('heading', { name: 'This link cannot be used' }).waitFor();
  await unregistered.getByRole('button', { name: 'Switch on' }).click();
  await unregistered.getByRole('button', { name: 'Switch off' }).waitFor();
  await person.page.goto(url);
  await agree.waitFor();
  t.same(complaints(), []);
});
