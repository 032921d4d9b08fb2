/** The keys page of the admin panel in a browser against the program: search, add, change, remove. */
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { type Answer, newKey, type Person, request, signUp } from '../../../kit/agent.ts';
import { launchFor } from '../../../kit/launch.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { lettersOf } from '../../support/pages/letters.ts';
import { type OpenPage, openPage } from '../../support/pages/pages.ts';
import { becomeAdmin, failsAndContinues, fits, linkTo, printedLink } from '../../support/pages/panel.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const gateway = await launchFor(t);
const HOME = `${gateway.url.replace('127.0.0.1', 'localhost')}/`;
const KEYS = `${HOME}ProxyAdmin/UserKeys`;
const setupLink = await printedLink(gateway);
const PHONE = { width: 390, height: 844 };

const agent = newKey();
const mcpLogin = (): Promise<Answer> =>
  request(`${gateway.url}/auth/v1/mcp_login`, {
    method: 'POST',
    headers: { 'X-PublicKey': agent.publicKey },
  });
const rowOf = (page: Page, publicKey: string) =>
  page.getByRole('region', { name: 'Keys' }).getByRole('row').filter({ hasText: publicKey });
const show = (page: Page) => page.getByRole('button', { name: 'Show', exact: true }).click();
const focused = (page: Page) => page.evaluate('document.activeElement.textContent') as Promise<string>;

// covers R56 S117
t.test('admin keys: searched, added, changed and removed in the panel', async (t) => {
  const person = await signUp(gateway.url);
  const admin = await openPage(t, browser, setupLink, { passkeys: true });
  const { page, complaints } = admin;
  await becomeAdmin(page);
  await linkTo(page, 'Keys').click();
  await page.getByRole('heading', { name: 'Keys of all accounts' }).waitFor();
  await page.getByText('current').waitFor();
  await rowOf(page, person.key.publicKey).waitFor();
  await admin.look(t, 'keys');
  await t.test('a passkey', (t) => changePasskey(t, admin));
  await t.test('added', (t) => addKey(t, admin, person));
  await t.test('changed', (t) => changeKey(t, admin));
  await t.test('on a phone', (t) => onPhone(t, admin));
  await t.test('removed', (t) => removeKey(t, admin, person));
  await t.test('searched', (t) => searchKeys(t, admin, person));
  // covers S106
  await t.test('added by the link of an agent', (t) => addByLink(t, admin, person));
  await t.test('read by a viewer', (t) => readAsViewer(t, page));
  t.same(
    complaints().filter((text) => !/400|409|429|503/.test(text)),
    [],
  );
});

/** By keyboard only; a refusal is shown in the dialog, and typed input stays. */
async function addKey(t: Test, { page, violations, look, picture }: OpenPage, person: Person): Promise<void> {
  const { keyboard } = page;
  const dialog = page.getByRole('dialog', { name: 'Add a key' });
  await page.getByRole('button', { name: 'Add a key' }).focus();
  await keyboard.press('Enter');
  await dialog.waitFor();
  t.equal(await page.evaluate('document.activeElement.id'), 'add-account');
  t.same(await violations(), []);
  await keyboard.type(person.userId);
  await keyboard.press('Tab');
  await keyboard.type(person.key.publicKey);
  await keyboard.press('Tab');
  await keyboard.type('Night agent');
  await keyboard.press('Enter');
  await dialog.getByRole('alert').getByText('Key already registered').waitFor();
  t.equal(await dialog.getByLabel('Name').inputValue(), 'Night agent');
  await look(t, 'keys-add-refused');
  await dialog.getByLabel('Public key').fill(agent.publicKey);
  await keyboard.press('Enter');
  await dialog.waitFor({ state: 'hidden' });
  await page.getByText('The key is added.').waitFor();
  await page.getByRole('heading', { name: `Keys of account ${person.userId}` }).waitFor();
  t.match(page.url(), new RegExp(`UserKeys\\?userId=${person.userId}$`));
  const row = rowOf(page, agent.publicKey);
  await row.getByText('Night agent').waitFor();
  await row.getByText('unproven').waitFor();
  await row.getByText('no access').waitFor();
  t.equal((await mcpLogin()).status, 401, 'nothing is allowed yet');
  await picture('keys-added');
}

