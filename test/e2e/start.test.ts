/** The ports during a start of the program: connections are refused until everything is ready. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, constants, existsSync, openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { pickPort } from '../../kit/free-port.ts';
import { type Exit, entryOf, plainEnvironment, runToEnd, TIED } from '../../kit/launch.ts';
import { outputOf } from '../../kit/run-sync.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

const HELD_START = fileURLToPath(new URL('../support/preloads/held-start.cjs', import.meta.url));

interface HeldStart {
  readonly port: number;
  readonly internalPort: number;
  readonly child: ChildProcess;
  readonly exited: Promise<Exit>;
  readonly output: () => string;
  said(word: RegExp): Promise<void>;
  goOn(): void;
}

/** A start that waits before it opens the journal. `stdout`: a descriptor in place of a socket of this process. */
async function hold(t: Test, stdout?: number): Promise<HeldStart> {
  const [port, internalPort] = [await pickPort(), await pickPort()];
  const ports = ['--port', String(port), '--internal-port', String(internalPort)];
  // No modules: their threads are a third of a start.
  const folder = t.testdir({ 'gatehouse.json': '{}' });
  const files = ['--config', `${folder}/gatehouse.json`, '--data', `${folder}/data`];
  const args = [...TIED, '--require', HELD_START, entryOf(), ...files, ...ports];
  const child = spawn(process.execPath, args, {
    env: plainEnvironment(),
    stdio: ['ignore', stdout ?? 'pipe', 'pipe', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const streams = [child.stdout, child.stderr].filter((stream) => stream !== null) as Readable[];
  let text = '';
  for (const stream of streams)
    stream.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
    });
  const exited = new Promise<Exit>((resolve) =>
    child.once('close', (code, signal) => resolve({ code, signal })),
  );
  const said = (word: RegExp) =>
    new Promise<void>((resolve, reject) => {
      const look = () => {
        if (word.test(text)) resolve();
      };
      for (const stream of streams) stream.on('data', look);
      exited.then(() => reject(new Error(`it ended: ${text}`)), reject);
      look();
    });
  await said(/held/);
  return {
    port,
    internalPort,
    child,
    exited,
    output: () => text,
    said,
    goOn: () => child.kill('SIGUSR2'),
  };
}

function knock(port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve('open');
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  });
}

// covers S157
t.test(
  'start: both ports refuse connections until the program prints that it listens, and then serve',
  async (t) => {
    const start = await hold(t);
    t.equal(await knock(start.port), 'ECONNREFUSED', 'public');
    t.equal(await knock(start.internalPort), 'ECONNREFUSED', 'internal');
    start.goOn();
    await start.said(/^listening /m);
    for (const port of [start.port, start.internalPort])
      t.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200);
    start.child.kill('SIGTERM');
    t.same(await start.exited, { code: 0, signal: null });
  },
);

/** Starts the program, and closes the only reader of its standard output before it prints. */
const LOSES_READER: Record<string, (t: Test) => Promise<HeldStart>> = {
  async socket(t) {
    const start = await hold(t);
    start.child.stdout?.destroy();
    return start;
  },
  async pipe(t) {
    const path = `${temporaryFolder(t)}/pipe`;
    outputOf('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const writer = openSync(path, 'w');
    const start = await hold(t, writer);
    closeSync(writer);
    closeSync(reader);
    return start;
  },
};

for (const [kind, loseReader] of Object.entries(LOSES_READER))
  t.test(
    `start: a gateway whose standard output is a ${kind} without a reader serves, stops with 0`,
    async (t) => {
      const start = await loseReader(t);
      const started = start.said(/http library loaded/);
      start.goOn();
      await started;
      const { status } = await fetch(`http://127.0.0.1:${start.port}/health`);
      t.equal(status, 200);
      start.child.kill('SIGTERM');
      t.same(await start.exited, { code: 0, signal: null });
      t.notMatch(start.output(), /EPIPE/);
    },
  );

t.test('start: SIGTERM during a start ends the program at once with 0', async (t) => {
  const start = await hold(t);
  start.child.kill('SIGTERM');
  t.same(await start.exited, { code: 0, signal: null });
  t.notMatch(start.output(), /listening/);
});

t.test('start: a port that another program takes during a start ends the program with 69', async (t) => {
  const start = await hold(t);
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(start.port, '127.0.0.1', resolve));
  t.teardown(() => other.close());
  start.goOn();
  t.same(await start.exited, { code: 69, signal: null });
  t.match(start.output(), new RegExp(`cannot listen on 127.0.0.1:${start.port}: the port is taken`));
});

t.test(
  'start: one port for both listeners is refused with 69 before the data folder is created',
  async (t) => {
    const port = String(await pickPort());
    const data = `${t.testdir({})}/data`;
    const { code, stderr } = await runToEnd(['--data', data, '--port', port, '--internal-port', port]);
    t.equal(code, 69);
    t.match(stderr, /the port is taken/);
    t.notOk(existsSync(data));
  },
);
