/** WebSockets of a browser to the echo of the sandbox: from a page of the gateway, and from a page of another origin. */
import { createServer } from 'node:http';
import type { Page } from 'playwright-core';
import t from 'tap';
import { signUp } from '../../../kit/agent.ts';
import { listenOnLoopback } from '../../../kit/http.ts';
import { sharedBrowser } from '../../support/pages/browser.ts';
import { unlimitedGateway } from '../../support/pages/gateways.ts';

t.setTimeout(240_000);
const browser = await sharedBrowser(t);
const gateway = await unlimitedGateway(t);
const other = createServer((_request, response) =>
  response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>Other</title>'),
);
const { port } = await listenOnLoopback(other);
// Cookies belong to a host with all of its ports: the page of the other port is same-site, of another origin.
const own = `http://localhost:${new URL(gateway.url).port}`;
const foreign = `http://localhost:${port}/`;
const context = await browser.newContext();
const { cookie } = await signUp(gateway.url);
await context.addCookies([{ name: 'sid', value: cookie.slice('sid='.length), url: own, sameSite: 'Lax' }]);
t.teardown(async () => {
  await context.close();
  other.close();
});

/** Returns the events of a socket on a page that sends a text and bytes, and closes it after both echoes. */
function heardAt(page: Page, url: string): Promise<unknown[]> {
  return page.evaluate(
    (address) =>
      new Promise<unknown[]>((resolve) => {
        const heard: unknown[] = [];
        const socket = new WebSocket(address);
        socket.binaryType = 'arraybuffer';
        socket.onopen = () => {
          heard.push(`open ${socket.protocol}${socket.extensions}`);
          socket.send('grüße');
          socket.send(new Uint8Array([0, 255]));
        };
        socket.onmessage = ({ data }) => {
          heard.push(typeof data === 'string' ? data : [...new Uint8Array(data as ArrayBuffer)]);
          if (typeof data !== 'string') socket.close(4321, 'done');
        };
        socket.onerror = () => heard.push('error');
        socket.onclose = ({ code, reason, wasClean }) => {
          heard.push(`close ${code} ${reason} ${wasClean}`);
          resolve(heard);
        };
      }),
    url,
  );
}

const echo = `${own.replace('http', 'ws')}/core/v1/echo`;

t.test('WebSocket of a browser: a page of the gateway gets its texts, bytes and code back', async (t) => {
  const page = await context.newPage();
  await page.goto(own);
  t.same(await heardAt(page, echo), ['open ', 'grüße', [0, 255], 'close 4321 done true']);
});

// covers S17
t.test('WebSocket of a browser: a page of another origin with the same cookie is refused', async (t) => {
  const page = await context.newPage();
  await page.goto(foreign);
  t.same(await heardAt(page, echo), ['error', 'close 1006  false']);
  const status = await page.evaluate(
    async (url) => (await fetch(url, { mode: 'no-cors', credentials: 'include' })).type,
    `${own}/auth/v1/info`,
  );
  t.equal(status, 'opaque', 'the gateway itself is reached');
});
