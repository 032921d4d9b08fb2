/**
 * Events in a browser against the program: two tabs share one stream, through restarts, network cuts, the end of the
 * leading tab and the end of the session, with no gap and no duplicate.
 */
import { copyFileSync, writeFileSync } from 'node:fs';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { type Person, request, signUp } from '../../../kit/agent.ts';
import { listenOnLoopback } from '../../../kit/http.ts';
import { HIGH_LIMITS, launch, type RunningGateway } from '../../../kit/launch.ts';
import { metricValue } from '../../../kit/metric-value.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';
import { PAGE_WAIT_MS, sharedBrowser } from '../../support/pages/browser.ts';

const KEY = 'the-key-of-the-core-module';
const START_TIMEOUT_MS = 240_000;

t.setTimeout(START_TIMEOUT_MS);
const browser = await sharedBrowser(t);

const folder = temporaryFolder(t);
for (const name of ['events.js', 'event-stream.js'])
  copyFileSync(`src/web/shared/${name}`, join(folder, name));
writeFileSync(
  join(folder, 'shared.html'),
  '<!doctype html><meta charset="utf-8"><title>Shared</title><script type="module" src="main.js"></script>',
);
writeFileSync(join(folder, 'plain.html'), '<!doctype html><meta charset="utf-8"><title>Plain</title>');
writeFileSync(
  join(folder, 'main.js'),
  `import { openEvents } from './events.js';
   window.seen = []; window.resets = []; window.states = [];
   window.events = openEvents({
     onEvent: ({ value }) => window.seen.push(value.data.n),
     onReset: (positions) => window.resets.push(positions),
     onState: (state) => window.states.push(state),
   });`,
);

/** A TCP relay to the gateway that can be cut, and keeps its address when the gateway restarts. */
class Line {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  target = 0;
  cut = false;
  port = 0;

