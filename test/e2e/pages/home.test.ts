/** The home page in a browser against the program with its default limits: the first steps of a new user. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t from 'tap';
import { promiseOf } from '../../support/http.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { defaultGateway } from '../../support/pages/gateways.ts';
import { logOut, openPage } from '../../support/pages/pages.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const gateway = await defaultGateway(t);
const HOME = `${gateway.url.replace('127.0.0.1', 'localhost')}/`;

const part = (page: Page, name: string) =>
  page.getByRole('navigation', { name: 'Parts' }).getByRole('link', { name });

// covers R4
t.test('home: from nothing to an agent that called a tool in three clicks', async (t) => {
  const { page, complaints, look } = await openPage(t, browser, HOME, { passkeys: true });
  await page.getByRole('heading', { name: 'One entry point for people and agents' }).waitFor();
  const address = `${HOME}connect/mcp`;
  await page.locator('.address').getByText(address, { exact: true }).waitFor();
  await look(t, 'welcome');
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await page.locator('.address').getByText(address, { exact: true }).waitFor();
  await page.getByText('VS Code', { exact: true }).click();
  t.match(JSON.parse((await page.getByLabel('For VS Code').textContent()) ?? ''), {
    servers: { gatehouse: { type: 'http', url: address } },
  });
  await page.locator('.address').getByText(`${HOME}connect/p/shop/mcp`, { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Copy the address of Shop' }).waitFor();
  await page.getByText('?tools=wallet,market_*', { exact: true }).waitFor();
  t.equal(
    await page.getByLabel('Command of the connector').textContent(),
    `npx -y ${HOME}connect/connector.tgz ${HOME.slice(0, -1)}`,
  );
  await page.getByText(/SHA-256 is [0-9a-f]{64}/).waitFor();
  await page.getByRole('button', { name: 'Create an agent' }).click();
  await page.getByRole('button', { name: 'Call a tool' }).click();
  const answer = page.getByLabel('Answer of the tool');
  await answer.waitFor();
  t.match(await answer.textContent(), /"loginType": "McpVerified"/);
  t.match(
    await page.getByLabel('Configuration', { exact: true }).textContent(),
    /"Authorization": "Bearer [A-Za-z0-9_-]{46}"/,
  );
  await look(t, 'agent');

  await part(page, 'Try tools').click();
  await page.getByLabel('Search').fill('balance');
  await page.getByRole('button', { name: 'wallet_get_balance' }).click();
  await page.getByRole('button', { name: 'Call wallet_get_balance' }).click();
  await page.getByText('answered').waitFor();
  t.match(await page.locator('pre').textContent(), /1000/);
  await look(t, 'tools');

  await part(page, 'Keys').click();
  await page.getByText('current').waitFor();
  t.equal(await page.getByRole('article').count(), 2);
  const passkey = page.getByRole('article').filter({ hasText: 'current' });
  const sentence = 'Agents cannot log in with a passkey. MCP access has no effect for this key.';
  await passkey.getByRole('button', { name: 'Allow agents (MCP)' }).click();
  await passkey.getByRole('button', { name: 'Forbid agents (MCP)' }).waitFor();
  t.equal(await passkey.getByText('MCP, no effect', { exact: true }).count(), 1, 'shown as stored');
  t.equal(await page.getByText(sentence).count(), 1, 'shown for the passkey, not for the software key');
  t.equal(await passkey.getByText(sentence).count(), 1);
  const described = passkey.getByRole('button', { description: sentence });
  t.equal(await described.textContent(), 'Forbid agents (MCP)', 'the description of the button');
  await look(t, 'keys');

  await part(page, 'Sessions').click();
  await page.getByText('current').waitFor();
  await look(t, 'sessions');
  await logOut(page);
  await page.getByRole('button', { name: 'Log in with a passkey' }).waitFor();
  t.equal(
    await page.evaluate("sessionStorage.getItem('gatehouse-agent')"),
    null,
    'nothing is left for the next user',
  );
  t.same(complaints(), []);
});

// covers S119
t.test(
  'home: a tool that is not read-only asks first, and sends the arguments that it has shown',
  async (t) => {
    const { page, complaints, look, picture } = await openPage(t, browser, HOME, { passkeys: true });
    await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
    await page.getByRole('button', { name: 'Create an agent' }).click();
    await page.getByText('The agent has a key and a session').waitFor();
    const calls: unknown[] = [];
    page.on('request', (request) => {
      const body = request.url().endsWith('/mcp') ? request.postDataJSON() : undefined;
      if (body?.method === 'tools/call') calls.push(body.params);
    });
    await part(page, 'Try tools').click();
    await page.getByLabel('Search').fill('wallet_internal_transfer');
    await page.getByRole('button', { name: 'wallet_internal_transfer' }).click();
    for (const field of await page
      .locator('form .stack > div, form > div')
      .locator('input, select, textarea')
      .all())
      if ((await field.getAttribute('required')) !== null) await field.fill('7');
    const call = page.getByRole('button', { name: 'Call wallet_internal_transfer' });
    const dialog = page.getByRole('dialog', { name: 'Call wallet_internal_transfer?' });
    await call.click();
    const shown = dialog.getByLabel('Request');
    await shown.waitFor();
    const request = JSON.parse((await shown.textContent()) ?? '');
    t.equal(request.name, 'wallet_internal_transfer');
    t.ok(Object.keys(request.arguments).length > 0);
    t.equal(
      await page.evaluate('document.activeElement.textContent'),
      'Cancel',
      'the cancel button has the focus',
    );
    await look(t, 'tool-question');
    await page.setViewportSize({ width: 390, height: 844 });
    await picture('tool-question-narrow');
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'hidden' });
    await call.click();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'hidden' });
    t.same(calls, [], 'nothing was sent');
    await call.click();
    await dialog.getByRole('button', { name: 'Call it' }).click();
    await page.getByRole('region', { name: 'Answer' }).waitFor();
    t.same(calls, [request], 'the shown request, once');
    await dialog.waitFor({ state: 'hidden' });
    t.same(complaints(), []);
  },
);

t.test(
  'home: a file uploads with a pause and downloads unchanged, and its message arrives as a live event',
  async (t) => {
    const { page, complaints, look } = await openPage(t, browser, HOME, { passkeys: true });
    await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
    await page.getByRole('heading', { name: 'Connect an agent' }).waitFor();
    await part(page, 'Live events').click();
    await page.getByText('live', { exact: true }).waitFor();
    await look(t, 'events-empty');
    await part(page, 'Files').click();
    await page.getByText('No uploads yet').waitFor();
    const bytes = randomBytes(4 * 1024 * 1024 + 17);
    // The first part waits for the click, which would otherwise race with the whole upload.
    const { promise: clicked, resolve: release } = promiseOf();
    await page.route('**/upload_part?*', async (route) => {
      await clicked;
      await route.continue();
    });
    await page.getByLabel('Files to upload').setInputFiles({ name: 'a.bin', mimeType: '', buffer: bytes });
    await page.getByRole('button', { name: 'Pause' }).click();
    release();
    await page.getByText('paused').waitFor();
    await look(t, 'files');
    await page.getByRole('button', { name: 'Resume' }).click();
    const link = page.getByRole('link', { name: 'Download' });
    await link.waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
    t.ok(readFileSync(await download.path()).equals(bytes), 'byte for byte');
    t.equal(download.suggestedFilename(), 'a.bin');
    const tab = await page.context().newPage();
    await tab.goto(`${HOME}#events`);
    await tab.getByText('live', { exact: true }).waitFor();
    const small = { name: 'b.txt', mimeType: 'text/plain', buffer: Buffer.from('hello') };
    await page.getByLabel('Files to upload').setInputFiles(small);
    await tab.getByText('NewChatMessage', { exact: true }).waitFor();
    await tab.getByText('Payload').click();
    await tab.getByText('"module": "chat"').waitFor();
    t.same(complaints(), []);
  },
);

