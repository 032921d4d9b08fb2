/**
 * `npm run pictures [-- --folder FOLDER --only WORD --all]`: pictures of the real pages under load, each in light and dark.
 * Without `--all` those of the documentation; with it every view, on a phone too, to be looked at.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { startBrowser } from '../../kit/browser.ts';
import { openStage, type Stage } from './stage.ts';
import { SCHEMES, SIZES, type Size, VIEWS, type View } from './views.ts';

const USAGE = 'usage: npm run pictures [-- --folder FOLDER] [--only WORD] [--all]\n';
const EXIT_USAGE = 64;
const FOLDER = 'docs/pictures';
/** Quality of 100: letters stay sharp. */
const QUALITY = 80;

const EVERY = (['desktop', 'phone'] as const).map((size) => ({ size, schemes: SCHEMES }));

interface Options {
  readonly folder: string;
  readonly only: string;
  readonly all: boolean;
}

function optionsOf(): Options | undefined {
  try {
    const { values } = parseArgs({
      options: { folder: { type: 'string' }, only: { type: 'string' }, all: { type: 'boolean' } },
    });
    return { folder: values.folder ?? FOLDER, only: values.only ?? '', all: values.all ?? false };
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
    hasTouch: size === 'phone',
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

async function picture(
  browser: Browser,
  stage: Stage,
  view: View,
  { size, schemes }: NonNullable<View['documented']>,
  folder: string,
) {
  const page = await pageOf(browser, stage, view, size);
  try {
    for (const [pattern, answer] of Object.entries(view.answers ?? {}))
      await page.route(pattern, (route) => answer(route));
    await page.goto(stage.home + view.path(stage));
    await view.ready(page);
    for (const scheme of schemes) {
      await page.emulateMedia({ colorScheme: scheme });
      const path = join(folder, `${view.name}${size === 'phone' ? '-phone' : ''}-${scheme}.webp`);
      writeFileSync(path, await taken(page));
      process.stdout.write(`${path}\n`);
    }
  } finally {
    await page.context().close();
  }
}

async function main(): Promise<number> {
  const options = optionsOf();
  if (options === undefined) {
    process.stderr.write(USAGE);
    return EXIT_USAGE;
  }
  const { folder, only, all } = options;
  mkdirSync(folder, { recursive: true });
  const stage = await openStage();
  const browser = await startBrowser();
  try {
    for (const view of VIEWS.filter(({ name }) => name.includes(only)))
      for (const each of all ? EVERY : [view.documented ?? []].flat())
        await picture(browser, stage, view, each, folder);
  } finally {
    await browser.close();
    await stage.stop();
  }
  return 0;
}

process.exitCode = await main();
