/** The admin panel and the home page of several nodes, behind a proxy that gives each request to the next node. */
import t, { type Test } from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { linked } from '../../../kit/cluster/nodes.ts';
import { nodesTest, type ThreeNodes } from '../../support/cluster/three-nodes.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { type OpenPage, openPage } from '../../support/pages/pages.ts';
import { linkTo } from '../../support/pages/panel.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);

interface NodeRow {
  readonly name: string;
  readonly state: string;
  readonly leaseLeftMs: number;
  readonly lag: number;
  readonly clockOffsetMs: number;
  readonly configuration: string;
  readonly sameConfiguration: boolean;
}

/** A page of the gateway with this session. */
async function openAs(t: Test, { baseUrl }: ThreeNodes, cookie: string, path: string): Promise<OpenPage> {
  const opened = await openPage(t, browser, `${baseUrl}/health`);
  const value = cookie.replace('sid=', '');
  await opened.page.context().addCookies([{ name: 'sid', value, url: baseUrl }]);
  await opened.page.goto(`${baseUrl}${path}`);
  return opened;
}

const adminCookie = ({ adminOf, nodes }: ThreeNodes) => adminOf(nodes[0]);

async function column({ page }: OpenPage, title: string): Promise<string[]> {
  const cells = page.getByRole('table', { name: 'Nodes' }).locator(`td[data-title="${title}"]`);
  return (await cells.allInnerTexts()).map((text) => text.trim());
}

nodesTest('nodes: state, partitions and lease of each, also of one that is out', async (t, three) => {
  const admin = await openAs(t, three, await adminCookie(three), '/ProxyAdmin/Nodes');
  const { page, look, complaints } = admin;
  const table = page.getByRole('table', { name: 'Nodes' });
  await table.waitFor();
  t.equal(await table.getByRole('rowheader').count(), 3);
  t.same(await column(admin, 'State'), ['Joined', 'Joined', 'Joined']);
  const partitions = (await column(admin, 'Partitions')).map(Number);
  t.equal(
    partitions.reduce((sum, each) => sum + each, 0),
    256,
  );
  for (const lease of await column(admin, 'Lease left')) t.match(lease, /^[\d,]{1,5} ms$/);
  t.same(await table.getByText('differs').count(), 0);
  t.equal(await table.getByText('this node').count(), 1);
  t.equal(await linkTo(page, 'Nodes').getAttribute('aria-current'), 'page');
  await look(t, 'admin-nodes');

  const [, , c] = three.nodes;
  await c.gateway.stop();
  t.teardown(async () => {
    await c.start();
    await linked(three.nodes);
  });
  const asked = page.waitForResponse(/api\/nodes/);
  await page.getByRole('button', { name: 'Refresh' }).focus();
  await page.keyboard.press('Enter');
  await asked;
  await table.getByText('out', { exact: true }).waitFor();
  t.same(await column(admin, 'State'), ['Joined', 'Joined', 'Out']);
  t.equal((await column(admin, 'Partitions'))[2], '0');
  await look(t, 'admin-nodes-out');
  t.same(complaints(), []);
});

/** States that pass within a second are answered here. */
nodesTest('nodes: a late node and another configuration are pointed out', async (t, three) => {
  const { page, look } = await openAs(t, three, await adminCookie(three), '/ProxyAdmin/Health');
  await linkTo(page, 'Nodes').waitFor();
  await page.route('**/api/nodes', async (route) => {
    const answer = await route.fetch();
    const { result } = (await answer.json()) as { result: { node: string; nodes: NodeRow[] } };
    const [a, b, c] = result.nodes;
    const late = { ...b, state: 'late', leaseLeftMs: 0, lag: 12_345, clockOffsetMs: -1_250 };
    const other = { ...c, configuration: 'ffffffffffff', sameConfiguration: false };
    await route.fulfill({ json: { result: { ...result, nodes: [a, late, other] } } });
  });
  await linkTo(page, 'Nodes').click();
  await page.getByText('Node b has not renewed its lease.').waitFor();
  await page.getByText(/^Node c has another configuration than node [abc]\.$/).waitFor();
  const row = page.getByRole('row', { name: /^b/ });
  t.match(await row.innerText(), /late[\s\S]*12,345[\s\S]*0 ms[\s\S]*−1,250 ms/i);
  await look(t, 'admin-nodes-faults');
});

nodesTest('nodes: the dashboard shows a chosen node or all, and who did not answer', async (t, three) => {
  const { page, look } = await openAs(t, three, await adminCookie(three), '/ProxyAdmin/Dashboard');
  const choice = page.getByLabel('Figures of');
  await choice.waitFor();
  t.same(await choice.locator('option').allInnerTexts(), [
    'all nodes together',
    'node a',
    'node b',
    'node c',
  ]);
  await page.getByRole('table', { name: 'Routes by calls' }).waitFor();
  t.equal(await page.getByText('Files, MB per second').count(), 1);
  t.equal(await page.getByText('Webhooks', { exact: true }).count(), 1);
  await look(t, 'admin-dashboard-nodes');
  const streamed = page.waitForRequest(/api\/live\?node=b$/);
  await choice.selectOption('node b');
  await streamed;
  t.match(page.url(), /Dashboard\?node=b$/, 'the choice is in the address');
  await page.getByRole('table', { name: 'Routes by calls' }).waitFor();
  for (const { links } of three.nodes) links.cut();
  t.teardown(async () => {
    for (const { links } of three.nodes) links.heal();
    await linked(three.nodes);
  });
  await choice.selectOption('all nodes together');
  await page.getByText(/^Nodes [abc], [abc] did not answer: figures from there are missing\.$/).waitFor();
  await look(t, 'admin-dashboard-missing');
});

nodesTest('nodes: every page and part is offered, files and events included', async (t, three) => {
  const { page } = await openAs(t, three, await adminCookie(three), '/ProxyAdmin/Apps');
  await page.getByText('Unregistered hosts').waitFor();
  const names = await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allInnerTexts();
  t.same(
    ['Uploads', 'Events'].filter((name) => names.includes(name)),
    ['Uploads', 'Events'],
  );
  t.equal(await page.getByRole('columnheader', { name: 'Webhook' }).count(), 1);

  const person = await signUp(three.baseUrl);
  const home = await openAs(t, three, person.cookie, '/#files');
  await home.page.getByRole('heading', { name: 'Files', exact: true }).waitFor();
  const parts = await home.page.getByRole('navigation', { name: 'Parts' }).getByRole('link').allInnerTexts();
  t.same(parts, [
    'Gatehouse demo',
    'Connect an agent',
    'Connected hosts',
    'Connected servers',
    'Try tools',
    'Files',
    'Live events',
    'Applications',
    'Keys',
    'Sessions',
    'Account',
  ]);
  await home.page.getByRole('link', { name: 'Applications' }).click();
  await home.page.getByRole('button', { name: 'Register an application' }).click();
  await home.page.getByLabel('Redirect URIs').waitFor();
  await home.page.getByLabel('Webhook').first().waitFor();
  t.same(await home.violations(), []);
  t.same(home.complaints(), []);
  const welcome = await openPage(t, browser, `${three.baseUrl}/`);
  await welcome.page.getByText('Tools over MCP').waitFor();
  t.equal(await welcome.page.getByText('resumable uploads').count(), 1);
  t.equal(await welcome.page.getByText('Events in real time').count(), 1);
});
