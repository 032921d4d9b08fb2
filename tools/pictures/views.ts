/** The views that are pictured: where they are, who sees them, what is awaited, and which answers are replaced. */
import type { Page, Route } from 'playwright-core';
import type { Stage } from './stage.ts';

export const SIZES = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } } as const;

export type Size = keyof typeof SIZES;
export const SCHEMES = ['light', 'dark'] as const;
type Scheme = (typeof SCHEMES)[number];

export interface View {
  readonly name: string;
  readonly path: (stage: Stage) => string;
  readonly as: 'admin' | 'person' | 'visitor';
  ready(page: Page): Promise<unknown>;
  /** Answers to requests by their pattern: a failure, an empty list, an answer that never comes. */
  readonly answers?: Readonly<Record<string, (route: Route) => Promise<void> | undefined>>;
  /** Its pictures in the documentation. */
  readonly documented?: { readonly size: Size; readonly schemes: readonly Scheme[] };
}

const desktop = (...schemes: Scheme[]) => ({ size: 'desktop' as const, schemes });
const phone = (...schemes: Scheme[]) => ({ size: 'phone' as const, schemes });

const shows = (text: string | RegExp) => (page: Page) =>
  page.getByRole('main').getByText(text).first().waitFor();
const panel = (name: string, ready: View['ready'], more: Partial<View> = {}): View => ({
  name: `panel-${name.toLowerCase()}`,
  path: () => `/ProxyAdmin/${name}`,
  as: 'admin',
  ready,
  ...more,
});
const account = (show: string, ready: View['ready'], more: Partial<View> = {}): View => ({
  name: `account-${show}`,
  path: ({ person }) => `/ProxyAdmin/Account?userId=${person.userId}&show=${show}`,
  as: 'admin',
  ready,
  ...more,
});
const home = (part: string, ready: View['ready'], more: Partial<View> = {}): View => ({
  name: `home-${part}`,
  path: () => `/#${part}`,
  as: 'person',
  ready,
  ...more,
});

const fails = (route: Route) =>
  route.fulfill({ status: 503, json: { error: { code: 1012, message: 'Temporarily unavailable' } } });
const isEmpty = (route: Route) => route.fulfill({ json: { result: [] } });
/** Never answered: the page shows what it shows until then. */
const hangs = () => undefined;

/** Load that the charts of the overview have before they are pictured. */
const LOAD_MS = 100_000;

async function underLoad(page: Page): Promise<void> {
  await page.getByText('Requests per second').waitFor();
  await page.waitForTimeout(LOAD_MS);
}

/** An agent of the tab calls a tool, as a person tries one. */
async function callTool(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Create an agent' }).click();
  await page
    .getByText(/Bearer/)
    .first()
    .waitFor();
  await page.evaluate("location.hash = '#tools/wallet_get_balance'");
  await page.getByRole('button', { name: 'Call wallet_get_balance' }).click();
  await page.getByRole('main').locator('pre').first().waitFor();
}

/** Three attempts of one webhook that its receiver does not take. */
const REFUSED_DELIVERY = {
  items: (['timed_out', 'unreachable', null] as const).map((failure, index) => ({
    number: index + 1,
    webhookId: 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W',
    source: 'live',
    utc: new Date(Date.now() - (3 - index) * 90_000).toISOString(),
    attempt: index + 1,
    outcome: 'failed',
    status: failure === null ? 503 : null,
    class: failure,
    milliseconds: failure === 'timed_out' ? 5_000 : 42,
    events: 14,
    firstTick: '1795167000000123',
    lastTick: '1795167000000456',
    answer: failure === null ? 'upstream connect error or disconnect before headers' : '',
    type: 'OrderCreated',
    signed:
      failure === 'unreachable'
        ? null
        : { timestamp: 1_795_167_000, signature: 'v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=' },
  })),
  parked: [],
  resends: [],
  oldestUndeliveredSeconds: 1_370,
};

/** The deliveries of one application, of which the first row is opened. */
async function openDelivery(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Deliveries of Ledger sync' }).click();
  await page.locator('.delivery summary').first().click();
  await page.getByRole('table', { name: /^Attempts of/ }).scrollIntoViewIfNeeded();
}

const seeDeliveries = (shown: string) => async (page: Page) => {
  await page.getByRole('button', { name: 'Deliveries of Ledger sync' }).click();
  const found = page.locator(shown).first();
  await found.waitFor();
  await found.scrollIntoViewIfNeeded();
};

