/** The sandbox as a running thing: its thread, its HTTP face, chat, faults, and kill -9. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import workerThreads from 'node:worker_threads';
import t, { type Test } from 'tap';
import { closeAfter } from '../../kit/close-after.ts';
import { sendHttp } from '../../kit/http.ts';
import { TIED } from '../../kit/launch.ts';
import { SANDBOX_ERRORS } from '../../src/sandbox/errors.ts';
import { createModules } from '../../src/sandbox/modules.ts';
import { FAULT_MODES } from '../../src/sandbox/server.ts';
import { type RunningSandbox, startSandbox } from '../../src/sandbox/start.ts';

t.setTimeout(120_000);

interface Answer {
  status: number;
  body: { result?: Record<string, unknown>; error?: { code: number; message: string } };
}

async function dataPath(test: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sandbox-'));
  test.teardown(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function start(test: Test, folder?: string): Promise<RunningSandbox> {
  return closeAfter(test, await startSandbox({ dataPath: folder ?? (await dataPath(test)) }));
}

async function call(
  url: string,
  crm?: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(url, {
    ...(body === undefined
      ? {}
      : { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) }),
    headers: {
      ...(crm === undefined ? {} : { 'x-crm': crm }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
  });
  return { status: response.status, body: (await response.json()) as Answer['body'] };
}

/** The answer to a call that succeeds. */
const done = (result: object) => ({ status: 200, body: { result } });
const refusal = (status: number, code: number) => ({ status, body: { error: { code } } });

t.test(
  'sign-up: wallet and chat know both users at once, and modules that are not served keep nothing',
  async (t) => {
    const folder = await dataPath(t);
    const sandbox = await start(t, folder);
    for (const userId of ['11', '12', '11']) sandbox.signedUp(userId);
    const body = { currency: 'DEMO', amount: '1.00', toUserId: '12' };
    const paid = await call(`${sandbox.modules.wallet}/wallet/v1/transfers/create`, '11', body);
    t.match(paid, done({ partnerInfo: '12' }));
    const write = (userId: string) =>
      call(`${sandbox.modules.chat}/chat/v1/chats/create_private`, '11', { userId });
    t.equal((await write('12')).status, 200);
    t.match(await write('13'), refusal(404, 2207));
    await sandbox.close();
    const log = await readFile(join(folder, 'sandbox', 'log.jsonl'), 'utf8');
    t.equal(log.split('"opened"').length - 1, 2, 'each account is opened once');
    const elsewhere = await dataPath(t);
    const chatAlone = await startSandbox({ dataPath: elsewhere, modules: ['chat'] });
    chatAlone.signedUp('11');
    await call(`${chatAlone.modules.chat}/chat/v1/chats/list`, '11');
    await chatAlone.close();
    t.notMatch(await readFile(join(elsewhere, 'sandbox', 'log.jsonl'), 'utf8'), '"wallet"');
  },
);

t.test('docs/sandbox.md: names every endpoint, error code and fault mode of the sandbox', async (t) => {
  const page = await readFile(new URL('../../../docs/sandbox.md', import.meta.url), 'utf8');
  const endpoints = [...createModules().byName.values()].flatMap((module) => module.endpoints);
  const names = [
    ...endpoints.map(({ method, path }) => `${method} ${path}`),
    ...Object.values(SANDBOX_ERRORS).map(({ code, status }) => `${code} (${status})`),
    ...FAULT_MODES.map((mode) => `\`${mode}\``),
  ];
  t.same(
    names.filter((name) => !page.includes(name)),
    [],
  );
});

t.test('sandbox: serves its modules under both kinds of address, and nothing else', async (t) => {
  const sandbox = await start(t);
  for (const base of [sandbox.url, sandbox.modules.wallet]) {
    t.match(
      await call(`${base}/wallet/v1/balance/get?currency=DEMO`, '7'),
      done({ balances: [{ balance: '1000.00' }] }),
    );
  }
  const { status } = await call(`${sandbox.modules.chat}/wallet/v1/info/get`, '7');
  t.equal(status, 404, 'not through another module');
  const unknown = '/ /wallet /bank/v1/x/y /at/bank/bank/v1/x // /events /sandbox/v1/nothing'.split(' ');
  for (const path of unknown) t.equal((await call(`${sandbox.url}${path}`, '7')).status, 404, path);
  t.match(await call(`${sandbox.modules.wallet}/events`), done({ events: [] }));
  t.match(await call(`${sandbox.url}/wallet/v1/info/get`), refusal(401, 2001));
});

