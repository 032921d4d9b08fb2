/** The admin panel of a gateway that was started for a test: its set-up link, and the way from page to page. */
import type { Locator, Page } from 'playwright-core';

/** The line of the banner. It follows the line that a launch waits for. */
export async function printedLink(gateway: { output(): { stdout: string } }): Promise<string> {
  for (;;) {
    const [link] = /http:\S+\/ProxyAdmin\/Setup#[\w-]{43}/.exec(gateway.output().stdout) ?? [];
    if (link !== undefined) return link;
    await new Promise(setImmediate);
  }
}

/** The link to a page, by its name in the navigation. */
export function linkTo(page: Page, name: string): Locator {
  return page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true });
}

/** Makes an admin in the browser that has opened the set-up link. */
export async function becomeAdmin(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Make a passkey and begin' }).click();
  await page.getByRole('heading', { name: 'Dashboard' }).waitFor();
}

/** No part of the page is reached by scrolling sideways alone. */
export async function fits(page: Page, widthPixels: number): Promise<boolean> {
  return Number(await page.evaluate('document.documentElement.scrollWidth')) <= widthPixels;
}
