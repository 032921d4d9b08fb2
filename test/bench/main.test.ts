/** However a run ends, nothing that it started is left: what runs longest holds its output open. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { plainEnvironment } from '../../kit/launch.ts';

t.setTimeout(120_000);

const MAIN = fileURLToPath(new URL('../../bench/main.js', import.meta.url));

/** Started, and measuring. */
async function measuring(t: Test): Promise<{ readonly child: ChildProcess; said(): string }> {
  const child = spawn(process.execPath, [MAIN, 'limiter', '--rounds', '300', '--duration', '0.15'], {
    env: plainEnvironment(),
  });
  t.teardown(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (said += text));
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => text.includes('round 1 of') && resolve());
    child.once('exit', () => reject(new Error('it ended')));
  });
  return { child, said: () => said };
}

t.test('main: an interrupt ends the run, finished results are reported', async (t) => {
  const { child, said } = await measuring(t);
  child.kill('SIGTERM');
  // npm forwards a signal that the terminal sends to the whole group.
  child.kill('SIGINT');
  const [code] = await once(child, 'close');
  t.equal(code, 130);
  t.match(said(), /FAILED: interrupted/);
});

t.test('main: killed, the suite ends by itself', async (t) => {
  const { child, said } = await measuring(t);
  child.kill('SIGKILL');
  const [code, signal] = await once(child, 'close');
  t.same([code, signal], [null, 'SIGKILL']);
  t.match(said(), /FAILED: interrupted/, 'the suite itself was interrupted');
});

t.test('main: invalid options end with the exit code of the suite', async (t) => {
  const child = spawn(process.execPath, [MAIN, 'nonsense'], { env: plainEnvironment(), stdio: 'ignore' });
  const [code] = await once(child, 'close');
  t.equal(code, 64);
});
