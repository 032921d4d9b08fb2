/** Answers before the end of a body: at most 1 MiB or 2 s of it are read, the connection is closed, the client sees the answer. */
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import net from 'node:net';
import t, { type Test } from 'tap';
import { GatewayError } from '../../../src/domain/errors.ts';
import type { OpenBodies } from '../../../src/io/http/body/open-bodies.ts';
import { BytesSource, StreamReply } from '../../../src/io/http/exchange/stream.ts';
import { type AnyRoute, Reply, type RouteContext } from '../../../src/io/http/table/route.ts';
import { connectRaw, heldBodies, plainRoute, requestText, route, startHttp } from '../../support/http.ts';
import { lacking } from '../../support/programs/tools.ts';

t.setTimeout(120_000);

const MEGABYTE = 1024 * 1024;
const DECLARED_BYTES = 5_000_000_000;
/** Bytes that the gateway reads, and those that the buffers of both sockets take. */
const SENT_BYTES_MAX = 32 * MEGABYTE;
const LONG = 'y'.repeat(20_000);

/** Reads a little of a body and then refuses it, as uploads do. */
function refuseLater(context: RouteContext): Promise<never> {
  return new Promise((_, reject) => {
    context.incoming?.read({
      data: () => reject(new GatewayError('BodyTooLarge')),
      end: () => undefined,
      lost: () => undefined,
    });
  });
}

const ROUTES: readonly AnyRoute[] = [
  route('POST /whole', { body: 'raw' }, () => 'whole'),
  plainRoute('POST /none', () => 'none'),
  route('POST /session', { auth: 'session' }, () => 'none'),
  route('POST /upload', { body: 'stream' }, refuseLater),
  route('POST /long', { body: 'stream' }, () => new Reply(200, LONG, 'text/plain')),
  route('POST /empty', { body: 'stream' }, () => new Reply(204, null)),
  route(
    'POST /sized',
    { body: 'stream' },
    () => new StreamReply(200, new BytesSource(Buffer.from(LONG)), { lengthBytes: LONG.length }),
  ),
  route(
    'POST /chunked',
    { body: 'stream' },
    () =>
      new StreamReply(200, {
        start(out) {
          out.send(LONG);
          out.end();
        },
        drained: () => undefined,
        lost: () => undefined,
      }),
  ),
];

function start(t: Test, openBodies?: OpenBodies) {
  const fixture = startHttp({
    routes: ROUTES,
    ...(openBodies === undefined ? {} : { pipeline: { openBodies } }),
  });
  t.teardown(() => fixture.close());
  return fixture;
}

/** Sends a head and then zeros without end. Resolves when the gateway has closed the connection. */
async function flood(port: number, method: string, path: string, framing: 'declared' | 'chunked') {
  const socket = net.connect(port, '127.0.0.1');
  let text = '';
  socket.on('data', (bytes) => {
    text += bytes.toString('latin1');
  });
  socket.on('error', () => socket.destroy());
  const fields =
    framing === 'declared'
      ? { 'Content-Length': String(DECLARED_BYTES) }
      : { 'Transfer-Encoding': 'chunked' };
  const zeros = Buffer.alloc(64 * 1024);
  const piece =
    framing === 'declared' ? zeros : Buffer.concat([Buffer.from('10000\r\n'), zeros, Buffer.from('\r\n')]);
  socket.write(requestText(method, path, fields));
  const push = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', push);
  push();
  await new Promise((resolve) => socket.once('close', resolve));
  return { text, sentBytes: socket.bytesWritten };
}

const FLOODED = [
  ['a declared length above the cap', 'POST', '/whole', 413],
  ['a route without a body', 'POST', '/none', 413],
  ['no such route', 'POST', '/nothing', 404],
  ['another method', 'GET', '/none', 405],
  ['no session', 'POST', '/session', 401],
  ['an upload that is refused', 'POST', '/upload', 413],
  ['an answer of 20 KB', 'POST', '/long', 200],
  ['a streamed answer with a length', 'POST', '/sized', 200],
  ['a streamed answer in chunks', 'POST', '/chunked', 200],
  ['an answer without a body', 'POST', '/empty', 204],
] as const;

// covers S47
t.test('unread body: every flood ends, and its answer is whole', async (t) => {
  const { port, server, bugs } = start(t);
  const floods = FLOODED.flatMap(([name, method, path, status]) =>
    (['declared', 'chunked'] as const).map(async (framing) => {
      const { text, sentBytes } = await flood(port, method, path, framing);
      t.ok(text.startsWith(`HTTP/1.1 ${status} `) && isWhole(text), `${name}: ${text.slice(0, 100)}`);
      t.ok(sentBytes < SENT_BYTES_MAX, `${name}: ${sentBytes} bytes were sent`);
    }),
  );
  await Promise.all(floods);
  t.equal(server.counters().open, 0);
  t.same(bugs, []);
});

// covers S47
t.test('unread body: one that no route reads is awaited, below the minimum rate it is 408', async (t) => {
  const { openBodies, second } = heldBodies();
  const { port, finished } = start(t, openBodies);
  const connection = connectRaw(port);
  connection.send(requestText('POST', '/none', { 'Content-Length': '20000' }), 'x'.repeat(5_000));
  t.equal((await connection.ask('x'.repeat(15_000))).body, '{"result":"none"}');
  connection.send(requestText('POST', '/none', { 'Content-Length': '20000' }), 'x'.repeat(5_000));
  while (finished.length < 2) {
    await new Promise(setImmediate);
    second();
  }
  t.match(await connection.answer(), { status: 408, body: /"code":1019/ });
  connection.close();
});

