/** `Secrets.sealKey` on the command line: starts with the key, without it, with another one, with a list. */
import t from 'tap';
import { launch, runToEnd } from '../../kit/launch.ts';
import { runCommand } from '../support/command.ts';

t.setTimeout(120_000);

type Run = typeof runToEnd | typeof runCommand;

// covers S131
t.test('seal key: a journal sealed under a key is served with that key alone', async (t) => {
  const dataPath = `${t.testdir({})}/data`;
  const [one, two] = ['11'.repeat(32), Buffer.alloc(32, 2).toString('base64url')] as const;
  const configuration = { Secrets: { sealKey: 'env:GATEHOUSE_TEST_SEAL' } };
  const start = (environment: Record<string, string>, given: object = configuration) =>
    launch({ dataPath, configuration: given, environment });
  t.equal((await (await start({ GATEHOUSE_TEST_SEAL: one })).stop()).code, 0);
  const refused = async (environment: Record<string, string>, run: Run = runToEnd) => {
    const args = ['--data', dataPath, '--port', '0', '--internal-port', '0'];
    const { code, stderr, stdout } = await run(args, environment);
    t.notMatch(stderr + stdout, two.slice(1), 'no key is printed');
    return [code, stderr.split('\n').filter((line) => line.startsWith('configuration: '))];
  };
  t.same(await refused({}), [
    78,
    ['configuration: Secrets.sealKey: is missing: the API keys of this journal are sealed with it'],
  ]);
  t.same(await refused({ GATEHOUSE_SECRETS_SEAL_KEY: two }), [
    78,
    [
      'configuration: Secrets.sealKey: does not open every API key of this journal: add the key that sealed them to the list',
    ],
  ]);
  t.same(await refused({ GATEHOUSE_SECRETS_SEAL_KEY: two.slice(1) }, runCommand), [
    78,
    ['configuration: Secrets.sealKey.0: is not 32 bytes in base64url or hex'],
  ]);
  const list = { Secrets: { sealKey: ['env:GATEHOUSE_TEST_NEW', 'env:GATEHOUSE_TEST_SEAL'] } };
  const changed = await start({ GATEHOUSE_TEST_NEW: two, GATEHOUSE_TEST_SEAL: one }, list);
  t.equal((await changed.stop()).code, 0);
  t.equal((await (await start({ GATEHOUSE_TEST_SEAL: two })).stop()).code, 0, 'the new key alone');
  const lost = { Secrets: { sealKeyLost: true } };
  t.equal((await (await start({}, lost)).stop()).code, 0, 'sealed keys are abandoned by sealKeyLost');
});
