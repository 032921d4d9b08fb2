/**
 * The length of the path of a request: functions of `src` that the main thread calls for one warm request, and the files that
 * they are in. The ceilings fall when a path becomes shorter, and rise only for a reason.
 */
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { bearerOf, callTool, expectOk, newKey, request, rpc, signUpAgent } from '../../../kit/agent.ts';
import { listenFor } from '../../../kit/http.ts';
import { launchFor, NO_FILE_LIMITS } from '../../../kit/launch.ts';
import { initUpload, uploadPart } from '../../../kit/upload-client.ts';

t.setTimeout(120_000);

const RECORDER = fileURLToPath(new URL('./call-recorder.cjs', import.meta.url));
/** Before they are recorded, the caches of a request's path are filled by so many. */
const WARM = 3;
/** A function counts if it is called for each of these, and not without a request: what a timer calls is not part of the path. */
const RECORDED = 8;
/** All functions of timers are known when so many readings in a row, of a sixth of a second each, find no further one. */
const IDLE = 8;
const MODULE_KEY = 'k'.repeat(40);
/** Answer of the module, for a tool and for the message of a file. */
const ANSWER = JSON.stringify({ result: { fileId: '7', chatId: '9', balance: '1000.00000000' } });
const CHUNK_BYTES = 256 * 1024;

/**
 * Counted by V8's precise coverage, each function once however often it is called: closures, accessors, and the initializers of a
 * class's fields. Functions of libraries and of other threads do not count. Each path has room for the three functions by which the
 * idle connections to modules are swept: their timer may fall into any request. A chunk commits, and so has room for the six by
 * which the journal measures its space once in many commits. One function of each path asserts the rules of the runtime.
 */
const CEILINGS = {
  'tools/call': { functions: 450, files: 124 },
  'chunk of a v1 upload': { functions: 443, files: 110 },
  'tools/list': { functions: 243, files: 74 },
  get_info: { functions: 168, files: 59 },
} as const;
type Name = keyof typeof CEILINGS;

/** Resolves with the functions that each of `RECORDED` requests calls, as `file name offset`. */
type Record = (send: () => Promise<unknown>) => Promise<readonly string[]>;

/** A module of its own: those of the sandbox are polled for events all the time. */
async function startModule(test: Test): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(ANSWER);
  });
  return (await listenFor(test, server)).url;
}

async function start(test: Test) {
  const module = { url: await startModule(test), key: MODULE_KEY };
  const gateway = await launchFor(test, {
    configuration: { Settings: NO_FILE_LIMITS, Modules: { wallet: module, chat: module } },
    nodeArgs: ['--require', RECORDER],
  });
  // The journal is read once after a start, in the background.
  await gateway.said(/journal read/);
  let turns = 0;
  const signalled = async (said: string): Promise<string> => {
    gateway.process.kill('SIGUSR2');
    const line = new RegExp(`^${said} ${turns}: (.*)\\n`, 'm');
    await gateway.said(line);
    return line.exec(gateway.output().stderr)?.[1] ?? '';
  };
  const calledFor = async (send: () => Promise<unknown>): Promise<readonly string[]> => {
    turns += 1;
    await signalled('recording');
    await send();
    return JSON.parse(await signalled('called')) as string[];
  };
  const background = new Set<string>();
  for (let quiet = 0; quiet < IDLE; quiet += 1) {
    const before = background.size;
    for (const each of await calledFor(async () => undefined)) background.add(each);
    if (background.size > before) quiet = 0;
  }
  const record: Record = async (send) => {
    for (let sent = 0; sent < WARM; sent += 1) await send();
    let common = new Set<string>();
    for (let sent = 0; sent < RECORDED; sent += 1) {
      const called = await calledFor(send);
      common = new Set(called.filter((each) => sent === 0 || common.has(each)));
    }
    return [...common].filter((each) => !background.has(each));
  };
  return { url: gateway.url, record };
}

/** Fails with the functions by file, so that the one that is new can be found. */
function requireShort(test: Test, name: Name, called: readonly string[]): void {
  const files = new Set(called.map((each) => each.slice(0, each.indexOf(' '))));
  const { functions: functionsMax, files: filesMax } = CEILINGS[name];
  test.comment(`${name}: ${called.length} functions in ${files.size} files`);
  const isShort = called.length <= functionsMax && files.size <= filesMax;
  test.ok(isShort, `${name}: at most ${functionsMax} functions in ${filesMax} files`, { called });
  test.ok(
    called.some((each) => each.startsWith('io/http/')),
    `${name}: the path was recorded`,
  );
}

t.test('called functions: a warm request calls no more than its ceiling', async (t) => {
  const { url, record } = await start(t);
  const key = newKey();
  const person = await signUpAgent(url, key);
  const bearer = await bearerOf(url, key);
  const { cookie } = person;

  const call = await record(async () =>
    expectOk('tools/call', await callTool(url, bearer, 'wallet_get_balance')),
  );
  requireShort(t, 'tools/call', call);

  const message = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
  const list = await record(async () => expectOk('tools/list', await rpc(url, bearer, message)));
  requireShort(t, 'tools/list', list);

  const info = await record(async () =>
    expectOk('get_info', await request(`${url}/auth/v1/get_info`, { headers: { Cookie: cookie } })),
  );
  requireShort(t, 'get_info', info);

  const bytes = new Uint8Array((WARM + RECORDED + 1) * CHUNK_BYTES).fill(7);
  expectOk('init_upload', await initUpload({ url, cookie }, bytes));
  let at = 0;
  const chunk = await record(async () => {
    expectOk('upload_part', await uploadPart({ url, cookie }, bytes, at));
    at += 1;
  });
  requireShort(t, 'chunk of a v1 upload', chunk);
});
