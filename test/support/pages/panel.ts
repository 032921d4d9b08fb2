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
  await page.getByRole('button', { name: 'Create a passkey' }).click();
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
}

/** No part of the page is reached by scrolling sideways alone. */
export async function fits(page: Page, widthPixels: number): Promise<boolean> {
  return Number(await page.evaluate('document.documentElement.scrollWidth')) <= widthPixels;
}

export interface SearchedList {
  /** Path of the route under `/ProxyAdmin/api/`. */
  readonly route: string;
  /** The query of the next page, which an empty one links to. */
  readonly next: string;
  /** Text of an empty page with a next one. */
  readonly bound: string;
  /** The name of the button for the next page. */
  readonly goOn: string;
  /** Shown once the next page is there. */
  readonly found: Locator;
  /** Called while the empty page is shown. */
  readonly look: () => Promise<void>;
}

/** A list that searches in bounded pages: a failure is shown and retried, and an empty page leads to the next one. */
export async function failsAndContinues(page: Page, list: SearchedList): Promise<void> {
  const requests = `**/api/${list.route}`;
  await page.route(requests, (route) =>
    route.fulfill({ status: 503, json: { error: { code: 1012, message: 'Temporarily unavailable' } } }),
  );
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.getByRole('alert').getByText('Temporarily unavailable').waitFor();
  await page.unroute(requests);
  const link = `</ProxyAdmin/api/${list.route}?${list.next}>; rel="next"`;
  await page.route(requests, (route) => route.fulfill({ headers: { Link: link }, json: { result: [] } }));
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText(list.bound).waitFor();
  await list.look();
  const next = page.waitForRequest((request) => request.url().endsWith(`api/${list.route}?${list.next}`));
  await page.getByRole('button', { name: list.goOn }).click();
  await next;
  await list.found.waitFor();
  await page.unroute(requests);
}
