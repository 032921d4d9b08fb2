/** A page of the gateway in a real browser: what it complained of, whether everybody can use it, how it looks. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import type { Test } from 'tap';
import { programRequire } from '../../../kit/run-sync.ts';
import { PAGE_WAIT_MS } from './browser.ts';
import { PLATFORM } from './passkey-page.ts';

/** A folder for pictures of the pages; none are made without it. */
const FOLDER = process.env['GATEHOUSE_SCREENSHOTS'];
const AXE = readFileSync(programRequire.resolve('axe-core/axe.min.js'), 'utf8');

export interface OpenPage {
  readonly page: Page;
  /** Console errors, policy violations and throws since the last call. */
  complaints(): string[];
  /** Violations of WCAG 2 A and AA, with where they are, of its colours in dark too, and what sticks out, here and on a phone. */
  violations(): Promise<string[]>;
  /** A picture in light and dark, where `GATEHOUSE_SCREENSHOTS` names a folder. */
  picture(name: string): Promise<void>;
  /** The test fails by violations; then a picture. */
  look(t: Test, name: string): Promise<void>;
}

export interface PageOptions {
  readonly widthPixels?: number;
  /** With a virtual authenticator that says yes to everything. */
  readonly passkeys?: true;
}

/** CSS pixels of a phone that is held upright. */
const PHONE = { width: 390, height: 844 };

/**
 * Script that finds sideways scrolling in the browser: of the page and its tables, the elements that reach furthest.
 */
const STICKS_OUT = `(() => {
  const scrollers = [document.documentElement, ...document.querySelectorAll('.scroll')];
  return scrollers.filter((each) => each.scrollWidth > each.clientWidth).map((each) => {
    const edge = each.getBoundingClientRect().left + each.clientWidth;
    const wide = [...each.querySelectorAll('*')]
      .map((element) => ({ element, right: element.getBoundingClientRect().right }))
      .filter(({ right }) => right > edge)
      .sort((one, other) => other.right - one.right);
    const names = wide.slice(0, 3).map(({ element }) => element.outerHTML.slice(0, 80));
    return location.href + ' scrolls sideways at ' + innerWidth + ' px: ' + names.join(' | ');
  });
})()`;

async function sticksOut(page: Page): Promise<string[]> {
  const size = page.viewportSize();
  const here = await page.evaluate<string[]>(STICKS_OUT);
  await page.setViewportSize(PHONE);
  // Charts follow the width from their resize observers, which run in the frame after the change.
  await page.evaluate('new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))');
  const found = await page.evaluate<string[]>(STICKS_OUT);
  if (size !== null) await page.setViewportSize(size);
  return [...here, ...found];
}

/** Finds what breaks these rules, or those with these tags, and where it is. */
function axe(page: Page, rules: readonly string[]): Promise<string[]> {
  return page.evaluate(async (runOnly) => {
    type Result = { id: string; nodes: { target: unknown; failureSummary: string }[] };
    const { axe } = globalThis as unknown as {
      axe: { run(context: object, options: object): Promise<{ violations: Result[] }> };
    };
    // Else it also makes a selector for each element that passes.
    const run = await axe.run({ include: [['body']] }, { runOnly, resultTypes: ['violations'] });
    return run.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id} at ${String(target)}: ${failureSummary}`),
    );
  }, rules);
}

/** A fresh profile on this address. It closes with the test. */
export async function openPage(
  t: Test,
  browser: Browser,
  url: string,
  options: PageOptions = {},
): Promise<OpenPage> {
  const context = await browser.newContext({
    viewport: { width: options.widthPixels ?? 1280, height: 900 },
    reducedMotion: 'reduce',
    locale: 'en-US',
    acceptDownloads: true,
  });
  context.setDefaultTimeout(PAGE_WAIT_MS);
  t.teardown(() => context.close());
  const page = await context.newPage();
  let complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning')
      complaints.push(`${message.text()} ${pathOf(message.location().url)}`.trim());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  if (options.passkeys === true) {
    const cdp = await context.newCDPSession(page);
    await cdp.send('WebAuthn.enable', { enableUI: false });
    const authenticator = {
      ...PLATFORM,
      ctap2Version: 'ctap2_1' as const,
      automaticPresenceSimulation: true,
    };
    await cdp.send('WebAuthn.addVirtualAuthenticator', { options: authenticator });
  }
  await page.goto(url);
  const opened: OpenPage = {
    page,
    complaints() {
      const all = complaints;
      complaints = [];
      return all;
    },
    async violations() {
      if (await page.evaluate("!('axe' in globalThis)")) await page.evaluate(AXE);
      const light = await axe(page, ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']);
      // The scheme changes colours alone.
      await turn(page, 'dark');
      const dark = await axe(page, ['color-contrast', 'link-in-text-block']);
      await turn(page, 'light');
      return [...light, ...dark.map((text) => `dark: ${text}`), ...(await sticksOut(page))];
    },
    async picture(name) {
      if (FOLDER === undefined) return;
      mkdirSync(FOLDER, { recursive: true });
      for (const scheme of ['light', 'dark'] as const) {
        await turn(page, scheme);
        await page.screenshot({ path: join(FOLDER, `${name}-${scheme}.png`), fullPage: true });
      }
      await turn(page, 'light');
      const size = page.viewportSize();
      await page.setViewportSize(PHONE);
      await page.screenshot({ path: join(FOLDER, `${name}-phone.png`), fullPage: true });
      if (size !== null) await page.setViewportSize(size);
    },
    async look(t, name) {
      t.same(await opened.violations(), [], name);
      await opened.picture(name);
    },
  };
  return opened;
}

/** Turns a page to a colour scheme. The explorer follows by a class that it sets later. */
async function turn(page: Page, scheme: 'light' | 'dark'): Promise<void> {
  await page.emulateMedia({ colorScheme: scheme });
  if ((await page.locator('.swagger-ui').count()) === 0) return;
  await page.locator(scheme === 'dark' ? 'html.dark-mode' : 'html:not(.dark-mode)').waitFor();
}

/** By the menu of the account. */
export async function logOut(page: Page): Promise<void> {
  await page.getByRole('button', { name: /account menu$|Account$/ }).click();
  await page.getByRole('button', { name: 'Log out' }).click();
}

/** Without host and port, whose digits a test would take for a status. */
function pathOf(url: string): string {
  return URL.canParse(url) ? new URL(url).pathname : '';
}
