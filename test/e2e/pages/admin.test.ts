/** The admin panel in a browser against the program: set-up, every page, the view of a second admin. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { request, signUp } from '../../../kit/agent.ts';
import { listenFor } from '../../../kit/http.ts';
import { launchFor, runToEnd } from '../../../kit/launch.ts';
import { promiseOf } from '../../support/http.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { type OpenPage, openPage } from '../../support/pages/pages.ts';
import { becomeAdmin, failsAndContinues, linkTo, printedLink } from '../../support/pages/panel.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const McpProfiles = { shop: { tools: ['wallet', 'payorder_*'] }, markets: { tools: ['market_get_*'] } };
const gateway = await launchFor(t, { configuration: { McpProfiles }, args: ['--sandbox'] });
const HOME = `${gateway.url.replace('127.0.0.1', 'localhost')}/`;
const PANEL = `${HOME}ProxyAdmin/`;
const setupLink = await printedLink(gateway);

// covers R4 S118
t.test('admin: the set-up link makes an admin once, and every page of the panel works', async (t) => {
  const admin = await openPage(t, browser, setupLink, { passkeys: true });
  const { page, complaints, violations, look } = admin;
  await page.getByRole('heading', { name: 'Become the first admin' }).waitFor();
  t.same(await violations(), []);
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  t.equal(new URL(page.url()).hash, '', 'the token leaves the address');
  await page.getByText('One admin with one passkey').waitFor();
  await page.getByRole('table', { name: 'Routes by calls' }).waitFor();
  await page.getByRole('img', { name: /Requests per second: all/ }).waitFor();
  await look(t, 'admin-dashboard');
  await t.test('a setting', (t) => changeSetting(t, admin));
  for (const [name, word] of [
    ['Accounts', /active/],
    ['Keys', /current/],
    ['Applications', /Unregistered hosts/],
    ['Uploads', /No open uploads/],
    ['Events', /Module|No events yet/],
    ['Logins', /When|No login/],
    ['Audit', /ApiRPSLimit/],
    ['Actors', /No failing actors/],
    ['Modules', /Not called|Healthy/],
    ['Tools', /four bytes each/],
    ['Health', /writable/],
  ] as const) {
    await linkTo(page, name).click();
    await page.getByRole('heading', { name, exact: true }).waitFor();
    await page.getByText(word).first().waitFor();
    await look(t, `admin-${name.toLowerCase().replace(' ', '-')}`);
  }
  await t.test('tools', (t) => seeTools(t, admin));
  await t.test('catalog', (t) => seeLists(t, admin));
  await t.test('deliveries', (t) => seeDeliveries(t, admin));
  await t.test('roles', (t) => changeRole(t, admin));
  await t.test('audit', (t) => filterAudit(t, admin));
  await t.test('one account', (t) => seeAccount(t, admin));
  // The clicks exceed the session's quota: the page waits for the next window by itself.
  t.same(
    complaints().filter((text) => !/429|400|404|503/.test(text)),
    [],
  );
  const again = await openPage(t, browser, setupLink, { passkeys: true });
  await again.page.getByRole('button', { name: 'Create a passkey' }).click();
  await again.page.getByRole('alert').getByText('Set-up link is over').waitFor();
});

t.test('admin: the link of admin recover makes one more admin, and its page says so', async (t) => {
  const { stdout } = await runToEnd(['admin', 'recover', '--data', gateway.dataPath]);
  const [link = ''] = /http:\S+\/ProxyAdmin\/Recovery#[\w-]{43}/.exec(stdout) ?? [];
  const { page, violations } = await openPage(t, browser, link, { passkeys: true });
  await page.getByRole('heading', { name: 'Regain access as an admin' }).waitFor();
  t.equal(await page.getByText('first admin').count(), 0);
  t.same(await violations(), []);
  await becomeAdmin(page);
  await linkTo(page, 'Accounts').click();
  const admins = page.getByRole('row').filter({ has: page.getByText('admin', { exact: true }) });
  await admins.nth(1).waitFor();
  t.equal(await admins.count(), 2);
});

/** Filters the tools, and copies a request of one from its form; a tab without an agent calls nothing. */
async function seeTools(t: Test, { page, look }: OpenPage): Promise<void> {
  await linkTo(page, 'Tools').click();
  await page.getByLabel('Name or description').fill('wallet_get_balance');
  await page.getByText(/^1 of \d+ tools$/).waitFor();
  await page.getByRole('link', { name: 'wallet_get_balance' }).click();
  await page.getByText('this tab has no agent').waitFor();
  await page.getByText('No call of it among the last 1,000 calls').waitFor();
  await page.getByRole('row', { name: /^24 h/ }).waitFor();
  await look(t, 'admin-tool');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByLabel('currency').fill("it's");
  await page.getByRole('button', { name: 'Copy as curl' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const curl = await page.evaluate<string>('navigator.clipboard.readText()');
  t.match(curl, /^curl http:\S+\/mcp \\\n/);
  t.ok(curl.includes(`"arguments":{"currency":"it'\\''s"}`), curl);
  t.ok(await page.getByRole('button', { name: 'Call wallet_get_balance' }).isDisabled());
  await page.getByRole('link', { name: 'All tools' }).click();
}

/** One table of sizes for each address; callers without a tool have a line instead of rows. */
async function seeLists(t: Test, { page }: OpenPage): Promise<void> {
  await linkTo(page, 'Tools').click();
  await page.getByRole('heading', { name: 'Profile markets' }).waitFor();
  t.strictSame(await page.getByRole('main').getByRole('heading', { level: 2 }).allInnerTexts(), [
    'All tools',
    'Profile shop',
    'Profile markets',
    'Reload',
  ]);
  const shop = page.getByRole('table', { name: 'Sizes of tools/list: Profile shop' });
  const [row = ''] = await shop.getByRole('row', { name: /^McpVerified/ }).allInnerTexts();
  t.match(row.trim(), /^McpVerified\s+12\s+1\d,\d{3}\s+2,\d{3}$/);
  t.equal(await shop.getByRole('row', { name: /^Code of a chat/ }).count(), 0);
  await page.getByText('No tools for: Code of a chat, Code of a payment.').first().waitFor();
  await page.getByText('/mcp/p/shop').waitFor();
}

/** Polls the page, since the receiver gets a delivery before the attempt is stored. */
async function refreshUntil(page: Page, shown: Locator): Promise<void> {
  while (!(await shown.isVisible())) {
    const answered = page.waitForResponse(/api\/deliveries/);
    await page.getByRole('button', { name: 'Refresh' }).click();
    await answered;
  }
}

/** Approves an application, shows its deliveries and sends one again. */
async function seeDeliveries(t: Test, opened: OpenPage): Promise<void> {
  const { page, look } = opened;
  const heard: string[] = [];
  const { promise: arrived, resolve: first } = promiseOf();
  const receiver = createServer((request, answer) => {
    heard.push(String(request.headers['webhook-id']));
    request.resume();
    answer.end(first);
  });
  const { port } = await listenFor(t, receiver);
  const owner = await signUp(gateway.url);
  const body = { name: 'Shop', url: 'https://shop.example', webhookUrl: `http://127.0.0.1:${port}/` };
  const headers = { Cookie: owner.cookie };
  await request(`${gateway.url}/auth/v1/app/upsert_usr_app`, { headers, body });
  const key = readFileSync(join(gateway.dataPath, 'sandbox/module-key'), 'utf8').trim();
  const event = { module: 'core', tick: '1', type: 'Tried', crmId: owner.userId, data: {} };
  await request(`${gateway.internal}/internal/v1/events`, {
    headers: { 'X-Module-Key': key },
    body: { events: [event] },
  });
  await arrived;
  await linkTo(page, 'Applications').click();
  const row = page.getByRole('row', { name: /Shop/ });
  // Over the limit once: the page repeats the request after Retry-After.
  let sent = 0;
  await page.route('**/api/apps/update', async (route) => {
    sent += 1;
    if (sent > 1) await route.continue();
    else
      await route.fulfill({ status: 429, headers: { 'retry-after': '1' }, json: { error: { code: 1002 } } });
  });
  await row.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('The application is approved').waitFor();
  t.ok(sent >= 2, `sent ${sent} times`);
  await row.getByText('approved', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Deliveries of Shop' }).click();
  // The newest delivery is first: the approval is an event of its own.
  const delivery = page.locator('.delivery').filter({ hasText: 'Tried' });
  await refreshUntil(page, delivery.getByText('delivered'));
  await delivery.locator('summary').click();
  const attempts = delivery.getByRole('table', { name: 'Attempts of Tried' }).getByRole('row');
  await attempts.nth(1).getByText('200').waitFor();
  await look(t, 'admin-deliveries');
  await delivery.getByRole('button', { name: 'Resend' }).click();
  await page.getByText('The delivery is sent again').waitFor();
  await refreshUntil(page, delivery.getByText('2 attempts'));
  t.equal(await attempts.filter({ has: page.getByText('resend', { exact: true }) }).count(), 1);
  t.equal(heard.filter((id) => id === heard[0]).length, 2, 'the same webhook-id');
  await copyDelivery(t, opened, delivery);
}

/** Copies what a delivery carried and how it was signed, and finds it again by the link of the overview. */
async function copyDelivery(t: Test, { page, look }: OpenPage, delivery: Locator): Promise<void> {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await delivery.getByRole('button', { name: 'Show payload' }).click();
  await delivery.getByRole('button', { name: 'Copy payload' }).click();
  await delivery.getByRole('button', { name: 'Copied' }).waitFor();
  const carried = JSON.parse(await page.evaluate<string>('navigator.clipboard.readText()'));
  t.match(carried, { module: 'core', type: 'Tried' });
  await delivery
    .getByRole('button', { name: /copy the headers with the signature/ })
    .first()
    .click();
  await delivery
    .getByRole('button', { name: /^Copied/ })
    .nth(1)
    .waitFor();
  const signature = await page.evaluate<string>('navigator.clipboard.readText()');
  t.match(signature, /^webhook-id: msg_\S+\nwebhook-timestamp: \d{10}\nwebhook-signature: v1,\S{44}$/);
  await look(t, 'admin-delivery-payload');
  const { id } = (
    await page.evaluate<{ id: string; name: string }[]>(
      `fetch('/ProxyAdmin/api/apps').then((answer) => answer.json()).then(({ result }) => result)`,
    )
  ).find(({ name }) => name === 'Shop') ?? { id: '' };
  await page.goto(`${PANEL}Apps?deliveries=${id}`);
  await page.getByRole('heading', { name: 'Deliveries of Shop' }).waitFor();
  await delivery.getByText('2 attempts').waitFor();
}

/** No request is sent before the dialog is confirmed: not by a select, Escape or Cancel. */
async function changeRole(t: Test, { page, look, picture }: OpenPage): Promise<void> {
  const person = await signUp(gateway.url);
  const sent: unknown[] = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().endsWith('/api/staff'))
      sent.push(request.postDataJSON());
  });
  await linkTo(page, 'Accounts').click();
  await openAccount(page, person.userId);
  const band = page.locator('dl.band');
  const change = band.getByRole('button', { name: 'Change' });
  const dialog = page.getByRole('dialog', { name: `Role of account …${person.userId.slice(-4)}` });
  await change.click();
  await dialog.getByLabel('New role').waitFor();
  t.equal(
    await page.evaluate('document.activeElement.textContent'),
    'Cancel',
    'the cancel button has the focus',
  );
  await dialog.getByLabel('New role').selectOption('admin');
  await dialog.getByText('gets the role admin. It can change everything').waitFor();
  await dialog.getByRole('button', { name: 'Assign the role admin' }).waitFor();
  await look(t, 'admin-role');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  t.equal(
    await page.evaluate("document.activeElement.textContent.includes('Change')"),
    true,
    'focus returns',
  );
  await change.click();
  await dialog.getByLabel('New role').selectOption('support');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'hidden' });
  t.same(sent, [], 'nothing was sent');
  t.equal(await band.getByText('none', { exact: true }).count(), 1);
  await change.click();
  t.equal(await dialog.getByLabel('New role').inputValue(), '', 'an unconfirmed choice is discarded');
  await dialog.getByLabel('New role').selectOption('viewer');
  await dialog.getByRole('button', { name: 'Assign the role viewer' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await band.getByText('viewer', { exact: true }).waitFor();
  // Over the quota of the session a request is repeated.
  t.same(
    [...new Set(sent.map((body) => JSON.stringify(body)))],
    [JSON.stringify({ userId: person.userId, role: 'viewer' })],
  );
  await picture('admin-users-role');
}

async function openAccount(page: Page, userId: string): Promise<void> {
  await page
    .getByRole('row', { name: new RegExp(userId) })
    .getByRole('link')
    .click();
  await page.getByRole('navigation', { name: 'Lists of the account' }).waitFor();
}

/** The page of an account: where the focus goes, its lists, a block with a reason, a failure, an account that there is not. */
async function seeAccount(t: Test, { page, violations, look }: OpenPage): Promise<void> {
  const person = await signUp(gateway.url);
  const headers = { Cookie: person.cookie };
  await request(`${gateway.url}/auth/v1/account`, { headers, body: { nickname: 'Mara Lindqvist' } });
  await linkTo(page, 'Accounts').click();
  await page.getByLabel('Search by name or id').fill('mara');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByRole('row').nth(1).waitFor();
  t.match(page.url(), /Users\?search=mara$/, 'the search is in the URL');
  await page.getByRole('link', { name: 'Mara Lindqvist' }).click();
  await page
    .getByText('This account has no open sessions')
    .or(page.getByRole('table', { name: 'Sessions' }))
    .waitFor();
  t.equal(
    await page.evaluate('document.activeElement.textContent'),
    'Mara Lindqvist',
    'the heading has the focus',
  );
  const lists = page.getByRole('navigation', { name: 'Lists of the account' });
  for (const [name, word] of [
    ['Keys', 'Software key'],
    ['Connected hosts', 'No host is connected'],
    ['Applications', 'has registered no application'],
    ['Webhooks', 'No deliveries'],
    ['Logins', 'sign_up'],
    ['Files', 'No uploads'],
    ['Audit', 'sign_up'],
    ['Sessions', 'Browser'],
  ] as const) {
    await lists.getByRole('link', { name: new RegExp(`^${name}`) }).click();
    await page.getByRole('main').getByText(word).first().waitFor();
    await look(t, `account-${name.toLowerCase().replace(' ', '-')}`);
  }
  await page.getByRole('button', { name: 'Block' }).click();
  const dialog = page.getByRole('dialog', { name: 'Block Mara Lindqvist?' });
  await dialog.getByRole('button', { name: 'Block the account' }).click();
  await dialog.getByRole('alert').getByText('Say why').waitFor();
  await look(t, 'account-block');
  await dialog.getByLabel('Reason').fill('A stolen laptop');
  await dialog.getByRole('button', { name: 'Block the account' }).click();
  await page.getByText('This account has no open sessions.').waitFor();
  await page.getByText('blocked', { exact: true }).first().waitFor();
  await lists.getByRole('link', { name: 'Audit' }).click();
  await page.getByText('A stolen laptop').waitFor();
  const requests = '**/api/user_keys?*';
  await page.route(requests, (route) =>
    route.fulfill({ status: 503, json: { error: { code: 1012, message: 'Temporarily unavailable' } } }),
  );
  await lists.getByRole('link', { name: 'Keys' }).click();
  await page.getByRole('alert').getByText('Temporarily unavailable').waitFor();
  t.same(await violations(), []);
  await page.unroute(requests);
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('Software key').waitFor();
  await page.goto(`${PANEL}Account?userId=42`);
  await page.getByText('There is no account with the id 42.').waitFor();
  await look(t, 'account-missing');
}

async function filterAudit(t: Test, { page, violations, look, picture }: OpenPage): Promise<void> {
  await linkTo(page, 'Audit').click();
  const rows = page.getByRole('region', { name: 'Audit log' }).getByRole('row');
  await rows.nth(1).getByText('roleChanged').waitFor();
  t.match(await rows.nth(1).textContent(), /Account.*Before.*After.*From/, 'the newest first');
  await page.getByLabel('What').selectOption('settingChanged');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('End of the log').waitFor();
  t.match(page.url(), /Audit\?event=settingChanged$/, 'the filter is in the URL');
  t.same([...new Set(await page.locator('tbody code').allTextContents())], ['settingChanged']);
  await look(t, 'admin-audit-filtered');
  await page.getByLabel('To', { exact: true }).fill('2020-01-01T00:00:00');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.getByText('No matching records.').waitFor();
  t.match(page.url(), /to=2020-01-01T00%3A00%3A00.000Z/);
  await look(t, 'admin-audit-empty');
  await failsAndContinues(page, {
    route: 'audit',
    next: 'before=9',
    bound: 'Each page searches 20,000 records',
    goOn: 'Continue with older records',
    found: rows.nth(1),
    look: () => picture('admin-audit-continue'),
  });
  await page.setViewportSize({ width: 390, height: 844 });
  t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= 390, 'fits a phone');
  await picture('admin-audit-narrow');
  const show = page.getByRole('button', { name: 'Show', exact: true });
  await show.waitFor({ state: 'hidden' });
  await page.getByText('Filter', { exact: true }).click();
  await show.waitFor();
  t.same(await violations(), [], 'a filter that is opened on a phone');
  await page.getByRole('button', { name: 'Menu', exact: true }).click();
  await linkTo(page, 'Accounts').click();
  await page
    .getByRole('row')
    .filter({ has: page.getByText('viewer', { exact: true }) })
    .getByRole('link')
    .click();
  await page.getByText('Change').first().click();
  await page.getByRole('dialog').getByLabel('New role').selectOption('admin');
  t.same(await violations(), []);
  t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= 390);
  await picture('admin-role-narrow');
  await page.keyboard.press('Escape');
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function changeSetting(t: Test, { page, violations, look }: OpenPage): Promise<void> {
  await linkTo(page, 'Settings').click();
  await page.getByRole('row', { name: /^requests/ }).waitFor();
  await page.getByLabel('Search settings').waitFor();
  t.same(
    (await page.getByRole('main').getByRole('heading', { level: 2 }).allInnerTexts()).slice(0, 2),
    ['Rate limits', 'Connections and streams'],
    'groups, above the bounds',
  );
  t.equal(
    await page.getByLabel('Open connections', { exact: true }).inputValue(),
    '10,000',
    'grouped digits',
  );
  await page.getByLabel('Search settings').fill('ApiRPSLimit');
  const field = page.getByLabel('Requests of a connection', { exact: true });
  await field.fill('-1');
  const save = page.getByRole('button', { name: 'Save' });
  await save.click();
  await page.getByRole('alert').getByText('from 0 to 1,000,000').waitFor();
  t.equal(await field.inputValue(), '-1', 'typed input stays');
  t.same(await violations(), []);
  await field.fill('50');
  await save.click();
  await page.getByText('Requests of a connection is changed').waitFor();
  const row = page.locator('.setting').filter({ has: field });
  await row.getByText(/^Changed by account …\d{4}\s+just now/).waitFor();
  await look(t, 'admin-settings');
  const bounds = page.getByRole('region', { name: 'Shared bounds' });
  t.match(await bounds.getByRole('row', { name: /^requests/ }).innerText(), /20,000/);
  // Another admin changes the setting meanwhile; simulated by a direct request with this browser's session.
  await field.fill('60');
  await page.evaluate(
    `fetch('/ProxyAdmin/api/settings', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ name: 'ApiRPSLimit', value: 70 }) })`,
  );
  await save.click();
  await page.getByRole('alert').getByText('set it to 70 after you opened this page').waitFor();
  t.same(await violations(), []);
  await page.getByRole('button', { name: 'Overwrite' }).click();
  await save.waitFor({ state: 'hidden' });
  t.equal(await field.inputValue(), '60');
  await t.test('only what has changed, and the default again', (t) => resetSetting(t, page));
  await t.test('a guard on leaving', (t) => guardLeaving(t, page, violations));
}

