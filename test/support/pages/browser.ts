/** The browser of a suite, and how long its pages wait. */
import { startBrowser } from '../../../kit/browser.ts';
import { shared } from '../shared.ts';

/** Waiting on a page has no clock but this one, at which the failure names it. It ends before its suite would. */
export const PAGE_WAIT_MS = 300_000;

/** Rejects with the reason when there is none, or none that runs. */
export const sharedBrowser = shared(startBrowser, (browser) => browser.close());
