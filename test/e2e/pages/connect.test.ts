/** The page of /connect/authorize in a browser: sign-up and consent, refusal, another account, expiry, errors. */
import type { Page } from 'playwright-core';
import t from 'tap';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { CLAUDE, connectHost, LOOPBACK } from '../../support/pages/connect.ts';
import { defaultGateway } from '../../support/pages/gateways.ts';
import { openPage } from '../../support/pages/pages.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const gateway = await defaultGateway(t);
const HOME = gateway.url.replace('127.0.0.1', 'localhost');
const CHALLENGE_MS = 300_000;
const host = connectHost(HOME);

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const choice = (page: Page, name: string) => page.getByRole('radio', { name });
const heading = (page: Page, name: string) => page.getByRole('heading', { name }).waitFor();

// covers S109
t.test(
  'connect: a sign-up and a consent lead back to the host with a code that gives the shown tools',
  async (t) => {
    const { page, complaints, look, clientId, landed } = await host.openRequest(t, browser, CLAUDE);
    await heading(page, 'Log in to connect');
    t.equal(await page.title(), 'Log in to connect · Gatehouse');
    await look(t, 'connect-login');
    await button(page, 'Sign up with a passkey').click();
    await heading(page, 'Connect a program to your account?');
    t.equal(await page.locator('.where').textContent(), 'claude.ai');
    t.equal(await page.locator('q').first().textContent(), 'Claude', 'the own claim, quoted');
    t.equal(await page.locator('img:not([src^="/web/"])').count(), 0, 'no picture from elsewhere');
    await look(t, 'connect-consent');
    const shown = (await page.locator('.names code').allTextContents()).sort();
    t.ok(shown.includes('payorder_create'), 'named although it pays');
    t.same(complaints(), []);
    await button(page, 'Agree').click();
    const answer = await landed();
    t.match(Object.fromEntries(answer), { state: 'a state & more', iss: HOME });
    const accessToken = await host.exchange(clientId, CLAUDE, answer.get('code') ?? '');
    t.same(await host.tools(accessToken), shown);
  },
);

/** By the label of each choice: the granted scope, a tool that it opens, and one that needs the scope that is named. */
const CHOICES = [
  { label: 'Look things up', scope: 'read', opens: 'assets', beyond: ['payorder_create', 'tools'] },
  { label: 'Look up and act', scope: 'tools', opens: 'assets', beyond: ['sessions', 'full'] },
  { label: 'Everything you can do', scope: 'tools full', opens: 'sessions', beyond: undefined },
] as const;

for (const { label, scope, opens, beyond } of CHOICES)
  t.test(`connect: from the address to a called tool with the choice ${label}`, async (t) => {
    const asked = await host.discover();
    t.equal(asked, 'tools');
    const opened = await host.openRequest(t, browser, CLAUDE, { scope: asked });
    const { page, clientId, landed, complaints } = opened;
    await button(page, 'Use this browser only').click();
    await choice(page, label).check();
    const shown = (await page.locator('.names code').allTextContents()).sort();
    t.equal(await page.locator('.choice:has(:checked) .tag').textContent(), `${shown.length} tools`);
    await button(page, 'Agree').click();
    const redeemed = await host.redeem(clientId, CLAUDE, (await landed()).get('code') ?? '');
    t.equal(redeemed.scope, scope, 'the answer names what was given');
    t.same(await host.tools(redeemed.token), shown, 'the tools that the page named');
    const { result } = (await (await host.call(redeemed.token, opens)).json()) as { result: object };
    t.match(result, { content: [{ type: 'text' }] });
    t.notOk('isError' in result, 'a tool of the choice is called');
    t.same(complaints(), []);
    if (beyond === undefined) return;
    const [tool, needed] = beyond;
    const refused = await host.call(redeemed.token, tool);
    t.equal(refused.status, 403);
    t.match(refused.headers.get('www-authenticate'), `error="insufficient_scope", scope="${needed}"`);
  });

// covers S109
t.test('connect: a refusal leads back with access_denied and no code', async (t) => {
  const { page, look, landed } = await host.openRequest(t, browser, LOOPBACK, { scope: 'read' }, 'Editor');
  await button(page, 'Use this browser only').click();
  await heading(page, 'Connect a program to your account?');
  t.equal(await page.locator('.where').textContent(), 'a program on this computer');
  await page.getByText('Any program on this computer can ask').waitFor();
  await look(t, 'connect-computer');
  await button(page, 'Refuse').click();
  const answer = await landed();
  t.match(Object.fromEntries(answer), { error: 'access_denied', state: 'a state & more' });
  t.equal(answer.get('code'), null);
});