t.test('sandbox: bodies that are no JSON object, too large or of another type are refused', async (t) => {
  const { url } = await start(t);
  const path = `${url}/wallet/v1/transfers/create`;
  for (const body of ['{', '[]', '"x"', 'null', '1']) {
    t.match(await call(path, '7', body), refusal(400, 2002), body);
  }
  t.equal((await call(path, '7', `"${'x'.repeat(64 * 1024)}"`)).status, 413);
  t.equal((await call(path, '7', '{}', { 'content-type': 'text/plain' })).status, 415);
  t.match(await call(path, '7', '{"__proto__":{"currency":"DEMO"}}'), { body: { error: { code: 2101 } } });
});

// covers S35
t.test('sandbox: a foreign Host is refused, so that no web page reads the outbox', async (t) => {
  const { url } = await start(t);
  const { status } = await sendHttp(`${url}/sandbox/v1/outbox`, { headers: { host: 'evil.example' } });
  t.equal(status, 403);
});

t.test('chat: all users are in the lobby, a personal chat is closed to others', async (t) => {
  const { url } = await start(t);
  const { body } = await call(`${url}/chat/v1/chats/list`, '7');
  const chats = body.result?.['chats'] as { id: string; kind: string }[];
  t.match(chats, [{ id: '1', kind: 'lobby' }, { kind: 'personal' }]);
  const personal = chats[1]?.id ?? '';
  const send = (crm: string, message: unknown): Promise<Answer> =>
    call(`${url}/chat/v1/messages/send`, crm, message);
  t.match(await send('7', { chatId: personal, text: 'mine' }), done({ senderId: '7' }));
  t.match(await send('8', { chatId: personal, text: 'hello' }), refusal(403, 2202));
  t.equal((await call(`${url}/chat/v1/messages/list?chatId=${personal}`, '8')).status, 403);
  t.equal((await call(`${url}/chat/v1/members/list?chatId=${personal}`, '8')).status, 403);
  for (const text of ['one', 'two', 'three']) t.equal((await send('8', { chatId: 1, text })).status, 200);
  const first = await call(`${url}/chat/v1/messages/list?chatId=1&limit=2`, '7');
  t.match(first.body.result, { messages: [{ text: 'three' }, { text: 'two' }] });
  const before = first.body.result?.['next'];
  const second = await call(`${url}/chat/v1/messages/list?chatId=1&before=${before}`, '7');
  t.match(second.body.result, { messages: [{ text: 'one' }], next: null });
  const events = await call(`${url}/events?module=chat`);
  t.match(events.body.result, {
    events: [{ crmId: '7', type: 'NewChatMessage', data: { text: 'mine' } }, { crmId: undefined }, {}, {}],
  });
});

t.test('chat: one-time codes reach the outbox, from the gateway itself only', async (t) => {
  const folder = await dataPath(t);
  const sandbox = await start(t, folder);
  const path = `${sandbox.url}/chat/v1/codes/deliver`;
  const code = { channel: 'phone', address: '+491701234567', code: '12345678' };
  t.equal((await call(path, undefined, code)).status, 200);
  t.equal((await call(path, '7', code)).status, 403, 'not for a user');
  const forCode = await call(path, undefined, code, { 'x-scopes': 'Capability:chat' });
  t.equal(forCode.status, 403, 'not for a code');
  for (const bad of [{ channel: 'fax' }, { address: '' }, { code: undefined }])
    t.equal((await call(path, undefined, { ...code, ...bad })).status, 400, JSON.stringify(bad));
  await sandbox.close();
  const again = await start(t, folder);
  t.match(await call(`${again.url}/sandbox/v1/outbox`), { body: { result: { deliveries: [code] } } });
});

