/**
 * `npm run pictures [-- --folder FOLDER --only WORD --all]`: pictures of the real pages under load. Without `--all` those of
 * the documentation; with it a sheet of every view in each of its states, desktop and phone in light and dark, to be looked at.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { startBrowser } from '../../kit/browser.ts';
import { openStage, type Stage } from './stage.ts';
import { openView, SCHEMES, SIZES, type Size, type State, statesOf, VIEWS, type View } from './views.ts';

const USAGE = 'usage: npm run pictures [-- --folder FOLDER] [--only WORD]... [--all]\n';
const EXIT_USAGE = 64;
const FOLDER = 'docs/pictures';
/** Quality of 100: letters stay sharp. */
const QUALITY = 80;

/** CSS pixels that a sheet shows of a page, at most. */
const HEIGHTS = { desktop: 1_000, phone: 2_020 };

interface Options {
  readonly folder: string;
  /** Words of which a name has one; none for all. */
  readonly only: readonly string[];
  readonly all: boolean;
}

function optionsOf(): Options | undefined {
  try {
    const { values } = parseArgs({
      options: {
        folder: { type: 'string' },
        only: { type: 'string', multiple: true },
        all: { type: 'boolean' },
      },
    });
    return { folder: values.folder ?? FOLDER, only: values.only ?? [], all: values.all ?? false };
  } catch {
    return undefined;
  }
}

/** A page with the session that the view is seen with. */
async function pageOf(browser: Browser, stage: Stage, view: View, size: Size): Promise<Page> {
  const context = await browser.newContext({
    viewport: SIZES[size],
    reducedMotion: 'reduce',
    locale: 'en-US',
    timezoneId: 'UTC',
  });
  if (view.as !== 'visitor') {
    const [name = '', value = ''] = stage[view.as].cookie.split('=');
    await context.addCookies([{ name, value, url: stage.home }]);
  }
  return context.newPage();
}

/** Takes a picture as WebP, which has a third of the bytes of a PNG; the driver itself knows only PNG and JPEG. */
async function taken(page: Page): Promise<Buffer> {
  const session = await page.context().newCDPSession(page);
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: QUALITY });
  return Buffer.from(data, 'base64');
}

function write(path: string, bytes: Buffer): void {
  writeFileSync(path, bytes);
  process.stdout.write(`${path}\n`);
}

async function picture(
  browser: Browser,
  stage: Stage,
  view: View,
  { size, schemes }: NonNullable<View['documented']>,
  folder: string,
) {
  const page = await pageOf(browser, stage, view, size);
  try {
    await openView(page, stage, view, 'full');
    for (const scheme of schemes) {
      await page.emulateMedia({ colorScheme: scheme });
      write(
        join(folder, `${view.name}${size === 'phone' ? '-phone' : ''}-${scheme}.webp`),
        await taken(page),
      );
    }
  } finally {
    await page.context().close();
  }
}

/** Picture of a page at a size, from its top, for as far as a sheet has room. */
async function part(page: Page, size: Size): Promise<string> {
  const height = Number(await page.evaluate('document.documentElement.scrollHeight'));
  const clip = { x: 0, y: 0, width: SIZES[size].width, height: Math.min(height, HEIGHTS[size]) };
  const bytes = await page.screenshot({ clip, fullPage: true });
  return `<img width="${clip.width}" src="data:image/png;base64,${bytes.toString('base64')}">`;
}

/** One view in one state: desktop in light above dark, beside them the phone. */
async function sheet(browser: Browser, stage: Stage, view: View, state: State, folder: string) {
  const sizes: Size[] = view.isOfPhones === true ? ['phone'] : ['desktop', 'phone'];
  const page = await pageOf(browser, stage, view, sizes[0] ?? 'desktop');
  try {
    await openView(page, stage, view, state);
    const columns: string[] = [];
    for (const size of sizes) {
      await page.setViewportSize(SIZES[size]);
      const parts: string[] = [];
      for (const scheme of SCHEMES) {
        await page.emulateMedia({ colorScheme: scheme });
        parts.push(await part(page, size));
      }
      columns.push(...(size === 'desktop' ? [parts.join('<br>')] : parts));
    }
    const blank = await page.context().newPage();
    await blank.setContent(
      `<body style="margin:0;display:inline-flex;gap:8px;background:#888">${columns.map((column) => `<div>${column}</div>`).join('')}`,
    );
    write(join(folder, `${view.name}-${state}.png`), await blank.locator('body').screenshot());
  } finally {
    await page.context().close();
  }
}

/** A view that does not come to its state is named, and the others are pictured. */
async function sheets(browser: Browser, stage: Stage, views: readonly View[], folder: string) {
  let failed = 0;
  for (const view of views)
    for (const state of statesOf(view))
      await sheet(browser, stage, view, state, folder).catch((error: Error) => {
        failed += 1;
        process.stderr.write(`${view.name} ${state}: ${error.message}\n`);
      });
  return failed;
}

async function main(): Promise<number> {
  const options = optionsOf();
  if (options === undefined) {
    process.stderr.write(USAGE);
    return EXIT_USAGE;
  }
  const { folder, only, all } = options;
  mkdirSync(folder, { recursive: true });
  const views = VIEWS.filter(({ name }) => only.length === 0 || only.some((word) => name.includes(word)));
  const stage = await openStage();
  const browser = await startBrowser();
  try {
    if (all) return (await sheets(browser, stage, views, folder)) === 0 ? 0 : 1;
    for (const view of views)
      if (view.documented !== undefined) await picture(browser, stage, view, view.documented, folder);
  } finally {
    await browser.close();
    await stage.stop();
  }
  return 0;
}

process.exitCode = await main();