t.test('home: markup in a name is shown as text, and typed input survives a refusal', async (t) => {
  const { page, complaints, look, picture } = await openPage(t, browser, HOME, { passkeys: true });
  const markup = '<img src=x onerror=alert(1)>';
  await page.getByLabel('Key name').fill(markup);
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await part(page, 'Keys').click();
  await page.getByRole('heading', { name: markup }).waitFor();
  await part(page, 'Applications').click();
  await page.getByText('No applications yet').waitFor();
  await picture('apps-empty');
  await page.getByRole('button', { name: 'Register an application' }).click();
  await page.getByLabel('Name').fill(markup);
  await page.getByLabel('Address').fill('no address');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').waitFor();
  t.match(await page.getByRole('alert').textContent(), /Invalid input format: .*url/);
  t.equal(await page.getByLabel('Name').inputValue(), markup);
  t.match(complaints(), [/400/], 'the refusal alone');
  await page.getByLabel('Address').fill('https://app.example');
  await page.getByLabel('Webhook').fill('http://127.0.0.1:9/hook');
  await page.getByLabel('Redirect URIs').fill('https://app.example/cb\nhttp://127.0.0.1/cb');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('It is shown once').waitFor();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('heading', { name: markup }).waitFor();
  await page.getByText('https://app.example/cb http://127.0.0.1/cb').waitFor();
  t.equal(await page.locator('img[src="x"]').count(), 0);
  await look(t, 'apps');
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByRole('button', { name: 'Make a new key' }).click();
  await page.getByText('keeps the former key for 24 hours').waitFor();
  await page.getByRole('button', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'End the former key' }).click();
  await page.getByRole('button', { name: 'End it' }).click();
  await page.getByText('Webhooks use the new key now').waitFor();
  await page.getByRole('button', { name: 'End the former key' }).waitFor({ state: 'detached' });
  t.same(complaints(), []);
});