export const VIEWS: readonly View[] = [
  panel('Dashboard', underLoad, { documented: desktop('light', 'dark') }),
  panel('Users', shows('Ada Brandt'), { documented: desktop('light') }),
  panel('UserKeys', shows('Invoice agent')),
  panel('Apps', shows('Ledger sync')),
  panel('Apps', openDelivery, { name: 'panel-deliveries' }),
  panel('Apps', openDelivery, {
    name: 'panel-deliveries-refused',
    answers: { '**/api/deliveries?*': (route) => route.fulfill({ json: { result: REFUSED_DELIVERY } }) },
    documented: desktop('light'),
  }),
  panel('Apps', seeDeliveries('.empty'), {
    name: 'panel-deliveries-empty',
    answers: {
      '**/api/deliveries?*': (route) =>
        route.fulfill({
          json: { result: { ...REFUSED_DELIVERY, items: [], oldestUndeliveredSeconds: null } },
        }),
    },
  }),
  panel('Apps', seeDeliveries('.note.bad'), {
    name: 'panel-deliveries-failing',
    answers: { '**/api/deliveries?*': fails },
  }),
  panel('Apps', seeDeliveries('.skeleton'), {
    name: 'panel-deliveries-slow',
    answers: { '**/api/deliveries?*': hangs },
  }),
  panel('Events', shows('OrderCreated')),
  panel('Uploads', shows('No open uploads')),
  panel('LoginLog', shows('sign_up')),
  panel('Audit', (page) => page.locator('tbody code').first().waitFor(), { documented: desktop('dark') }),
  panel('Settings', shows('ApiRPSLimit')),
  panel(
    'Settings',
    async (page) => {
      await page.getByLabel('Largest file', { exact: true }).fill('10485760');
      await page.getByLabel('Protect the last key').check();
      await page.getByLabel('Changed only').check();
    },
    { name: 'panel-settings-edited', documented: desktop('light') },
  ),
  panel('Settings?search=unheard', shows('No setting matches'), { name: 'panel-settings-empty' }),
  panel('Settings', shows('Temporarily unavailable'), {
    name: 'panel-settings-failing',
    answers: { '**/api/{settings,bounds}': fails },
  }),
  panel('Settings', (page) => page.locator('.skeleton').first().waitFor(), {
    name: 'panel-settings-slow',
    answers: { '**/api/{settings,bounds}': hangs },
  }),
  panel('Actors', shows('No failing actors')),
  panel('Tools', shows('four bytes each')),
  panel('Tools?name=wallet_get_balance', shows('Last callers'), { name: 'panel-tool' }),
  panel('Tools', shows('Temporarily unavailable'), {
    name: 'panel-tools-failing',
    answers: { '**/api/tools?*': fails },
  }),
  panel('Modules', shows('Healthy')),
  panel('Modules', shows('No modules are configured'), {
    name: 'panel-modules-empty',
    answers: {
      '**/api/modules': (route) => route.fulfill({ json: { result: { modules: [], missing: [] } } }),
    },
  }),
  panel('Modules', (page) => page.locator('.skeleton').waitFor(), {
    name: 'panel-modules-slow',
    answers: { '**/api/modules': hangs },
  }),
  panel('Dashboard', shows('Temporarily unavailable'), {
    name: 'panel-dashboard-failing',
    answers: { '**/api/{history,attention}*': fails },
  }),
  panel('Health', shows('writable')),
  account('sessions', shows('McpVerified'), { documented: desktop('light') }),
  account('keys', shows('Invoice agent'), { documented: phone('dark') }),
  account('hosts', shows('Test host')),
  account('apps', shows('Ledger sync')),
  account('webhooks', shows('delivered')),
  account('logins', shows('sign_up')),
  account('files', shows('KB')),
  account('audit', shows('mcp.tool')),
  account('sessions', shows('This account has no open sessions'), {
    name: 'account-empty',
    answers: { '**/api/sessions?*': isEmpty },
  }),
  account('sessions', shows('Temporarily unavailable'), {
    name: 'account-failing',
    answers: { '**/api/sessions?*': fails },
  }),
  account('sessions', (page) => page.locator('.skeleton').waitFor(), {
    name: 'account-slow',
    answers: { '**/api/sessions?*': hangs },
  }),
  panel('Account?userId=42', shows('There is no account'), { name: 'account-missing' }),
  account(
    'sessions',
    async (page) => {
      await page.getByRole('button', { name: 'Block' }).click();
      await page.getByLabel('Reason').fill('A stolen laptop');
    },
    { name: 'account-block', documented: desktop('dark') },
  ),
  panel(
    'Users',
    async (page) => {
      await page.getByRole('main').getByText('Ada Brandt').first().waitFor();
      await page.keyboard.press('Control+k');
      await page.keyboard.type('mar');
      await page.getByRole('option', { name: /Mara/ }).waitFor();
    },
    { name: 'panel-search', documented: desktop('dark') },
  ),
  panel('Users', shows('No accounts yet'), {
    name: 'panel-users-empty',
    answers: { '**/api/users?*': isEmpty },
  }),
  panel('Users', shows('Temporarily unavailable'), {
    name: 'panel-users-failing',
    answers: { '**/api/users?*': fails },
  }),
  home('agent', shows('Connect an agent'), { documented: phone('light') }),
  home('hosts', shows('Test host')),
  home('servers', shows('Connected servers')),
  home('agent', callTool, {
    name: 'home-tools',
    documented: desktop('light'),
  }),
  home('files', shows('Files')),
  home('events', shows('Live events')),
  home('apps', shows('Ledger sync')),
  home('keys', shows('Invoice agent')),
  home('sessions', shows('Open now')),
  home('account', shows('Opened')),
  home('', shows('One entry point'), { name: 'home-welcome', as: 'visitor' }),
  panel('Users', shows('Log in to the admin panel'), { name: 'panel-log-in', as: 'visitor' }),
];
