/** The API explorer in a browser against the program. */

import type { Locator, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { type Json, newKey, readKey, request, signUp, verifiedHeaders } from '../../../kit/agent.ts';
import { launchFor, runToEnd } from '../../../kit/launch.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { type OpenPage, openPage } from '../../support/pages/pages.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const admin = newKey();
const gateway = await launchFor(t, {
  args: ['--sandbox'],
  configuration: {
    Settings: { ApiRPSLimit: 100, IpRPSLimit: 200, SessionApiRPSLimit: 100 },
    Admin: { publicKeys: [admin.publicKey] },
  },
});
const HOME = gateway.url.replace('127.0.0.1', 'localhost');

// covers R2
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
  await page.getByText('Invalid secret key').waitFor();
  await secret.fill(secretKey ?? '');
  await page.getByRole('button', { name: 'Sign and log in' }).click();
  await page.getByText('Logged in as McpVerified').waitFor();
  await picture('explorer');

  const route = page.locator('.opblock', { hasText: '/wallet' }).or(page.locator('#operations-mcp-post_mcp'));
  t.ok((await route.count()) > 0, 'the route of MCP is listed');
  t.same(await violations(), []);
  t.same(complaints(), []);
});

async function open(page: Page, group: string, id: string): Promise<Locator> {
  const block = page.locator(`#operations-${group}-${id}`);
  if (!(await block.isVisible())) await page.locator(`h3#operations-tag-${group}`).click();
  await block.locator('.opblock-summary-control').click();
  await block.getByRole('button', { name: 'Execute' }).waitFor();
  return block;
}

async function execute(block: Locator, fields: Record<string, string>, body?: string | Buffer) {
  for (const [name, value] of Object.entries(fields))
    await block.locator(`tr[data-param-name="${name}"] input`).fill(value);
  if (typeof body === 'string') await block.locator('textarea.body-param__text').fill(body);
  if (Buffer.isBuffer(body)) {
    const file = { name: 'notes.txt', mimeType: 'text/plain', buffer: body };
    await block.locator('.opblock-section-request-body input[type="file"]').setInputFiles(file);
  }
  const clear = block.getByRole('button', { name: 'Clear' });
  if (await clear.isVisible()) await clear.click();
  await block.getByRole('button', { name: 'Execute' }).click();
  const answered = block.locator('.live-responses-table tbody tr').first();
  await answered.locator('.response-col_status').waitFor();
  const status = Number.parseInt((await answered.locator('.response-col_status').textContent()) ?? '', 10);
  const shown = answered.locator('.response-col_description pre.microlight, .highlight-code pre').first();
  const text = status === 200 && (await shown.count()) > 0 ? ((await shown.textContent()) ?? '') : '';
  return { status, json: text.startsWith('{') ? (JSON.parse(text) as Json) : ({} as Json) };
}

// covers R2
t.test('explorer: runs /mcp, mcp_login of every type, and both uploads', async (t) => {
  const opened = await openPage(t, browser, `${HOME}/docs/swagger/`);
  const { page, complaints, violations, picture } = opened;
  const person = await signUp(gateway.url, admin);
  const send = (path: string, body: object) =>
    request(`${gateway.url}${path}`, { headers: { Cookie: person.cookie }, body });
  await send('/auth/v1/keys/update_key', { keyId: person.keyId, mcpAccess: true });
  const created = await send('/auth/v1/app/upsert_usr_app', { name: 'Tea', url: 'https://tea.example' });
  const appId = String(created.json['result']?.['id']);
  await send('/ProxyAdmin/api/apps/update', { appId, approved: true, mcpEnabled: true });
  const [name = '', value = ''] = person.cookie.split('=');
  await page.context().addCookies([{ name, value, url: HOME }]);
  await page.locator('.opblock-tag').first().waitFor();

  const login = await open(page, 'auth', 'post_auth_v1_mcp_login');
  const key = { 'X-PublicKey': person.key.publicKey };
  const none = { 'X-Timestamp': '', 'X-Signature': '', 'X-App-Id': '' };
  const verified = verifiedHeaders(person.key, Math.floor(Date.now() / 1000));
  let bearer = '';
  for (const [type, fields] of [
    ['McpBasic', { ...none, ...key }],
    ['McpApp', { ...none, ...key, 'X-App-Id': appId }],
    ['McpVerified', { ...none, ...verified }],
  ] as const) {
    const { status, json } = await execute(login, fields);
    t.match({ status, result: json['result'] }, { status: 200, result: { loginType: type } }, type);
    bearer = String(json['result']?.['sessionId']);
  }
  await picture('explorer-mcp-login');
  await page.getByRole('button', { name: 'Authorize' }).first().click();
  const dialog = page.locator('.dialog-ux');
  await dialog.getByLabel('auth-bearer-value').fill(bearer);
  const form = dialog.locator('form', { hasText: 'bearer' });
  await form.getByRole('button', { name: 'Apply credentials' }).click();
  await dialog.locator('.close-modal').click();
  const mcp = await open(page, 'mcp', 'post_mcp');
  const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: 'user_keys', arguments: {} } };
  const called = await execute(mcp, {}, JSON.stringify(call));
  t.match(called, { status: 200, json: { id: 7, result: { content: [{ type: 'text' }] } } });
  t.equal(called.json['result']?.['isError'], undefined);
  await picture('explorer-mcp');

  const crc32 = '907060870';
  const init = { FileName: 'notes.txt', FileSize: 5, CRC32: Number(crc32), ChatId: '0' };
  const begun = await execute(
    await open(page, 'files', 'post_auth_v1_file_init_upload'),
    {},
    JSON.stringify(init),
  );
  t.same(begun, { status: 200, json: { result: Number(crc32) } });
  const sent = await execute(
    await open(page, 'files', 'post_auth_v1_file_upload_part'),
    { uploadId: crc32, chunkNumber: '0', chunkCrc32: crc32 },
    Buffer.from('hello'),
  );
  t.match(sent, { status: 200, json: { result: { chunkNumber: 0, fileId: /^[0-9]+$/ } } });
  await picture('explorer-upload');

  const drafted = await send('/auth/v2/file/create_draft?fileName=notes.txt&fileSize=5', {});
  const [fileId = '', code = ''] = String(drafted.json['result']).split(':');
  const streamed = await execute(
    await open(page, 'files', 'post_auth_v2_file_stream_upload_fileId'),
    { fileId },
    Buffer.from('hello'),
  );
  t.equal(streamed.status, 200);
  t.equal((await request(`${gateway.url}/auth/v2/file/${code}`)).text, 'hello', 'the bytes of the form');
  t.same(await violations(), []);
  t.same(complaints(), []);
  await t.test('an operation does not move at 390 px', (t) => narrow(t, opened, mcp));
});