/** The letters are checked in the page; the key may then use MCP only. */
async function addByLink(t: Test, { page, look }: OpenPage, person: Person): Promise<void> {
  const { publicKey } = newKey();
  const dialog = page.getByRole('dialog', { name: 'Add a key' });
  await page.getByRole('button', { name: 'Add a key' }).click();
  await dialog.getByLabel('Account id').fill(person.userId);
  await dialog.getByLabel('Public key').fill(`${HOME}#agent-key=${publicKey}&agent-name=build%20server`);
  t.equal(await dialog.getByLabel('MCP').isChecked(), true);
  t.equal(await dialog.getByLabel('Browser login').isChecked(), false);
  const letters = dialog.getByLabel('Six letters');
  await letters.fill('AAAAAA');
  const add = dialog.getByRole('button', { name: 'Add the key' });
  await add.click();
  await dialog.getByRole('alert').getByText('do not belong to the key').waitFor();
  await look(t, 'keys-add-link');
  await letters.fill(lettersOf(publicKey));
  await add.click();
  await dialog.waitFor({ state: 'hidden' });
  const row = rowOf(page, publicKey);
  await row.getByText('build server').waitFor();
  await row.getByText('No browser', { exact: true }).waitFor();
}

/** Nothing is sent before it is saved; Escape discards the choice. */
async function changeKey(t: Test, { page, look, picture }: OpenPage): Promise<void> {
  const row = rowOf(page, agent.publicKey);
  const button = row.getByRole('button', { name: 'Change' });
  const dialog = page.getByRole('dialog', { name: 'Key permissions' });
  await button.click();
  t.equal(await dialog.getByRole('button', { name: 'Save' }).isDisabled(), true);
  await dialog.getByLabel('MCP').check();
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  t.match(await focused(page), /Change/, 'the focus is back');
  await button.click();
  t.equal(await dialog.getByLabel('MCP').isChecked(), false);
  await dialog.getByLabel('MCP').check();
  await dialog.getByLabel('Contact sync').check();
  await look(t, 'keys-change');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await row.getByText('MCP', { exact: true }).waitFor();
  await row.getByText('Contact sync', { exact: true }).waitFor();
  t.equal((await mcpLogin()).status, 200);
  await button.click();
  await dialog.getByLabel('MCP').uncheck();
  await dialog.getByText('logged out immediately').waitFor();
  await picture('keys-change-ends');
  await page.keyboard.press('Escape');
}

/** The access of a passkey is stored, and the panel says that it has no effect. */
async function changePasskey(t: Test, { page, look }: OpenPage): Promise<void> {
  const row = page.getByRole('row').filter({ hasText: 'current' });
  const dialog = page.getByRole('dialog', { name: 'Key permissions' });
  await row.getByRole('button', { name: 'Change' }).click();
  const sentence = 'Agents cannot log in with a passkey. MCP has no effect for this key.';
  await dialog.getByText(sentence).waitFor();
  await dialog.getByRole('checkbox', { description: sentence }).check();
  await look(t, 'keys-change-passkey');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await row.getByText('MCP, no effect', { exact: true }).waitFor();
  await look(t, 'keys-passkey');
}

async function onPhone(t: Test, { page, look }: OpenPage): Promise<void> {
  await page.setViewportSize(PHONE);
  const row = rowOf(page, agent.publicKey);
  t.ok(await fits(page, PHONE.width), 'the list fits');
  await look(t, 'keys-narrow');
  for (const [name, open] of [
    ['add', page.getByRole('button', { name: 'Add a key' })],
    ['change', row.getByRole('button', { name: 'Change' })],
    ['remove', row.getByRole('button', { name: 'Remove' })],
  ] as const) {
    await open.click();
    await page.getByRole('dialog').waitFor();
    t.ok(await fits(page, PHONE.width), name);
    t.equal(
      await page.evaluate(
        '(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector("dialog[open]"))',
      ),
      0,
      `the dialog to ${name} does not scroll`,
    );
    await look(t, `keys-narrow-${name}`);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  }
  await page.setViewportSize({ width: 1280, height: 900 });
}