  constructor() {
    this.#server = createServer((near) => {
      if (this.cut) {
        near.destroy();
        return;
      }
      const far = dial(this.target, '127.0.0.1');
      for (const [one, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  async listen(): Promise<void> {
    this.port = (await listenOnLoopback(this.#server)).port;
  }

  /** Breaks every connection, and new ones until the relay is repaired. */
  break(): void {
    this.cut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.break();
    this.#server.close();
  }
}

const line = new Line();
await line.listen();
t.teardown(() => line.close());
const dataPath = temporaryFolder(t);
const start = async (): Promise<RunningGateway> => {
  const gateway = await launch({
    dataPath,
    configuration: {
      StaticPath: folder,
      Settings: HIGH_LIMITS,
      Modules: { core: { url: 'http://127.0.0.1:9', key: KEY } },
    },
  });
  line.target = Number(new URL(gateway.url).port);
  return gateway;
};
let gateway = await start();
t.teardown(() => gateway.stop());

let pushed = 0;
/** Pushes events for one user; returns the number of the last one. */
async function push(person: Person, count = 1): Promise<number> {
  const events = Array.from({ length: count }, () => {
    pushed += 1;
    return {
      module: 'core',
      tick: String(pushed),
      type: 'Counted',
      crmId: person.userId,
      data: { n: pushed },
    };
  });
  const answer = await fetch(`${gateway.internal}/internal/v1/events`, {
    method: 'POST',
    headers: { 'X-Module-Key': KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify({ events }),
  });
  if (answer.status !== 200) throw new Error(`push: ${answer.status} ${await answer.text()}`);
  return pushed;
}

async function streams(): Promise<number> {
  const text = await (await fetch(`${gateway.internal}/metrics`)).text();
  return metricValue(text, 'gatehouse_streams_open', {});
}

const until = (page: Page, condition: string) => page.waitForFunction(condition, undefined, { polling: 20 });
const live = (page: Page) => until(page, "window.events?.state === 'live' && window.events.position !== ''");
const sawAll = (page: Page, last: number) => until(page, `window.seen.includes(${last})`);
const seen = (page: Page) => page.evaluate('window.seen') as Promise<number[]>;
const range = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

interface Visitor {
  readonly person: Person;
  readonly context: BrowserContext;
  tab(path?: string): Promise<Page>;
}

async function visit(t: Test, script?: string): Promise<Visitor> {
  const person = await signUp(gateway.url);
  const context = await browser.newContext();
  context.setDefaultTimeout(PAGE_WAIT_MS);
  t.teardown(() => context.close());
  if (script !== undefined) await context.addInitScript(script);
  const value = person.cookie.replace(/^sid=/, '');
  await context.addCookies([{ name: 'sid', value, domain: 'localhost', path: '/', httpOnly: true }]);
  return {
    person,
    context,
    async tab(path = '/shared.html') {
      const page = await context.newPage();
      page.on('pageerror', (error) => t.fail(`the page threw: ${error.message}`));
      await page.goto(`http://localhost:${line.port}${path}`);
      return page;
    },
  };
}

// covers R86
t.test(
  'browser events: two tabs share one stream, through cuts, restarts and the end of the leader',
  async (t) => {
    const { person, tab } = await visit(t);
    const first = await tab();
    await live(first);
    const second = await tab();
    await live(second);
    t.equal(await streams(), 1, 'one stream for both');
    t.same([await first.evaluate('events.leads'), await second.evaluate('events.leads')], [true, false]);
    const from = pushed + 1;
    for (const page of [first, second]) await sawAll(page, await push(person, 3));

    line.break();
    await push(person, 150);
    await until(first, "events.state === 'waiting'");
    line.cut = false;
    let last = await push(person);
    for (const page of [first, second]) await sawAll(page, last);

    last = await push(person, 5);
    await gateway.kill();
    gateway = await start();
    last = await push(person, 5);
    for (const page of [first, second]) await sawAll(page, last);
    t.same(await seen(first), range(from, last), 'after a cut and a kill -9');
    t.same(await seen(second), range(from, last));

    const exit = await gateway.stop();
    t.equal(exit.code, 0);
    gateway = await start();
    last = await push(person, 2);
    for (const page of [first, second]) await sawAll(page, last);

    const closing = first.close();
    last = await push(person, 20);
    await closing;
    last = await push(person, 20);
    await sawAll(second, last);
    t.equal(await second.evaluate('events.leads'), true, 'the other tab leads now');
    t.same(await seen(second), range(from, last), 'no gap, no duplicate');
    t.same(await second.evaluate('window.resets'), []);
    t.equal(await streams(), 1);
  },
);

t.test('browser events: a tab that was disconnected reads its missed events by itself', async (t) => {
  const { person, tab } = await visit(t);
  const [leader, other] = [await tab(), await tab()];
  await live(leader);
  await live(other);
  const from = pushed + 1;
  await sawAll(other, await push(person, 2));
  await other.evaluate("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))");
  await sawAll(leader, await push(person, 30));
  t.same(await seen(other), range(from, from + 1), 'no event arrives while the tab is hidden');
  await other.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))");
  await sawAll(other, pushed);
  const last = await push(person, 3);
  for (const page of [leader, other]) await sawAll(page, last);
  for (const page of [leader, other]) t.same(await seen(page), range(from, last));
  let open = await streams();
  while (open > 1) open = await streams();
  t.equal(open, 1, 'the stream of its own is closed again');
});

t.test('browser events: log-out ends the stream in every tab, and no tab reconnects', async (t) => {
  const { person, tab } = await visit(t);
  const [first, second] = [await tab(), await tab()];
  await live(first);
  await live(second);
  const asked: string[] = [];
  for (const page of [first, second]) page.on('request', (sent) => asked.push(sent.url()));
  const headers = { Cookie: person.cookie };
  t.equal((await request(`${gateway.url}/auth/v1/logout`, { method: 'POST', headers })).status, 200);
  await until(first, "events.state === 'signedOut'");
  await until(second, "events.state === 'signedOut'");
  t.equal(await streams(), 0);
  t.ok(asked.length <= 2, asked.join(' '));
});

t.test('browser events: without Web Locks each tab has a stream of its own', async (t) => {
  const { person, tab } = await visit(t, 'Object.defineProperty(navigator, "locks", { value: undefined })');
  const [first, second] = [await tab(), await tab()];
  await live(first);
  await live(second);
  t.equal(await streams(), 2);
  const from = pushed + 1;
  const last = await push(person, 4);
  for (const page of [first, second]) await sawAll(page, last);
  for (const page of [first, second]) t.same(await seen(page), range(from, last));
});

t.test('browser events: a position that is no longer in the log resets the page once', async (t) => {
  const { tab } = await visit(
    t,
    "window.fetch = ((own) => (url, how) => own(String(url).includes('last_event_id') ? url : url + '?last_event_id=gone-1', how))(window.fetch)",
  );
  const page = await tab();
  await until(page, 'window.resets?.length === 1');
  await live(page);
  t.match(await page.evaluate('window.resets[0].newest'), /^[0-9a-f]+-[0-9]+$/);
});

t.test('browser events: a plain EventSource resumes over a cut without gap or duplicate', async (t) => {
  const { person, tab } = await visit(t);
  const page = await tab('/plain.html');
  await page.evaluate(`
    window.seen = []; window.opens = 0;
    const source = new EventSource('/auth/v1/events');
    source.onopen = () => { window.opens += 1; };
    source.addEventListener('Counted', ({ data }) => window.seen.push(JSON.parse(data).data.n));
  `);
  await until(page, 'window.opens === 1');
  const from = pushed + 1;
  line.break();
  await push(person, 10);
  line.cut = false;
  await sawAll(page, pushed);
  const last = await push(person, 10);
  await sawAll(page, last);
  t.same(await seen(page), range(from, last), 'events before its first one are read too');
});
