/**
 * `npm run pictures [-- --folder FOLDER --only WORD --all]`: pictures of the real pages under load, each in light and dark.
 * Without `--all` those of the documentation; with it every view, on a phone too, to be looked at.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { startBrowser } from '../../kit/browser.ts';
import { openStage, type Stage } from './stage.ts';
import { SIZES, VIEWS, type View } from './views.ts';

const USAGE = 'usage: npm run pictures [-- --folder FOLDER] [--only WORD] [--all]\n';
const EXIT_USAGE = 64;
const FOLDER = 'docs/pictures';
const SCHEMES = ['light', 'dark'] as const;

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
async function pageOf(browser: Browser, stage: Stage, view: View, width: keyof typeof SIZES): Promise<Page> {
  const context = await browser.newContext({
    viewport: SIZES[width],
    reducedMotion: 'reduce',
    locale: 'en-US',
    timezoneId: 'UTC',
    hasTouch: width === 'phone',
  });
  if (view.as !== 'nobody') {
    const [name = '', value = ''] = stage[view.as].cookie.split('=');
    await context.addCookies([{ name, value, url: stage.home }]);
  }
  return context.newPage();
}

async function picture(
  browser: Browser,
  stage: Stage,
  view: View,
  width: keyof typeof SIZES,
  folder: string,
) {
  const page = await pageOf(browser, stage, view, width);
  try {
    for (const [pattern, answer] of Object.entries(view.answers ?? {}))
      await page.route(pattern, (route) => answer(route));
    await page.goto(stage.home + view.path(stage));
    await view.ready(page);
    for (const scheme of SCHEMES) {
      await page.emulateMedia({ colorScheme: scheme });
      const path = join(folder, `${view.name}${width === 'phone' ? '-phone' : ''}-${scheme}.png`);
      await page.screenshot({ path, animations: 'disabled', caret: 'hide' });
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
    for (const view of VIEWS.filter(({ name, documented }) => name.includes(only) && (all || documented)))
      for (const width of all ? (['desktop', 'phone'] as const) : ([view.documented ?? 'desktop'] as const))
        await picture(browser, stage, view, width, folder);
  } finally {
    await browser.close();
    await stage.stop();
  }
  return 0;
}

process.exitCode = await main();
