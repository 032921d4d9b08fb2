/** The dashboard as a reader sees it: what its tiles, charts and tables say at each look, kept by the page itself. */
import type { Page } from 'playwright-core';

/** Looks after which a number that should show is missing. One comes every two seconds. */
const SAMPLES_MAX = 12;

export interface ShownSample {
  readonly utc: string;
  readonly seconds: number;
  /** Text of each tile by its title. */
  readonly tiles: Readonly<Record<string, string>>;
  /** `title: label` of each line to its number; NaN where the page has none. */
  readonly lines: Readonly<Record<string, number>>;
}

/** In the browser: a copy of the page's words after each look, which its time tells from the one before. */
const KEEP = `(() => {
  const text = (element) => element.textContent.trim();
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  globalThis.shownLooks = [];
  let kept = () => undefined;
  // The page's policy forbids the polling of the browser's driver.
  globalThis.onceShown = async (count) => {
    while (globalThis.shownLooks.length < count) await new Promise((resolve) => { kept = resolve; });
    return globalThis.shownLooks;
  };
  const keep = () => {
    const time = document.querySelector('[data-seconds]');
    const utc = time?.parentElement.querySelector('time').dateTime;
    if (time === null || utc === globalThis.shownLooks.at(-1)?.utc) return;
    const tiles = all('.figures > div').map((each) => [text(each.firstElementChild), text(each.lastElementChild)]);
    const lines = all('figure.card').flatMap((chart) => {
      const [title, now] = all('strong, span', chart).map(text);
      return now.split(', ').map((line) => {
        const [, label, value] = /^(.*) (\\S+)$/.exec(line);
        return [title + ': ' + label, Number(value)];
      });
    });
    globalThis.shownLooks.push({
      utc,
      seconds: Number(time.dataset.seconds),
      tiles: Object.fromEntries(tiles),
      lines: Object.fromEntries(lines.map(([name, value]) => [name, Number.isNaN(value) ? null : value])),
    });
    kept();
  };
  new MutationObserver(keep).observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
})()`;

export class ShownDashboard {
  readonly #page: Page;

  private constructor(page: Page) {
    this.#page = page;
  }

  /** Keeps the samples of a page that shows the dashboard. */
  static async keep(page: Page): Promise<ShownDashboard> {
    await page.evaluate(KEEP);
    return new ShownDashboard(page);
  }

  /** Looks so far. */
  count(): Promise<number> {
    return this.#page.evaluate<number>('shownLooks.length');
  }

  /** The looks from number `from` on, as soon as `isOver` likes them, or after so many that it never will. */
  async since(
    from: number,
    isOver: (looks: readonly ShownSample[]) => boolean,
  ): Promise<readonly ShownSample[]> {
    for (let count = from + 1; ; count += 1) {
      const looks = await this.#page.evaluate<ShownSample[]>(
        `onceShown(${count}).then((all) => all.slice(${from}))`,
      );
      if (isOver(looks) || count >= from + SAMPLES_MAX) return looks;
    }
  }

  /** A look as the gateway sends it. */
  sent(): Promise<object> {
    return this.#page.evaluate<object>(`new Promise((resolve) => {
      const source = new EventSource('/ProxyAdmin/api/live');
      source.addEventListener('look', ({ data }) => {
        source.close();
        resolve(JSON.parse(data));
      });
    })`);
  }

  /** The next look. */
  async next(): Promise<ShownSample> {
    const [look] = await this.since(await this.count(), () => true);
    if (look === undefined) throw new Error('no look');
    return look;
  }
}

/** Returns the count of a line that shows a rate, over these looks. */
export function countedBy(looks: readonly ShownSample[], name: string): number {
  return Math.round(looks.reduce((sum, { lines, seconds }) => sum + (lines[name] ?? 0) * seconds, 0));
}