t.test('faults: each mode fails its own module alone, until ok', async (t) => {
  const { url } = await start(t);
  const fault = (body: unknown): Promise<Answer> => call(`${url}/sandbox/v1/fault`, undefined, body);
  const wallet = (): Promise<Answer> => call(`${url}/wallet/v1/balance/get`, '7');
  for (const bad of [
    {},
    { module: 'bank', mode: 'down' },
    { module: 'wallet', mode: 'up' },
    { module: 'wallet', mode: 'slow', delayMs: -1 },
  ]) {
    t.equal((await fault(bad)).status, 400, JSON.stringify(bad));
  }
  await fault({ module: 'wallet', mode: 'down' });
  await t.rejects(wallet(), 'down');
  t.equal((await call(`${url}/chat/v1/chats/list`, '7')).status, 200, 'chat is well');
  await fault({ module: 'wallet', mode: 'error' });
  t.match(await wallet(), refusal(500, 2008));
  await fault({ module: 'wallet', mode: 'cut' });
  await t.rejects(wallet(), 'cut');
  await fault({ module: 'wallet', mode: 'slow', delayMs: 60 });
  const startMs = performance.now();
  t.equal((await wallet()).status, 200);
  t.ok(performance.now() - startMs >= 55);
  await fault({ module: 'wallet', mode: 'slow' });
  await t.rejects(
    fetch(`${url}/wallet/v1/info/get`, { headers: { 'x-crm': '7' }, signal: AbortSignal.timeout(50) }),
    'slow',
  );
  await fault({ module: 'wallet', mode: 'ok' });
  t.equal((await wallet()).status, 200);
});

t.test('sandbox: a log that is damaged refuses the start with its line', async (t) => {
  const folder = await dataPath(t);
  await (await startSandbox({ dataPath: folder })).close();
  const log = 'nonsense\n{"module":"wallet","type":"x","tick":"1"}\n';
  await writeFile(join(folder, 'sandbox', 'log.jsonl'), log);
  await t.rejects(startSandbox({ dataPath: folder }), /line 1 is damaged/);
});

t.test('sandbox: a start whose module key cannot be read leaves no thread', async (t) => {
  const folder = await dataPath(t);
  await mkdir(join(folder, 'sandbox', 'module-key'), { recursive: true });
  const { Worker } = workerThreads;
  let made = 0;
  workerThreads.Worker = class extends Worker {
    constructor(...of: ConstructorParameters<typeof Worker>) {
      super(...of);
      made += 1;
    }
  };
  syncBuiltinESMExports();
  t.teardown(() => {
    workerThreads.Worker = Worker;
    syncBuiltinESMExports();
  });
  await t.rejects(startSandbox({ dataPath: folder }), { code: 'EISDIR' });
  t.equal(made, 0);
});

t.test('sandbox: a log that books on an unopened account refuses the start', async (t) => {
  const folder = await dataPath(t);
  const sandbox = await start(t, folder);
  await call(`${sandbox.url}/wallet/v1/info/get`, '7');
  await sandbox.close();
  const path = join(folder, 'sandbox', 'log.jsonl');
  const opened = JSON.parse(await readFile(path, 'utf8'));
  const orphan = { ...opened, type: 'withdrawn', userId: '9', currency: 'DEMO', minor: '1', feeMinor: '0' };
  await writeFile(path, `${JSON.stringify(orphan)}\n`);
  await t.rejects(startSandbox({ dataPath: folder }), /unopened account 9/);
});

/**
 * The lines that a process prints, each kept until it is asked for. One that is asked for and never comes is an error
 * that says how the process ended: waiting for it would leave nothing that keeps the test alive.
 */