/** An answer that is complete by its own framing. */
function isWhole(text: string): boolean {
  const at = text.indexOf('\r\n\r\n');
  const body = text.slice(at + 4);
  const length = /^content-length: ([0-9]+)/im.exec(text.slice(0, at))?.[1];
  if (/ (?:204|304) /.test(text.slice(0, 13))) return body === '';
  return length === undefined ? /\r\n0\r\n.*\r\n$/s.test(body) : body.length === Number(length);
}

/**
 * Clients that send the declared bytes of zeros, in many requests at once: at full speed, or 1 KiB every 50 ms. They print
 * status and length of each answer.
 */
const UNDICI = createRequire(import.meta.url).resolve('undici');
const PIECES = `
const [cases, declared] = [JSON.parse(process.argv[1]), Number(process.argv[2])];
async function* pieces(speed) {
  const zeros = Buffer.alloc(speed === 'slow' ? 1024 : 65536);
  for (let sent = 0; sent < declared; sent += zeros.length) {
    yield zeros;
    if (speed === 'slow') await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
Promise.all(cases.map(([url, speed]) => new Promise((resolve) => ask(url, speed, resolve)))).then((answers) => {
  process.stdout.write(JSON.stringify(answers));
  process.exit(0);
});
`;
const VIA_NODE = `${PIECES}
function ask(url, speed, answered) {
  const request = require('node:http').request(url, { method: 'POST', headers: { 'Content-Length': declared } });
  request.on('error', (error) => answered(String(error)));
  request.on('response', (answer) => {
    let text = '';
    answer.setEncoding('utf8').on('data', (piece) => { text += piece; });
    answer.on('end', () => answered(answer.statusCode + ' ' + text.length));
    answer.on('error', (error) => answered(String(error)));
  });
  require('node:stream').Readable.from(pieces(speed)).pipe(request);
}
`;
const VIA_UNDICI = `${PIECES}
function ask(url, speed, answered) {
  require(${JSON.stringify(UNDICI)}).request(url, { method: 'POST', headers: { 'content-length': String(declared) }, body: pieces(speed) })
    .then(async ({ statusCode, body }) => answered(statusCode + ' ' + (await body.text()).length))
    .catch((error) => answered(String(error)));
}
`;
/** Continues like urllib3: a write that fails is no reason not to read. */
const VIA_PYTHON = `
import concurrent.futures, http.client, json, sys, time, urllib.parse
cases, declared = json.loads(sys.argv[1]), int(sys.argv[2])
def ask(case):
    url, speed = urllib.parse.urlsplit(case[0]), case[1]
    connection = http.client.HTTPConnection(url.hostname, url.port)
    connection.putrequest('POST', url.path)
    connection.putheader('Content-Length', str(declared))
    connection.endheaders()
    zeros = bytes(1024 if speed == 'slow' else 65536)
    try:
        for _ in range(declared // len(zeros)):
            connection.send(zeros)
            if speed == 'slow': time.sleep(0.05)
    except (BrokenPipeError, ConnectionResetError):
        pass
    answer = connection.getresponse()
    return f'{answer.status} {len(answer.read())}'
with concurrent.futures.ThreadPoolExecutor(len(cases)) as threads:
    print(json.dumps(list(threads.map(ask, cases))))
`;
const CURL = ['-sS', '-X', 'POST', '-T', '-', '-H', 'Transfer-Encoding:', '-H', 'Expect:'];

type Case = readonly [url: string, speed: 'slow' | 'full'];

interface Client {
  readonly program: string;
  /** Resolves to status and length of each answer. */
  readonly ask: (cases: readonly Case[]) => Promise<readonly string[]>;
}

const declared = String(DECLARED_BYTES);

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args);
  let text = '';
  for (const output of [child.stdout, child.stderr])
    output.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
  await new Promise((resolve) => child.once('close', resolve));
  return text;
}

function scripted(program: string, flag: string, script: string): Client {
  return {
    program,
    async ask(cases) {
      const text = await outputOf(program, [flag, script, JSON.stringify(cases), declared]);
      return text.startsWith('[') ? JSON.parse(text) : [text];
    },
  };
}

function askByCurl([url, speed]: Case): Promise<string> {
  return outputOf('sh', [
    '-c',
    'curl "$@" < /dev/zero',
    'curl',
    ...CURL,
    ...['-H', `Content-Length: ${declared}`, '-o', '/dev/null', '-w', '%{http_code} %{size_download}'],
    ...(speed === 'slow' ? ['--limit-rate', '20k'] : []),
    url,
  ]);
}

const CLIENTS: Readonly<Record<string, Client>> = {
  curl: { program: 'sh', ask: (cases) => Promise.all(cases.map(askByCurl)) },
  'node:http': scripted(process.execPath, '-e', VIA_NODE),
  undici: scripted(process.execPath, '-e', VIA_UNDICI),
  Python: scripted('python3', '-c', VIA_PYTHON),
};

for (const [name, client] of Object.entries(CLIENTS)) {
  const skip = client.program === process.execPath ? false : lacking(name);
  // covers S47
  t.test(`unread body: ${name}, slow and at full speed, sees every answer`, { skip }, async (t) => {
    const { url } = start(t);
    const cases = [
      ['/whole', '413 50'],
      ['/upload', '413 50'],
      ['/nothing', '404 45'],
      ['/long', `200 ${LONG.length}`],
      ['/sized', `200 ${LONG.length}`],
    ].flatMap(([path = '', expected]) =>
      (['slow', 'full'] as const).map((speed) => [path, speed, expected] as const),
    );
    const answers = await client.ask(cases.map(([path, speed]) => [`${url}${path}`, speed]));
    const found = answers.map((answer, at) => [...(cases[at]?.slice(0, 2) ?? []), answer]);
    t.same(found, cases);
  });
}
