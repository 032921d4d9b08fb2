/** The HTML report in a browser: complete, accessible, nothing fetched, usable on a narrow screen. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { page } from '../../bench/report/html/page.ts';
import { sharedBrowser } from '../support/pages/browser.ts';
import { openPage } from '../support/pages/pages.ts';
import { fullReport } from './fixtures/report.ts';

const browser = await sharedBrowser(t);

t.test('page: every scenario, target, chart and table is there, and nothing is fetched', async (t) => {
  const html = page(await fullReport());
  const file = join(t.testdir({}), 'report.html');
  writeFileSync(file, html);
  const { page: tab, complaints, violations, picture } = await openPage(t, browser, 'about:blank');
  const requested: string[] = [];
  tab.on('request', (request) => requested.push(request.url()));
  await tab.goto(pathToFileURL(file).href);
  t.same(requested, [pathToFileURL(file).href]);
  t.equal(await tab.locator('section').count(), 5, 'targets, three scenarios, those left out');
  t.same(await tab.locator('nav a').allTextContents(), ['mcp-call', 'sessions', 'uploads (failed)']);
  t.same(await tab.locator('#targets ~ .scroll .chip').allTextContents(), [
    'met, within the interval',
    'missed',
    'not measured',
    'met',
    'not measured',
  ]);
  t.same(await tab.locator('#mcp-call figcaption').allTextContents(), [
    'Latency by percentile ms, logarithmic',
    'Throughput over time answers a second',
    'Ratios',
  ]);
  t.equal(await tab.locator('#sessions figure').count(), 3, 'latency, throughput, the curve; no ratio');
  t.equal(
    await tab.locator('#sessions details table').count(),
    2,
    'a table beside the curve and the latencies',
  );
  t.ok((await tab.locator('#mcp-call .warnings').textContent())?.includes('the generator was the limit'));
  t.ok((await tab.locator('#uploads .failure').textContent())?.includes('the disk is <full>'), 'escaped');
  t.notOk(/https?:\/\//.test(html.replaceAll('http://www.w3.org', '')), 'no address in the page');
  await tab.locator('details').evaluateAll((all) => {
    for (const each of all) (each as unknown as { open: boolean }).open = true;
  });
  t.same(await violations(), []);
  await tab.emulateMedia({ colorScheme: 'dark' });
  t.same(await violations(), [], 'in dark too');
  t.same(complaints(), []);
  await picture('bench-report');
});

t.test('page: on a narrow screen only tables scroll sideways', async (t) => {
  const file = join(t.testdir({}), 'report.html');
  writeFileSync(file, page(await fullReport()));
  const url = pathToFileURL(file).href;
  const { page: tab, picture } = await openPage(t, browser, url, { widthPixels: 360 });
  const widths = await tab.evaluate('document.documentElement.scrollWidth');
  t.equal(widths, 360);
  await picture('bench-report-narrow');
});
