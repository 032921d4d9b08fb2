/** No program outlives the test that started it, however the test ended. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { launch, plainEnvironment } from '../../kit/launch.ts';
import { until } from '../support/until.ts';

const RUN = new URL('../suites/runner/run.js', import.meta.url).href;

/** A test process that starts a gateway, prints its address and never ends. */
async function startOwner(t: Test): Promise<{ port: number; pid: number; kill: () => Promise<unknown> }> {
  const script = `import { launch } from ${JSON.stringify(new URL('../../kit/launch.js', import.meta.url))};
const { url, process: { pid } } = await launch({ configuration: {}, dataPath: ${JSON.stringify(`${t.testdir({})}/data`)} });
process.stdout.write(JSON.stringify({ port: Number(new URL(url).port), pid }) + '\\n');`;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: plainEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.teardown(() => owner.kill('SIGKILL'));
  const [line] = (await once(createInterface({ input: owner.stdout }), 'line')) as [string];
  const exited = once(owner, 'exit');
  return {
    ...(JSON.parse(line) as { port: number; pid: number }),
    kill() {
      owner.kill('SIGKILL');
      return exited;
    },
  };
}

function knock(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  return new Promise((resolve) => {
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
  }).then((isOpen) => {
    socket.destroy();
    return isOpen === true;
  });
}

t.test('orphans: a gateway ends when the process that started it is killed', async (t) => {
  const { port, pid, kill } = await startOwner(t);
  t.teardown(() => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  });
  t.equal(await knock(port), true);
  await kill();
  // The time-out of the test is the bound: an orphaned gateway keeps listening.
  await until(async () => !(await knock(port)));
  t.equal(await knock(port), false, 'the port is closed');
});

t.test('orphans: a program tied to its test process still stops cleanly on SIGTERM', async (t) => {
  const gateway = await launch({ configuration: {} });
  t.same(await gateway.stop(), { code: 0, signal: null });
});

/** A program that no pipe ties, started by a test of a suite; both hold the output of the process that runs the suite. */
const SUITE = `import { spawn } from 'node:child_process';
import { endWithParent } from ${JSON.stringify(RUN)};
endWithParent();
spawn('tail', ['-f', '/dev/null'], { stdio: 'inherit' }).once('spawn', () => process.stdout.write('started\\n'));
`;

for (const signal of ['SIGTERM', 'SIGKILL'] as const)
  t.test(`orphans: what tests have started ends with a suite that is cut off with ${signal}`, async (t) => {
    const folder = t.testdir({ 'suite.mjs': SUITE });
    const run = `import { runPlain } from ${JSON.stringify(RUN)}; runPlain(${JSON.stringify(`${folder}/suite.mjs`)});`;
    const owner = spawn(process.execPath, ['--input-type=module', '-e', run], {
      env: plainEnvironment(),
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const closed = once(owner, 'close');
    t.same(await once(createInterface({ input: owner.stdout }), 'line'), ['started']);
    owner.kill(signal);
    await closed;
    t.pass('no process holds the output');
  });
