/** The file cache and the pages in it: encodings, conditions, policies, and a folder of one's own at `/`. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { request } from 'undici';
import { closeAfter } from '../../../kit/close-after.ts';
import { openPages } from '../../../src/bootstrap/static-pages.ts';
import type { Configuration } from '../../../src/domain/config/configuration.ts';
import type { AnyRoute } from '../../../src/io/http/table/route.ts';
import { FileCache, PAGE_POLICY } from '../../../src/io/web/file-cache.ts';
import { folderFiles } from '../../../src/io/web/page-tree.ts';
import { type HttpFixtureOptions, requestText, sendRaw, startHttp } from '../../support/http.ts';

const script = Buffer.from(`export const text = '${'abc '.repeat(1_000)}';\n`);

function cacheOf(policy?: string): FileCache {
  return new FileCache(
    [
      { path: '/', bytes: Buffer.from('<!doctype html><p>hello'), immutable: false },
      { path: '/web/1/main.js', bytes: script, immutable: true },
      { path: '/ProxyAdmin', bytes: Buffer.from('<!doctype html>'), immutable: false, adminOnly: true },
    ],
    policy,
  );
}

const served = (t: Test, routes: readonly AnyRoute[], more: Partial<HttpFixtureOptions> = {}) =>
  closeAfter(t, startHttp({ routes, ...more }));

async function fetched(url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' = 'GET') {
  const { statusCode, headers: got, body } = await request(url, { method, headers });
  return { status: statusCode, headers: got, body: Buffer.from(await body.arrayBuffer()) };
}

/** The same, asked until it comes compressed: the first request begins that. Small files never are. */
async function compressed(url: string, headers: Record<string, string>) {
  let answer = await fetched(url, headers);
  while (answer.headers['content-encoding'] === undefined && answer.body.length >= 512)
    answer = await fetched(url, headers);
  return answer;
}

t.test('a file is served in the smallest form that the client takes, and says which', async (t) => {
  const cache = cacheOf();
  const { url } = served(t, cache.routes);
  const early = await fetched(`${url}/web/1/main.js`, { 'accept-encoding': 'br, gzip' });
  t.equal(early.headers['content-encoding'], undefined, 'before the compressed forms are there');
  t.same(early.body, script);
  const brotli = await compressed(`${url}/web/1/main.js`, { 'accept-encoding': 'gzip, deflate, br' });
  t.equal(brotli.headers['content-encoding'], 'br');
  t.same(brotliDecompressSync(brotli.body), script);
  const gzip = await compressed(`${url}/web/1/main.js`, { 'accept-encoding': 'GZIP;q=0.5, br;q=0' });
  t.equal(gzip.headers['content-encoding'], 'gzip');
  t.same(gunzipSync(gzip.body), script);
  for (const field of ['identity', 'br;q=0.0, gzip;q=0', '*']) {
    const plain = await fetched(`${url}/web/1/main.js`, { 'accept-encoding': field });
    t.equal(plain.headers['content-encoding'], undefined, field);
    t.equal(plain.headers['vary'], 'Accept-Encoding');
    t.same(plain.body, script);
  }
  const head = await fetched(`${url}/web/1/main.js`, { 'accept-encoding': 'br' }, 'HEAD');
  t.equal(head.headers['content-length'], String(brotli.body.length));
  t.equal(head.body.length, 0);
});

t.test('a page that the client has is 304; a script may be kept for ever, a page is asked for', async (t) => {
  const { url, finished } = served(t, cacheOf().routes);
  const page = await fetched(`${url}/`);
  const etag = String(page.headers['etag']);
  t.equal(page.headers['cache-control'], 'no-cache');
  t.equal(page.headers['content-security-policy'], PAGE_POLICY);
  t.equal(page.headers['x-frame-options'], 'DENY');
  t.equal(page.headers['x-content-type-options'], 'nosniff');
  for (const condition of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
    const again = await fetched(`${url}/`, { 'if-none-match': condition });
    t.equal(again.status, 304, condition);
    t.equal(again.headers['etag'], etag);
    t.equal(again.body.length, 0);
  }
  t.equal((await fetched(`${url}/`, { 'if-none-match': '"other"' })).status, 200);
  const asset = await fetched(`${url}/web/1/main.js`);
  t.match(asset.headers['cache-control'], /immutable/);
  t.equal(asset.headers['content-security-policy'], undefined);
  t.equal(finished.length, 7);
});

