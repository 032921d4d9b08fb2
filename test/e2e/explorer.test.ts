/** The API explorer in a real browser against the real program. */
import t from 'tap';
import { readKey, request, signUp } from '../../tools/agent.ts';
import { launch, runToEnd } from '../../tools/launch.ts';
import { startBrowser } from '../support/browser.ts';
import { openPage } from '../support/pages.ts';

t.setTimeout(240_000);
const browser = await startBrowser();
t.teardown(() => browser.close());
const gateway = await launch();
t.teardown(() => gateway.stop());
const HOME = gateway.url.replace('127.0.0.1', 'localhost');

t.test('explorer: every route is listed, and the helper logs an agent in', async (t) => {
  const { page, complaints, violations, picture } = await openPage(t, browser, `${HOME}/docs/swagger/`);
  await page.getByRole('heading', { name: 'demo gateway' }).waitFor();
  const description = await request(`${gateway.url}/docs/swagger/openapi.json`);
  const paths = Object.values(description.json['paths'] as object).flatMap((path) => Object.keys(path));
  for (const group of await page.locator('.opblock-tag').all()) await group.click();
  await page
    .locator('.opblock')
    .nth(paths.length - 1)
    .waitFor();
  t.equal(await page.locator('.opblock').count(), paths.length);

  const { publicKey, secretKey } = JSON.parse((await runToEnd(['keygen'])).stdout) as Record<string, string>;
  const { cookie, keyId } = await signUp(gateway.url, readKey(publicKey ?? '', secretKey ?? ''));
  const body = { keyId, mcpAccess: true };
  await request(`${gateway.url}/auth/v1/keys/update_key`, { headers: { Cookie: cookie }, body });
  await page.getByText('Log in as an agent').click();
  const secret = page.getByLabel('Secret key of an agent');
  await secret.fill('not a key');
  await page.getByRole('button', { name: 'Sign and log in' }).click();
  await page.getByText('That is no secret key').waitFor();
  await secret.fill(secretKey ?? '');
  await page.getByRole('button', { name: 'Sign and log in' }).click();
  await page.getByText('Logged in as McpVerified').waitFor();
  await picture('explorer');

  const route = page.locator('.opblock', { hasText: '/wallet' }).or(page.locator('#operations-mcp-post_mcp'));
  t.ok((await route.count()) > 0, 'the way to MCP is among them');
  // What Swagger UI itself draws is its own; the parts around it are ours.
  t.same(await violations('#explorer'), []);
  t.same(complaints(), []);
});