/** `ApiRPSLimit` is the only setting that has changed. */
async function resetSetting(t: Test, page: Page): Promise<void> {
  await page.getByLabel('Search settings').fill('');
  await page.getByLabel('Changed only').check();
  await page.getByText(/^1 of \d+ settings$/).waitFor();
  await page.getByRole('button', { name: 'Reset Requests of a connection' }).click();
  t.equal(await page.getByLabel('Requests of a connection', { exact: true }).inputValue(), '2');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Every setting has its default').waitFor();
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.getByText('Largest file', { exact: true }).waitFor();
}

/** By a link and by the way back; input that is undone is not asked about. */
async function guardLeaving(t: Test, page: Page, violations: OpenPage['violations']): Promise<void> {
  const field = page.getByLabel('Largest file', { exact: true });
  await field.fill('10485760');
  await page.getByText('10 MB').waitFor();
  const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
  await linkTo(page, 'Accounts').click();
  await dialog.getByText('1 setting is not saved: Largest file.').waitFor();
  t.same(await violations(), []);
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.goBack();
  await dialog.waitFor();
  t.match(page.url(), /Settings$/);
  t.equal(await field.inputValue(), '10,485,760', 'input stays');
  await dialog.getByRole('button', { name: 'Leave' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
  await linkTo(page, 'Settings').click();
  await field.fill('1');
  await page.getByRole('button', { name: 'Undo' }).click();
  t.equal(await field.inputValue(), '20,971,520');
  await linkTo(page, 'Accounts').click();
  await page.getByRole('heading', { name: 'Accounts' }).waitFor();
}

// covers R4
t.test('admin: an account without a role sees that it has none, and every API is 403', async (t) => {
  const { page, complaints, violations } = await openPage(t, browser, HOME, { passkeys: true });
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await page.getByRole('heading', { name: 'Connect an agent' }).waitFor();
  await page.goto(`${PANEL}Users`);
  await page.getByRole('heading', { name: 'This account has no role' }).waitFor();
  t.same(await violations(), []);
  const statuses = await page.evaluate(
    `Promise.all(['settings','users','audit','staff','live','actors','overview'].map(async (name) => (await fetch('/ProxyAdmin/api/' + name)).status))`,
  );
  t.same(statuses, [403, 403, 403, 403, 403, 403, 403]);
  t.same(
    complaints().filter((text) => !text.includes('403')),
    [],
  );
});

t.test('admin: the panel at 360 pixels, and the login page without a session', async (t) => {
  const { page, complaints, violations, picture } = await openPage(t, browser, `${PANEL}Settings`, {
    widthPixels: 360,
  });
  await page.getByRole('heading', { name: 'Log in to the admin panel' }).waitFor();
  t.same(await violations(), []);
  t.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= 360);
  await picture('admin-login-narrow');
  t.same(complaints(), []);
});