t.test('files are not limited, and no other method is offered on them', async (t) => {
  const { url, port } = served(t, cacheOf().routes, {
    settings: { ApiRPSLimit: 1, IpRPSLimit: 1, RateLimitWindowSeconds: 1 },
  });
  const answers: unknown[] = [];
  for (let round = 0; round < 30; round += 1) {
    const { status, headers } = await fetched(`${url}/`);
    answers.push([status, headers['x-ratelimit']]);
  }
  t.same(
    answers,
    answers.map(() => [200, undefined]),
  );
  const posted = await sendRaw(port, requestText('POST', '/', {}, ''));
  t.equal(posted.status, 405);
  t.equal(posted.headers['allow'], 'GET, HEAD');
});

const JSON_404 = '{"error":{"code":1004,"message":"Not found"}}';
const PAGE_404 = {
  status: 404,
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': PAGE_POLICY,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  vary: 'Accept',
};
/** Field that browsers send for a page that is opened by its address. */
const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';

t.test('an unknown address is a page for browsers and JSON for every other client', async (t) => {
  const { routes, notFound } = openPages({ staticPath: undefined } as Configuration, []);
  const { url, port, bugs, finished } = served(t, routes, { pipeline: { notFound } });
  const get = (path: string, accept?: string, method = 'GET') =>
    sendRaw(port, requestText(method, path, accept === undefined ? {} : { Accept: accept }));

  for (const accept of [
    BROWSER,
    'text/html',
    'TEXT/HTML;charset=utf-8',
    'text/*, application/json;q=0.1, text/html',
  ]) {
    const { status, headers, body } = await get('/nothing', accept);
    const answer: Record<string, unknown> = { status, ...headers };
    t.same(Object.fromEntries(Object.keys(PAGE_404).map((name) => [name, answer[name]])), PAGE_404, accept);
    t.match(body, /<h1>Page not found<\/h1>/);
    t.match(body, /<a [^>]*href="\/"/, 'a link home');
    t.notMatch(body, /\{\{|style=|<script/, 'nothing inline, no placeholder left');
  }
  const page = (await get('/nothing', BROWSER)).body;
  const addresses = new Set(routes.map(({ path }) => path));
  const named = [...page.matchAll(/(?:src|href)="(\/web\/[^"]+)"/g)].map(([, address = '']) => address);
  t.same(
    named.filter((address) => !addresses.has(address)),
    [],
    'addresses that are not served',
  );
  const head = await get('/nothing', BROWSER, 'HEAD');
  t.equal(head.status, 404);
  t.equal(head.headers['content-length'], String(page.length));
  t.equal((await fetched(`${url}/nothing`, { accept: BROWSER }, 'HEAD')).body.length, 0);

  for (const accept of [
    undefined,
    '*/*',
    'application/json',
    'text/html, application/json',
    'application/json, text/html;q=0.9',
    'text/html;q=0, */*;q=0.5',
    'text/html;q=2',
    'text/html;q=x',
    'text/html;q=0.5, */*',
    'text/html;q=0.5, application/*;q=0.6',
    'text/htmlx',
    '',
  ]) {
    const { status, headers, body } = await get('/nothing', accept);
    t.same(
      [status, headers['content-type'], headers['vary'], body],
      [404, 'application/json', undefined, JSON_404],
      accept ?? 'no Accept',
    );
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS'])
    t.equal((await get('/nothing', BROWSER, method)).headers['content-type'], 'application/json', method);
  t.same(bugs, []);
  t.ok(
    finished.every(({ error }) => error === 'NotFound'),
    'the log names the error of each',
  );
});

t.test('addresses of APIs, modules among them, are JSON whatever is accepted', async (t) => {
  const { routes, notFound } = openPages({ staticPath: undefined } as Configuration, []);
  const { port } = served(t, routes, { pipeline: { notFound } });
  const typeOf = async (path: string) =>
    (await sendRaw(port, requestText('GET', path, { Accept: BROWSER }))).headers['content-type'];
  for (const path of [
    '/auth',
    '/auth/v1/nothing',
    '/auth/v9',
    '/mcp',
    '/mcp/sse',
    '/internal/v1/events',
    '/metrics',
    '/health',
    '/.well-known/oauth-protected-resource/mcp',
    '/ProxyAdmin/api',
    '/ProxyAdmin/api/nothing',
    '/docs/swagger/nothing.json',
    '/wallet/v1/nothing',
    '/nothing/v2',
  ])
    t.equal(await typeOf(path), 'application/json', path);
  for (const path of [
    '/authors',
    '/mcp-guide',
    '/ProxyAdmin/apis',
    '/docs',
    '/docs/nothing',
    '/a/b/c',
    '/v1',
    '//',
  ])
    t.match(await typeOf(path), 'text/html', path);
});

t.test('admin pages are served to the allowed addresses alone', async (t) => {
  const { url } = served(t, cacheOf().routes, { site: { adminAllow: ['10.0.0.0/8'] } });
  t.equal((await fetched(`${url}/ProxyAdmin`)).status, 403);
  t.equal((await fetched(`${url}/`)).status, 200);
});

t.test('the built-in pages name only files that are served, under one address for one content', async (t) => {
  const pages = openPages({ staticPath: undefined } as Configuration, []);
  const { url } = served(t, pages.routes);
  const addresses = new Set(pages.routes.map(({ path }) => path));
  for (const path of ['/', '/ProxyAdmin', '/ProxyAdmin/Settings', '/ProxyAdmin/UserKeys', '/docs/swagger/']) {
    if (!t.ok(addresses.has(path), path)) continue;
    const html = (await fetched(url + path)).body.toString();
    t.notMatch(html, /\{\{|style=|<script(?![^>]*\bsrc=)/, 'nothing inline, no placeholder left');
    const named = [...html.matchAll(/(?:src|href)="(\/web\/[^"]+)"/g)].map(([, address = '']) => address);
    t.ok(named.length > 2);
    t.same(
      named.filter((address) => !addresses.has(address)),
      [],
      path,
    );
  }
  const lost: string[] = [];
  const exported = new Map<string, Set<string>>();
  const taken: { by: string; from: string; name: string }[] = [];
  for (const route of pages.routes.filter(
    ({ path }) => /^\/web\/.*\.js$/.test(path) && !path.includes('/vendor/'),
  )) {
    const source = (await fetched(url + route.path)).body.toString();
    const names = source.matchAll(/^export (?:async )?(?:function|const|class) (\w+)/gm);
    exported.set(route.path, new Set([...names].map(([, name = '']) => name)));
    for (const [, list = '', file = ''] of source.matchAll(/import \{([^}]+)\} from '(\.[^']+)'/g)) {
      const from = new URL(file, url + route.path).pathname;
      for (const each of list.split(',').filter((part) => part.trim() !== ''))
        taken.push({ by: route.path, from, name: each.trim().split(' ', 1)[0] ?? '' });
    }
    for (const [, file = '', name = ''] of source.matchAll(/await import\('([^']+)'\)\)\.(\w+)/g))
      taken.push({ by: route.path, from: new URL(file, url + route.path).pathname, name });
    const imports = [...source.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].map(([, name = '']) => name);
    for (const name of imports) {
      const address = new URL(name, url + route.path).pathname;
      if (!addresses.has(address)) lost.push(`${route.path} imports ${name}`);
    }
  }
  t.same(lost, []);
  t.same(
    taken.filter(({ from, name }) => exported.has(from) && !exported.get(from)?.has(name)),
    [],
    'a file that is loaded later lacks no name either',
  );
});

/** What a page loads before a person has done anything: its bound, compressed, and the files that its first view brings. */
const FIRST_LOADS = {
  '/': { bytesMax: 60 * 1024, view: ['home/agent.js', 'shared/icons.svg'] },
  '/ProxyAdmin': { bytesMax: 90 * 1024, view: ['admin/dashboard.js', 'vendor/uplot.js', 'shared/icons.svg'] },
};

t.test(
  'the first load of home is at most 60 KB and of the admin panel 90 KB, all of it from this origin',
  async (t) => {
    const pages = openPages({ staticPath: undefined } as Configuration, []);
    const { url } = served(t, pages.routes);
    const names = /(?:src|href)="(\/web\/[^"]+)"|from\s*'(\.[^']+)'|import\s*'(\.[^']+)'/g;
    for (const [path, { bytesMax, view }] of Object.entries(FIRST_LOADS)) {
      const sizes = new Map<string, number>();
      const waiting = [path];
      for (const name of view)
        waiting.push(
          ...pages.routes.flatMap((route) => (route.path.endsWith(`/${name}`) ? [route.path] : [])),
        );
      t.equal(waiting.length, 1 + view.length);
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
        if (sizes.has(next)) continue;
        const { body, headers } = await compressed(url + next, { 'accept-encoding': 'br' });
        sizes.set(next, body.length);
        if (next.includes('/vendor/')) continue;
        const text = String(headers['content-encoding'] === 'br' ? brotliDecompressSync(body) : body);
        for (const [, named, from, imported] of text.matchAll(names)) {
          waiting.push(new URL(named ?? from ?? imported ?? '', url + next).pathname);
        }
        t.notMatch(
          text,
          /(?:src|href)=["']?(?:https?:)?\/\/|import\(?\s*['"]https?:|url\(\s*['"]?(?:https?:)?\/\//,
          next,
        );
      }
      const sum = [...sizes.values()].reduce((total, each) => total + each, 0);
      t.ok(sizes.size > 8, `${path} loads ${sizes.size} files`);
      t.ok(sum <= bytesMax, `${path} weighs ${sum} bytes`);
    }
  },
);

t.test(
  'StaticPath: a folder takes the place of the home page, files and all, but hides nothing',
  async (t) => {
    const folder = t.testdir({
      'index.html': '<p>mine',
      img: { 'a b.svg': '<svg/>' },
      '.secret': 'no',
    });
    symlinkSync('/etc/hostname', join(folder, 'link.txt'));
    const configuration = { staticPath: folder } as Configuration;
    const pages = openPages(configuration, []);
    const { url } = served(t, pages.routes);
    const home = await fetched(`${url}/`);
    t.equal(home.body.toString(), '<p>mine');
    t.equal(home.headers['content-security-policy'], undefined, 'its own policy is its own affair');
    t.equal((await fetched(`${url}/img/a%20b.svg`)).headers['content-type'], 'image/svg+xml');
    t.equal((await fetched(`${url}/.secret`)).status, 404);
    t.equal((await fetched(`${url}/link.txt`)).status, 404, 'links are not followed');
    t.equal((await fetched(`${url}/docs/swagger/`)).status, 200, 'the other pages stay');
    mkdirSync(join(folder, 'auth/v1'), { recursive: true });
    writeFileSync(join(folder, 'auth/v1/info'), 'x');
    const api = [{ path: '/auth/v1/info' }] as unknown as readonly AnyRoute[];
    t.throws(() => openPages(configuration, api), /gateway itself|not a folder/);
    t.throws(
      () => openPages({ staticPath: join(folder, 'none') } as Configuration, []),
      /gateway itself|not a folder/,
    );
    t.throws(() => folderFiles(join(folder, 'index.html'), new Set()), /not a folder/);
  },
);