async function removeKey(t: Test, { page, look }: OpenPage, person: Person): Promise<void> {
  const session = (await mcpLogin()).json['result']?.['sessionId'];
  const headers = { Authorization: `Bearer ${session}` };
  const ping = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const call = () => request(`${gateway.url}/mcp`, { headers, body: ping });
  t.match((await call()).json, { result: Object });
  const row = rowOf(page, agent.publicKey);
  const button = row.getByRole('button', { name: 'Remove' });
  const dialog = page.getByRole('dialog', { name: 'Remove the key' });
  for (const leave of [() => page.keyboard.press('Escape'), () => dialog.getByText('Cancel').click()]) {
    await button.click();
    await dialog.waitFor();
    t.equal(await focused(page), 'Cancel', 'the cancel button has the focus');
    await leave();
    await dialog.waitFor({ state: 'hidden' });
    t.match(await focused(page), /Remove/, 'the focus is back');
  }
  t.match((await call()).json, { result: Object }, 'nothing happened so far');
  await button.click();
  await look(t, 'keys-remove');
  await dialog.getByRole('button', { name: 'Remove the key' }).click();
  await page.getByText('The key is removed.').waitFor();
  await row.getByText('removed', { exact: true }).waitFor();
  t.equal(await row.getByRole('button', { name: /Change|Remove/ }).count(), 0);
  t.equal(
    await page.evaluate('document.activeElement.getAttribute("aria-label")'),
    'Keys',
    'the list has the focus',
  );
  t.match((await call()).json, { error: { code: -32001 } }, 'the session of the agent is over');
  t.equal((await mcpLogin()).status, 401);
  await look(t, 'keys-removed');
  const log = await request(`${gateway.url}/auth/v1/login_log`, { headers: { Cookie: person.cookie } });
  const entries = log.json['result'] as unknown as { event: string }[];
  const events = entries.map(({ event }) => event);
  t.same(
    events.filter((event) => event.endsWith('_by_admin')),
    ['key_removed_by_admin', 'key_changed_by_admin', 'key_added_by_admin'],
    'the user sees the change',
  );
}

async function searchKeys(t: Test, { page, look, picture }: OpenPage, person: Person): Promise<void> {
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.getByRole('heading', { name: 'Keys of all accounts' }).waitFor();
  await page.getByLabel('Public key or credential id').fill(` ${person.key.publicKey} `);
  await show(page);
  await page.getByText('One key. End of the list.').waitFor();
  t.match(page.url(), new RegExp(`UserKeys\\?publicKey=${person.key.publicKey}$`));
  await page.getByLabel('Public key or credential id').fill(agent.publicKey);
  await show(page);
  await page.getByText(/No key has exactly this public key.*Removed keys are not searched/).waitFor();
  await look(t, 'keys-empty');
  await page.getByLabel('Include removed keys').check();
  await show(page);
  await rowOf(page, agent.publicKey).getByText('removed', { exact: true }).waitFor();
  await page.getByLabel('Public key or credential id').fill('not base64url!');
  await show(page);
  await page
    .getByRole('alert')
    .getByText(/publicKey: expected base64url/)
    .waitFor();
  await look(t, 'keys-fault');
  await failsAndContinues(page, {
    route: 'user_keys',
    next: 'after=1',
    bound: 'Each page searches 1,000 accounts',
    goOn: 'Search more accounts',
    found: rowOf(page, person.key.publicKey),
    look: () => picture('keys-continue'),
  });
}

/** A viewer gets no button that changes a key. */
async function readAsViewer(t: Test, adminPage: Page): Promise<void> {
  const viewer = await signUp(gateway.url);
  const staff = JSON.stringify({ userId: viewer.userId, role: 'viewer' });
  const answer = await adminPage.evaluate(
    `fetch('/ProxyAdmin/api/staff', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '${staff}' }).then(({ status }) => status)`,
  );
  t.equal(answer, 200);
  const { page, violations, picture, complaints } = await openPage(t, browser, HOME, { widthPixels: 1024 });
  const [name = '', value = ''] = viewer.cookie.split('=');
  await page.context().addCookies([{ name, value, url: HOME }]);
  await page.goto(KEYS);
  await rowOf(page, viewer.key.publicKey).getByText('current').waitFor();
  const keys = page.getByRole('main');
  t.same(await keys.locator('button:not(.id)').allTextContents(), ['Show']);
  t.same(await violations(), []);
  t.ok(await fits(page, 1024));
  await picture('keys-viewer');
  t.same(complaints(), []);
}
