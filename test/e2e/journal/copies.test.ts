/** Copies of a journal: their receipts, and backups and restores that are killed on the way. */
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { logIn, type Person, signUp } from '../../../kit/agent.ts';
import { entryOf, launch, plainEnvironment, runToEnd, TIED } from '../../../kit/launch.ts';
import { refusedStart, runCommand } from '../../support/command.ts';
import { count } from '../../support/depth.ts';

t.setTimeout(300_000);

const KILLS = count(8);
/** No modules: their threads are a third of a start. */
const configuration = {};

const root = t.testdir({});
const data = join(root, 'data');
const earlier = join(root, 'earlier');
const backup = join(root, 'backup');
let person: Person;

/** A backup, one more account, and another backup. */
t.before(async () => {
  const gateway = await launch({ dataPath: data, configuration });
  await signUp(gateway.url);
  await runCommand(['backup', earlier, '--data', data]);
  person = await signUp(gateway.url);
  const { code, stderr } = await runToEnd(['backup', backup, '--data', data]);
  if (code !== 0) throw new Error(stderr);
  await gateway.stop();
});

const receiptOf = (folder: string) =>
  JSON.parse(readFileSync(join(folder, 'receipt.json'), 'utf8')) as Record<string, unknown>;

t.test('backup: the folder holds the journal and its receipt, which check confirms', async (t) => {
  t.same(readdirSync(backup).sort(), ['data.mdb', 'receipt.json']);
  const { rows, lastGroup, time } = receiptOf(backup);
  t.ok(Number(lastGroup) > Number(receiptOf(earlier)['lastGroup']), 'groups count on');
  t.match(time, /^20\d\d-\d\d-\d\dT[0-9:.]+Z$/);
  const { code, stdout } = await runCommand(['check', '--data', backup]);
  t.equal(code, 0);
  t.match(stdout, new RegExp(`: ${rows} rows in 30 tables, 0 findings\n$`));
});

t.test('restore: names rows, newest group and the time of the backup', async (t) => {
  const { rows, lastGroup, time } = receiptOf(backup);
  const target = join(root, 'restored');
  const { code, stdout } = await runCommand(['restore', backup, '--data', target]);
  t.equal(code, 0);
  t.match(stdout, `${rows} rows, newest group ${lastGroup}; the backup of ${time}\n`);
  t.notOk(existsSync(join(target, 'receipt.json')), 'a folder that is to be served has none');
  t.notOk(existsSync(join(target, 'unfinished')));
});

// covers S147
t.test(
  'receipt: a journal of another backup in its place is refused by restore and found by check',
  async (t) => {
    const mixed = join(root, 'mixed');
    mkdirSync(mixed);
    copyFileSync(join(earlier, 'data.mdb'), join(mixed, 'data.mdb'));
    copyFileSync(join(backup, 'receipt.json'), join(mixed, 'receipt.json'));
    const says =
      /it has \d+ rows, newest group \d+, and its receipt of 20.* names \d+ rows, newest group \d+/;
    t.match(await runCommand(['check', '--data', mixed]), { code: 70, stdout: says });
    const target = join(root, 'of-mixed');
    t.match(await runCommand(['restore', mixed, '--data', target]), { code: 70, stderr: says });
    t.notOk(existsSync(join(target, 'data.mdb')));
    writeFileSync(join(mixed, 'receipt.json'), '{}');
    t.match(await runCommand(['restore', mixed, '--data', target]), {
      code: 70,
      stderr: /receipt .* cannot be read/,
    });
  },
);

t.test('receipt: a folder without one, of an earlier version, is restored and served', async (t) => {
  const old = join(root, 'old');
  mkdirSync(old);
  copyFileSync(join(backup, 'data.mdb'), join(old, 'data.mdb'));
  const target = join(root, 'of-old');
  t.match(await runCommand(['restore', old, '--data', target]), { code: 0, stdout: /has no receipt/ });
});

t.test('receipt: a gateway that serves the folder of a backup removes it', async (t) => {
  const served = join(root, 'served');
  mkdirSync(served);
  for (const name of ['data.mdb', 'receipt.json']) copyFileSync(join(backup, name), join(served, name));
  const gateway = await launch({ dataPath: served, configuration });
  t.equal((await logIn(gateway.url, person.key)).status, 200);
  t.notOk(existsSync(join(served, 'receipt.json')));
  await gateway.stop();
  t.equal((await runCommand(['check', '--data', served])).code, 0);
});

/** Kills a command a while after its copy has begun: `looks` ticks of the event loop. */
async function killed(args: readonly string[], target: string, looks: number): Promise<void> {
  const child = spawn(process.execPath, [...TIED, entryOf(), ...args], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    env: plainEnvironment(),
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  let left = looks;
  const look = () => {
    const hasBegun = left < looks || existsSync(join(target, 'unfinished'));
    if (hasBegun) left -= 1;
    if (left <= 0) child.kill('SIGKILL');
    else if (child.exitCode === null && hasBegun) setImmediate(look);
    // Its start is longer than its copy.
    else if (child.exitCode === null) setTimeout(look, 1);
  };
  look();
  await ended;
}

// covers S147
t.test('backup: one that is killed leaves no journal, or a whole one with its receipt', async (t) => {
  let cut = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const target = join(root, `backup-${kill}`);
    const args = ['backup', target, '--data', data];
    await killed(args, target, 1 + (kill * 20_000) / KILLS);
    if (!existsSync(join(target, 'data.mdb'))) {
      cut += 1;
      const says = /holds no journal: a backup or restore into it was cut off/;
      t.match(await runCommand(['restore', target, '--data', join(root, 'none')]), {
        code: 70,
        stderr: says,
      });
      t.match(await runCommand(args), { code: 0, stderr: '' }, 'the next one begins anew');
    }
    t.match(await runCommand(['check', '--data', target]), { code: 0 });
    t.same(
      readdirSync(target)
        .filter((name) => name !== 'unfinished')
        .sort(),
      ['data.mdb', 'receipt.json'],
    );
  }
  t.ok(cut > 0, `${cut} of ${KILLS} were cut off`);
});

// covers S147
t.test('restore: after one that is killed no start makes an empty journal', async (t) => {
  const { rows } = receiptOf(backup);
  let cut = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const target = join(root, `data-${kill}`);
    const args = ['restore', backup, '--data', target];
    await killed(args, target, 1 + (kill * 20_000) / KILLS);
    if (!existsSync(join(target, 'data.mdb'))) {
      cut += 1;
      const says = /a restore into .* was cut off; run it again, or remove/;
      t.match(await refusedStart(target), { code: 70, stderr: says });
      t.match(await runCommand(args), { code: 0, stderr: '' }, 'the next one begins anew');
    }
    const { code, stdout } = await runCommand(['check', '--data', target]);
    t.equal(code, 0);
    t.match(stdout, `: ${rows} rows in 30 tables, 0 findings\n`);
    if (kill < KILLS - 1) continue;
    const gateway = await launch({ dataPath: target, configuration });
    t.equal((await logIn(gateway.url, person.key)).status, 200);
    t.same(await gateway.stop(), { code: 0, signal: null });
  }
  t.ok(cut > 0, `${cut} of ${KILLS} were cut off`);
});