function linesOf(child: ChildProcess & { stdout: Readable }): { next: () => Promise<string> } {
  const printed: string[] = [];
  let ended: Error | undefined;
  let wake = (): void => undefined;
  createInterface(child.stdout).on('line', (line) => {
    printed.push(line);
    wake();
  });
  // After the last of its output, unlike `exit`.
  child.once('close', (code, signal) => {
    ended = new Error(`the process ended with ${signal ?? `code ${code}`} after ${printed.length} lines`);
    setImmediate(() => wake());
  });
  let asked = 0;
  return {
    async next() {
      const index = asked;
      asked += 1;
      for (;;) {
        const line = printed[index];
        if (line !== undefined) return line;
        if (ended !== undefined) throw ended;
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

/** A process that only runs the sandbox, to be killed. */
async function startProcess(
  test: Test,
  folder: string,
  shellPrefix = '',
): Promise<{ child: ChildProcess; url: string; crash: Promise<string> }> {
  const start = new URL('../../src/sandbox/start.js', import.meta.url).href;
  const script = `import { startSandbox } from ${JSON.stringify(start)};
const sandbox = await startSandbox({ dataPath: process.argv[2] });
process.stdout.write(sandbox.url + '\\n');
const error = await sandbox.crashed;
process.stdout.write('crashed ' + error.code + '\\n');`;
  const file = join(folder, 'run.mjs');
  await writeFile(file, script);
  const child = spawn(
    '/bin/sh',
    // The test runner loads itself into every child and writes files there, which a limit on files would hit.
    ['-c', `unset NODE_OPTIONS; ${shellPrefix} exec "$0" "$@"`, process.execPath, ...TIED, file, folder],
    {
      env: { PATH: process.env['PATH'] ?? '' },
      stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    },
  );
  test.teardown(() => child.kill('SIGKILL'));
  const lines = linesOf(child as ChildProcess & { stdout: Readable });
  const url = await lines.next();
  const crash = lines.next();
  // A test that does not wait for it kills the process.
  crash.catch(() => {});
  return { child, url, crash };
}

t.test(
  'sandbox: a disk that takes no more ends the thread, is reported, and loses nothing acknowledged',
  async (t) => {
    const folder = await dataPath(t);
    // Files of this process end at 4 blocks of 512 bytes: a write beyond fails with EFBIG, in the middle of a line.
    const { url, crash } = await startProcess(t, folder, 'ulimit -f 4;');
    await call(`${url}/wallet/v1/info/get`, '8');
    const body = { currency: 'GATE', amount: '1', toUserId: '8' };
    let acknowledged = 0;
    try {
      for (; acknowledged < 100; acknowledged += 1)
        t.equal((await call(`${url}/wallet/v1/transfers/create`, '7', body)).status, 200);
    } catch (error) {
      t.ok(error instanceof TypeError, 'the connection was closed without an answer');
    }
    t.equal(await crash, 'crashed EFBIG');
    t.ok(acknowledged > 0 && acknowledged < 100);
    const sandbox = await start(t, folder);
    t.match(await call(`${sandbox.url}/wallet/v1/balance/get?currency=GATE`, '8'), {
      body: { result: { balances: [{ balance: `${1000 + acknowledged}.00000000` }] } },
    });
  },
);

t.test('sandbox: kill -9 under load loses no acknowledged transfer and books none twice', async (t) => {
  const folder = await dataPath(t);
  let acknowledged = 0;
  let sent = 0;
  for (let round = 0; round < 3; round += 1) {
    const { child, url } = await startProcess(t, folder);
    await call(`${url}/wallet/v1/info/get`, '8');
    const exited = new Promise((resolve) => child.once('exit', resolve));
    const client = async (): Promise<void> => {
      for (;;) {
        sent += 1;
        const body = { currency: 'GATE', amount: '0.00000001', toUserId: '8' };
        const answer = await call(`${url}/wallet/v1/transfers/create`, '7', body);
        if (answer.status === 200) acknowledged += 1;
        if (acknowledged >= (round + 1) * 100) child.kill('SIGKILL');
      }
    };
    await Promise.allSettled(Array.from({ length: 8 }, client));
    await exited;
  }
  const sandbox = await start(t, folder);
  const { body } = await call(`${sandbox.url}/wallet/v1/balance/get?currency=GATE`, '8');
  const [entry] = (body.result?.['balances'] ?? []) as { balance: string }[];
  const moved = Number(BigInt((entry?.balance ?? '').replace('.', '')) - 100_000_000_000n);
  t.ok(moved >= acknowledged && moved <= sent, `${acknowledged} acknowledged, ${moved} booked, ${sent} sent`);
  t.ok(acknowledged >= 300);
});