t.test(
  'home: a session that ends elsewhere leads to the login page, and a key of the browser logs in again',
  async (t) => {
    const { page, complaints } = await openPage(t, browser, HOME);
    const loaded = page.waitForResponse(/mcp_profiles/);
    await page.getByRole('button', { name: 'Use this browser only' }).click();
    await page.getByRole('heading', { name: 'Connect an agent' }).waitFor();
    await loaded;
    await page.context().clearCookies();
    await part(page, 'Keys').click();
    await page.getByText('Your session has ended').waitFor();
    t.match(complaints(), [/401/]);
    await page.getByRole('button', { name: "Log in with this browser's key" }).click();
    await page.getByText('current').waitFor();
    await logOut(page);
    await page.getByRole('button', { name: "Log in with this browser's key" }).waitFor();
    t.same(complaints(), []);
  },
);

t.test('home: typed input survives the end of the session and a network failure', async (t) => {
  const { page, complaints, look } = await openPage(t, browser, HOME);
  await page.getByRole('button', { name: 'Use this browser only' }).click();
  await part(page, 'Applications').click();
  await page.getByRole('button', { name: 'Register an application' }).click();
  await page.getByLabel('Name').fill('Half typed');
  await page.getByLabel('Address').fill('https://half.example');
  await page.context().setOffline(true);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('alert').getByText('The gateway does not answer').waitFor();
  await page.context().setOffline(false);
  await page.context().clearCookies();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'Your session has ended' }).waitFor();
  await look(t, 'session-over');
  await page.getByRole('button', { name: "Log in with this browser's key" }).click();
  await page.getByRole('heading', { name: 'Your session has ended' }).waitFor({ state: 'hidden' });
  t.equal(await page.getByLabel('Name').inputValue(), 'Half typed');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('It is shown once').waitFor();
  const others = complaints().filter((text) => !/401|ERR_INTERNET_DISCONNECTED/.test(text));
  t.same(others, []);
});

t.test('home: an unknown address is a page with a link home', async (t) => {
  const { page, complaints, look } = await openPage(t, browser, `${HOME}nothing/here`);
  await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  t.equal(await page.title(), 'Page not found · Gatehouse');
  await look(t, 'not-found');
  t.match(complaints(), [/404/], 'the status alone: nothing breaks the policy');
  await page.getByRole('link', { name: 'Go to the home page' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  t.same(complaints(), []);
});

t.test('home: usable at 360 pixels and by keyboard alone', async (t) => {
  const { page, look, complaints } = await openPage(t, browser, HOME, { widthPixels: 360 });
  const tab = async (name: string) => {
    for (let steps = 0; steps < 30; steps += 1) {
      await page.keyboard.press('Tab');
      const focused = String(await page.evaluate('document.activeElement.textContent'));
      if (focused.includes(name)) return;
    }
    t.fail(`${name} is not reached by the keyboard`);
  };
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await tab('Use this browser only');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Connect an agent' }).waitFor();
  const width = Number(await page.evaluate('document.documentElement.scrollWidth'));
  t.ok(width <= 360, `nothing sticks out: ${width}`);
  await tab('Create an agent');
  await page.keyboard.press('Enter');
  await page.getByText('Paste this into').waitFor();
  await look(t, 'agent-narrow');
  t.same(complaints(), []);
});

t.test('home: the field for a code offers passkeys in its autofill, and a chosen one logs in', async (t) => {
  const { page, complaints, violations } = await openPage(t, browser, HOME, { passkeys: true });
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await part(page, 'Sessions').click();
  await logOut(page);
  await page.getByText('Log in with a code').waitFor();
  t.same(await violations(), []);
  // The virtual authenticator chooses the passkey at once.
  await page.getByText('Log in with a code').click();
  await part(page, 'Sessions').waitFor();
  t.same(complaints(), []);
});