t.test('connect: a known program with a URI of its own is named as a program of this computer', async (t) => {
  const redirectUri = 'cursor://anysphere.cursor-mcp/oauth/callback';
  const { page, violations } = await host.openRequest(t, browser, redirectUri, {}, 'Cursor');
  await button(page, 'Use this browser only').click();
  await heading(page, 'Connect a program to your account?');
  t.equal(await page.locator('.where').textContent(), 'the program Cursor on this computer');
  await page.getByText('Any program on this computer can ask').waitFor();
  t.same(await violations(), []);
});

t.test('connect: another account is chosen before the consent', async (t) => {
  const { page } = await host.openRequest(t, browser, CLAUDE);
  const who = page.locator('.who .id');
  await button(page, 'Use this browser only').click();
  await who.waitFor();
  const first = await who.getAttribute('title');
  await button(page, 'Use another account').click();
  await heading(page, 'Log in to connect');
  await button(page, 'Sign up with a passkey').click();
  await who.waitFor();
  t.not(await who.getAttribute('title'), first);
  await button(page, 'Agree').waitFor();
});

// covers R45 S107
t.test('connect: full access wants a login of the last 15 minutes and shows every tool', async (t) => {
  const { page, look } = await host.openRequest(t, browser, CLAUDE, {
    scope: 'full offline_access',
  });
  await button(page, 'Sign up with a passkey').click();
  await heading(page, 'Connect a program to your account?');
  const full = choice(page, 'Everything you can do');
  await page.getByText('It asks for this. As if you had logged in yourself').waitFor();
  t.equal(await choice(page, 'Look up and act').isChecked(), true, 'full access is never the suggestion');
  await full.check();
  await page.getByText('It stays connected until it is unused').waitFor();
  t.ok((await page.locator('.names code').count()) > 50);
  await page.getByText('tools by name').click();
  await look(t, 'connect-full');
});

t.test('connect: a login that is too old for full access is repeated before the consent', async (t) => {
  const { page, look, clientId, landed } = await host.openRequest(t, browser, CLAUDE, {
    scope: 'full',
  });
  await heading(page, 'Log in to connect');
  // The gateway's answer with an older login: fifteen minutes do not pass in a test.
  await page.route(
    '**/connect/request?*',
    async (route) => {
      const response = await route.fetch();
      const { result } = (await response.json()) as { result: object };
      await route.fulfill({
        response,
        json: { result: { ...result, fullNeedsLogin: true } },
      });
    },
    { times: 1 },
  );
  await button(page, 'Use this browser only').click();
  await button(page, 'Agree').waitFor();
  await choice(page, 'Everything you can do').check();
  await page.getByText('You log in again first.').waitFor();
  t.equal(await button(page, 'Agree').count(), 0);
  await button(page, 'Log in again').click();
  await heading(page, 'Log in again to connect');
  await page.getByText('needs a login of the last 15 minutes').waitFor();
  t.equal(await button(page, 'Sign up with a passkey').count(), 0, 'no other account by accident');
  await look(t, 'connect-fresh');
  await button(page, "Log in with this browser's key").click();
  await heading(page, 'Connect a program to your account?');
  t.equal(await choice(page, 'Everything you can do').isChecked(), true, 'the choice is kept');
  await button(page, 'Agree').click();
  const redeemed = await host.redeem(clientId, CLAUDE, (await landed()).get('code') ?? '');
  t.equal(redeemed.scope, 'full');
});

t.test('connect: a question that is over is asked again', async (t) => {
  const { page, look, landed } = await host.openRequest(t, browser, CLAUDE);
  await button(page, 'Use this browser only').click();
  await button(page, 'Agree').waitFor();
  const asked = page.waitForResponse((response) => response.url().includes('/connect/request'));
  await page.reload();
  const { result } = (await (await asked).json()) as { result: { challenge: object } };
  const { challengeId, code } = result.challenge as { challengeId: number; code: string };
  await button(page, 'Agree').waitFor();
  const used = await page.evaluate(
    `fetch('/connect/decide', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ request: location.search.slice(1), challengeId: ${challengeId}, code: '${code}', allow: false }) }).then(({ status }) => status)`,
  );
  t.equal(used, 200, 'answered in another tab');
  await button(page, 'Agree').click();
  await heading(page, 'The question has expired');
  await look(t, 'connect-expired');
  await page.clock.install();
  await button(page, 'Ask again').click();
  await button(page, 'Agree').waitFor();
  // Every timer in between runs: the page may set that of the question after it has shown the button.
  await page.clock.runFor(CHALLENGE_MS + 1_000);
  await heading(page, 'The question has expired');
  await page.clock.resume();
  await button(page, 'Ask again').click();
  await button(page, 'Agree').click();
  t.ok((await landed()).get('code'));
});

