/** Servers that each person connects, on the home page: the login there, a personal token, the end. */
import t from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { launchFor } from '../../../kit/launch.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { openPage } from '../../support/pages/pages.ts';
import { startOAuthUpstream } from '../../support/upstreams/oauth.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);

// covers R122
t.test('home: a server is connected by a login there, then by a token, and disconnected', async (t) => {
  const upstream = closeAfter(t, await startOAuthUpstream([]));
  const server = { url: upstream.url, auth: 'user', title: 'Notes', authNetworks: ['127.0.0.1'] };
  const gateway = await launchFor(t, {
    configuration: { McpServers: { notes: server, other: { ...server, title: 'Zettel' } } },
  });
  const home = `${gateway.url.replace('127.0.0.1', 'localhost')}/`;
  // The link of a refused call leads to the same address.
  const { page, complaints, violations, look } = await openPage(t, browser, `${home}#servers/other`, {
    passkeys: true,
  });
  await page.getByRole('button', { name: 'Sign up with a passkey' }).click();
  await page.getByRole('heading', { name: 'Connected servers' }).waitFor();
  t.same(await page.getByRole('article').getByRole('heading').allInnerTexts(), ['Zettel', 'Notes']);
  await look(t, 'servers');
  const notes = page.getByRole('article', { name: 'Notes' });
  await notes.getByRole('button', { name: 'Connect Notes' }).click();
  await page.getByText('The server is connected.').waitFor();
  t.match(page.url(), /\/#servers\/notes\/connected$/);
  await notes.getByText('a login there').waitFor();
  t.same(await violations(), []);
  await notes.getByRole('button', { name: 'Use a token' }).click();
  t.same(await violations(), []);
  await page.getByLabel('Token', { exact: true }).fill('two words');
  await page.getByRole('button', { name: 'Save the token' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Token', { exact: true }).fill('personal-1');
  await page.getByRole('button', { name: 'Save the token' }).click();
  await notes.getByText('a personal token').waitFor();
  await notes.getByRole('button', { name: 'Disconnect' }).click();
  await page.getByRole('button', { name: 'Disconnect it' }).click();
  await notes.getByRole('button', { name: 'Connect Notes' }).waitFor();
  // 400 of the token with a blank.
  t.match(complaints(), [/400/]);
  upstream.metadata = { registration_endpoint: undefined };
  await notes.getByRole('button', { name: 'Connect Notes' }).click();
  await page.getByText(/takes no new clients; a personal token may work/).waitFor();
  await page.goto(`${home}#servers/-/expired`);
  await page.getByText('The login took too long').waitFor();
});