/** It follows the color scheme of the system, too. */
async function narrow(t: Test, { page, complaints, picture }: OpenPage, block: Locator): Promise<void> {
  await page.setViewportSize({ width: 390, height: 844 });
  await execute(block, {}, JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }));
  t.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  await picture('explorer-narrow');
  const light = 'getComputedStyle(document.querySelector(".opblock-body .parameter__name")).color';
  await page.locator('html:not(.dark-mode)').waitFor();
  const before = await page.evaluate(light);
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.locator('html.dark-mode').waitFor();
  t.not(await page.evaluate(light), before);
  t.same(await contrastFaults(page), [], 'dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.locator('html:not(.dark-mode)').waitFor();
  t.same(complaints(), []);
}

/** The part of a page element that these tests read. */
interface Shown {
  readonly childNodes: Iterable<{ readonly nodeType: number; readonly textContent: string | null }>;
  readonly parentElement: Shown | null;
  readonly textContent: string | null;
  readonly className: string;
  getClientRects(): { readonly length: number };
  closest(selector: string): unknown;
}
interface Screen {
  readonly document: { querySelectorAll(selector: string): Iterable<Shown> };
  getComputedStyle(element: Shown): { readonly color: string; readonly backgroundColor: string };
}

/** Texts of the operation whose contrast with their background is below 3:1. */
async function contrastFaults(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const screen = globalThis as unknown as Screen;
    type Rgb = [number, number, number, number];
    const read = (text: string) => (text.match(/[\d.]+/g) ?? []).map(Number);
    const over = (top: number[], under: number[]): Rgb => {
      const alpha = top[3] ?? 1;
      const mix = (at: number) => (top[at] ?? 0) * alpha + (under[at] ?? 0) * (1 - alpha);
      return [mix(0), mix(1), mix(2), 1];
    };
    const light = (rgb: number[]) =>
      [0.2126, 0.7152, 0.0722].reduce((sum, weight, at) => {
        const part = (rgb[at] ?? 0) / 255;
        return sum + weight * (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      }, 0);
    const faults: string[] = [];
    for (const element of screen.document.querySelectorAll('.swagger-ui .opblock.is-open *')) {
      const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim());
      if (!own || element.getClientRects().length === 0 || element.closest('svg') !== null) continue;
      let behind: Rgb = [255, 255, 255, 1];
      const chain: Shown[] = [];
      for (let up: Shown | null = element; up !== null; up = up.parentElement) chain.unshift(up);
      for (const each of chain) behind = over(read(screen.getComputedStyle(each).backgroundColor), behind);
      const ink = over(read(screen.getComputedStyle(element).color), behind);
      const [one, two] = [light(ink), light(behind)];
      const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
      if (ratio < 3)
        faults.push(`${ratio.toFixed(1)} ${element.className} ${element.textContent?.slice(0, 30)}`);
    }
    return [...new Set(faults)];
  });
}