// covers S110
t.test('connect: a wrong client, redirect or resource is an error page that leads nowhere', async (t) => {
  const clientId = await host.register(CLAUDE);
  const { page, look } = await openPage(t, browser, `${HOME}/health`, { passkeys: true });
  const requests: [string, string][] = [
    [host.authorizeUrl('dcr.unknown', CLAUDE), 'is not known to this gateway'],
    [
      host.authorizeUrl(clientId, 'https://evil.example/cb'),
      'redirect_uri is not one that the client registered',
    ],
    [`${HOME}/connect/authorize`, 'client_id is required'],
  ];
  const seen: [string, boolean][] = [];
  for (const [url, text] of requests) {
    await page.goto(url);
    await heading(page, 'This link cannot be used');
    await page.getByText(text).waitFor();
    seen.push([page.url(), (await button(page, 'Agree').count()) === 0]);
  }
  t.same(
    seen,
    requests.map(([url]) => [url, true]),
  );
  await look(t, 'connect-error');
});

t.test('connect: the name of an approved application is shown as its own claim', async (t) => {
  const { page } = await openPage(t, browser, `${HOME}/health`, { passkeys: true });
  await page.route('**/connect/request?**', async (route) => {
    const response = await route.fetch();
    const { result } = (await response.json()) as { result: object };
    const client = { kind: 'application', name: 'Claude', host: 'shop.example' };
    await route.fulfill({ response, json: { result: { ...result, client } } });
  });
  await page.goto(host.authorizeUrl(await host.register(CLAUDE), CLAUDE));
  await heading(page, 'Log in to connect');
  const shown = await page.locator('p', { has: page.locator('q') }).textContent();
  t.equal(
    shown,
    'A program that calls itself Claude of shop.example asks for access. An admin approved where the access goes, not the name.',
  );
});

// covers S108
t.test('connect: usable by keyboard alone, and a page in the background takes no answer', async (t) => {
  const { page, landed, clientId } = await host.openRequest(t, browser, CLAUDE);
  const tab = async (name: string) => {
    for (let steps = 0; steps < 30; steps += 1) {
      await page.keyboard.press('Tab');
      if (String(await page.evaluate('document.activeElement.textContent')) === name) return;
    }
    t.fail(`${name} is not reached by the keyboard`);
  };
  await heading(page, 'Log in to connect');
  await tab('Use this browser only');
  await page.keyboard.press('Enter');
  await heading(page, 'Connect a program to your account?');
  t.equal(await page.evaluate('document.activeElement.tagName'), 'H1', 'the step begins at its heading');
  await page.evaluate("dispatchEvent(new Event('blur'))");
  await page.evaluate("document.hasFocus = () => false; dispatchEvent(new Event('blur'))");
  t.equal(await button(page, 'Agree').isDisabled(), true);
  await page.evaluate("document.hasFocus = () => true; dispatchEvent(new Event('focus'))");
  t.equal(await button(page, 'Agree').isDisabled(), true, 'not yet');
  await page.locator('button:enabled', { hasText: 'Agree' }).waitFor();
  const checked = () => page.evaluate("document.activeElement.value + ' ' + document.activeElement.checked");
  await heading(page, 'Connect a program to your account?');
  while ((await page.evaluate('document.activeElement.type')) !== 'radio') await page.keyboard.press('Tab');
  t.equal(await checked(), 'tools true', 'one stop for the group, at its choice');
  await page.keyboard.press('ArrowDown');
  t.equal(await checked(), 'full true');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  t.equal(await checked(), 'read true');
  await tab('Agree');
  await page.keyboard.press('Enter');
  const code = (await landed()).get('code') ?? '';
  t.equal((await host.redeem(clientId, CLAUDE, code)).scope, 'read');
});

// covers S109
t.test('connect: markup in a name is shown as text', async (t) => {
  const markup = '<img src=x onerror=alert(1)>';
  const { page } = await host.openRequest(t, browser, CLAUDE, {}, markup);
  await button(page, 'Use this browser only').click();
  await heading(page, 'Connect a program to your account?');
  t.equal(await page.locator('q').first().textContent(), markup);
  t.equal(await page.locator('img[src="x"]').count(), 0);
});

t.test('home: a connected host is listed with its access, and ends with Disconnect', async (t) => {
  const { page, look, clientId, landed } = await host.openRequest(t, browser, CLAUDE);
  await button(page, 'Sign up with a passkey').click();
  await button(page, 'Agree').click();
  const accessToken = await host.exchange(clientId, CLAUDE, (await landed()).get('code') ?? '');
  await page.goto(`${HOME}/#hosts`);
  const row = page.getByRole('row').filter({ hasText: 'Claude' });
  await row.getByText('use tools').waitFor();
  await look(t, 'hosts');
  await button(page, 'Disconnect').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Disconnect it' }).click();
  await page.getByText('No host is connected.').waitFor();
  await look(t, 'hosts-empty');
  t.equal(await host.tools(accessToken), 401);
});
