/** The choice between the builds of uWebSockets.js. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import t, { type Test } from 'tap';
import {
  HttpLibraryUnusable,
  httpLibrary,
  loadNewest,
  PACKAGES,
} from '../../../../src/io/http/listen/library.ts';
import type { HttpResponse } from '../../../../src/io/http/listen/server.ts';

const BROKEN = "throw new Error('only some lines of Node\\n\\nError: needs GLIBC_2.38')";

/** `require` in a folder with these packages: version and main file. */
function packages(t: Test, given: Record<string, readonly [version: string, main: string]>): NodeJS.Require {
  const folder = t.testdir({
    node_modules: Object.fromEntries(
      Object.entries(given).map(([name, [version, main]]) => [
        name,
        { 'package.json': JSON.stringify({ name, version, main: './main.js' }), 'main.js': main },
      ]),
    ),
  });
  return createRequire(`${folder}/main.js`);
}

t.test('http library: a build is loaded once, with the version of its package', async (t) => {
  const { uws, version } = httpLibrary();
  t.type(uws.App, 'function');
  t.match(version, /^20\.\d+\.\d+$/);
  t.equal(httpLibrary().uws, uws);
});

t.test(
  'http library: the first package that loads is used, missing and failing ones are passed over',
  async (t) => {
    const sound = 'exports.App = () => module.id';
    const find = packages(t, { next: ['3.0.0', BROKEN], current: ['2.0.0', sound], old: ['1.0.0', sound] });
    t.equal(loadNewest(['missing', 'next', 'current', 'old'], find).version, '2.0.0');
  },
);

t.test('http library: a package without a binary for this Node is passed over', async (t) => {
  const sound = 'exports.App = () => module.id';
  const find = packages(t, { next: ['3.0.0', sound], old: ['1.0.0', sound] });
  const file = find.resolve('next').replace('main.js', 'package.json');
  const write = (platform: string) =>
    writeFileSync(
      file,
      JSON.stringify({
        version: '3.0.0',
        main: './main.js',
        optionalDependencies: { [`@x/${platform}`]: '3.0.0' },
      }),
    );
  write('linux-x64-1');
  t.equal(loadNewest(['next', 'old'], find).version, '1.0.0');
  write(`${process.platform}-${process.arch}-${process.versions.node.split('.')[0]}`);
  t.equal(loadNewest(['next', 'old'], find).version, '3.0.0');
});

t.test('http library: without a usable build the error names each package and its reason', async (t) => {
  const find = packages(t, { next: ['3.0.0', BROKEN] });
  try {
    loadNewest(['next', 'missing'], find);
    t.fail('no package is usable');
  } catch (error) {
    t.type(error, HttpLibraryUnusable);
    t.match(
      String(error),
      /glibc 2\.38.*next: Error: needs GLIBC_2\.38; missing: Cannot find module 'missing'$/,
    );
  }
});

type Uws = typeof import('uWebSockets.js');

/** The build of this package; undefined, with its reason in the report, where it does not run on this machine. */
function buildOf(t: Test, name: string): Uws | undefined {
  try {
    return loadNewest([name], createRequire(import.meta.url)).uws;
  } catch (error) {
    if (!(error instanceof HttpLibraryUnusable)) throw error;
    t.pass(`not on this machine: ${error.message}`);
    return undefined;
  }
}

async function portOf(uws: Uws, app: ReturnType<Uws['App']>): Promise<number> {
  return await new Promise((resolve) => {
    app.listen('127.0.0.1', 0, (socket) => {
      if (socket !== false) resolve(uws.us_socket_local_port(socket as never));
    });
  });
}

/**
 * Returns the output of the parser for a chunked body with this end: sizes of its pieces, and `whole` when it is
 * complete.
 */
async function piecesOf(uws: Uws, end: string): Promise<(number | 'whole')[]> {
  const pieces: (number | 'whole')[] = [];
  const app = uws.App();
  const over = new Promise<void>((resolve) => {
    app.post('/', (response) => {
      response.onAborted(resolve);
      response.onData((chunk, isLast) => {
        if (chunk.byteLength > 0) pieces.push(chunk.byteLength);
        if (!isLast) return;
        pieces.push('whole');
        response.end('', true);
        resolve();
      });
    });
  });
  const port = await portOf(uws, app);
  const client = net.connect(port, '127.0.0.1').on('error', () => undefined);
  client.end(`POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n${end}`);
  await over;
  client.destroy();
  app.close();
  return pieces;
}

/** All that a client receives that sends a head with this `Expect`, and its body of five bytes once it received something. */
async function heard(uws: Uws, expected: string, answer: (response: HttpResponse) => void): Promise<string> {
  const app = uws.App();
  app.post('/', (response) => {
    response.onAborted(() => undefined);
    answer(response);
  });
  const client = net.connect(await portOf(uws, app), '127.0.0.1');
  let received = '';
  client.on('data', (bytes) => {
    if (received === '') client.write('hello');
    received += bytes.toString('latin1');
  });
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nExpect: ${expected}\r\nContent-Length: 5\r\n\r\n`);
  await once(client, 'close');
  app.close();
  return received;
}

const REFUSAL = /^HTTP\/1\.1 404 Not Found\r\n(?!.*HTTP\/)/s;

for (const name of PACKAGES) {
  // covers S45
  t.test(`http library: ${name} reads an extension of the last chunk as a size of 186 bytes`, async (t) => {
    const uws = buildOf(t, name);
    if (uws === undefined) return;
    t.same(await piecesOf(uws, '0\r\n\r\n'), [3, 'whole']);
    const gap = 'a build that ignores extensions or refuses them: take the gap out of docs/known-gaps.md';
    t.same(await piecesOf(uws, '0;a\r\n\r\n'), [3, 2], gap);
    const filled = `0;a\r\n${'x'.repeat(186)}\r\n0\r\n\r\n`;
    t.same(await piecesOf(uws, filled), [3, 186, 'whole'], gap);
  });

  t.test(
    `http library: ${name} answers the exact 100-continue before any handler, and no other case`,
    async (t) => {
      const uws = buildOf(t, name);
      if (uws === undefined) return;
      const refuse = (response: HttpResponse) => response.writeStatus('404 Not Found').end('no', true);
      const gap = 'a build that leaves 100 to the handler: take the gap out of docs/known-gaps.md';
      t.match(
        await heard(uws, '100-continue', refuse),
        /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 404/,
        gap,
      );
      for (const other of ['100-Continue', '100-CONTINUE']) t.match(await heard(uws, other, refuse), REFUSAL);
      // The way of src/io/http/body/continue.ts.
      const text = await heard(uws, '100-Continue', (response) => {
        response.cork(() => response.writeStatus('100 Continue\r\n'));
        response.onData((_bytes, isLast) => {
          if (isLast)
            response.cork(() => response.writeHeader('HTTP/1.1 201 Created\r\nA', 'b').end('ok', true));
        });
      });
      t.match(
        text,
        /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201 Created\r\nA: b\r\n(?!.*HTTP\/).*\r\nok$/s,
      );
    },
  );
}
