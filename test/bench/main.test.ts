/** However a run ends, nothing that it started is left: what runs longest holds its output open. */
import t, { type Test } from 'tap';
import { type Suite, suite } from './fixtures/bench.ts';

t.setTimeout(120_000);

/** Started, and measuring. */
async function measuring(t: Test): Promise<Suite> {
  const run = suite('limiter', '--rounds', '300', '--duration', '0.15');
  t.teardown(() => run.child.kill('SIGKILL'));
  await new Promise<void>((resolve, reject) => {
    run.child.stderr?.on('data', (text: string) => text.includes('round 1 of') && resolve());
    run.child.once('exit', () => reject(new Error('it ended')));
  });
  return run;
}

t.test('main: an interrupt ends the run, finished results are reported', async (t) => {
  const { child, ended } = await measuring(t);
  child.kill('SIGTERM');
  // npm forwards a signal that the terminal sends to the whole group.
  child.kill('SIGINT');
  t.match(await ended, { code: 130, stdout: /FAILED: interrupted/ });
});

t.test('main: killed, the suite ends by itself', async (t) => {
  const { child, ended } = await measuring(t);
  child.kill('SIGKILL');
  t.match(await ended, { code: null, stdout: /FAILED: interrupted/ }, 'the suite itself was interrupted');
  t.equal(child.signalCode, 'SIGKILL');
});

t.test('main: invalid options end with the exit code of the suite', async (t) => {
  t.equal((await suite('nonsense').ended).code, 64);
});
