/** The commands `cluster` on the command line, over the embedded PostgreSQL. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { request, signUp } from '../../../kit/agent.ts';
import { launch, runToEnd } from '../../../kit/launch.ts';
import { fetchState } from '../../../src/bootstrap/cluster/replica.ts';
import { Checkpoints } from '../../../src/io/cluster/checkpoints.ts';
import { type PgFixture, pgTest, SECRET } from '../../support/cluster/pg-fixture.ts';
import { runCommand } from '../../support/command.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

t.setTimeout(240_000);

function fileOf(folder: string, url: string): string {
  const Cluster = { url, name: 'a', secret: SECRET.toString('hex'), sharedFiles: true };
  return JSON.stringify({ Cluster, LocalFileStoragePath: join(folder, 'files') });
}

async function openCluster(t: Test, fixture: PgFixture) {
  const folder = temporaryFolder(t);
  const config = join(folder, 'gatehouse.json');
  writeFileSync(config, fileOf(folder, fixture.url));
  const given = (args: readonly string[]) => ['cluster', ...args, '--config', config];
  const program = (...args: string[]) => runToEnd(given(args));
  // The program itself shows an end with 70, and one with 0.
  const run = (...args: string[]) => runCommand(given(args));
  return { ...fixture, folder, program, run };
}

t.test('cluster commands: bad usage ends with 64 and one line', async (t) => {
  const wrong = [['frobnicate'], [], ['export'], ['forget'], ['forget', '--json'], ['status', 'x']];
  for (const args of wrong) {
    const { code, stdout, stderr } = await runCommand(['cluster', ...args]);
    t.same(
      { code, stdout, lines: stderr.split('\n').length },
      { code: 64, stdout: '', lines: 2 },
      args.join(' '),
    );
  }
});

t.test('cluster commands: without the section Cluster they end with 78', async (t) => {
  const config = join(temporaryFolder(t), 'gatehouse.json');
  writeFileSync(config, '{}');
  const end = { code: 78, stderr: 'configuration: Cluster: is needed for the commands cluster\n' };
  for (const args of [['status'], ['import'], ['recover'], ['forget', 'a'], ['export', 'x']])
    t.match(await runCommand(['cluster', ...args, '--config', config]), end);
});

pgTest(
  'cluster commands: status of a database without a log, or of none, ends with 70',
  async (t, fixture) => {
    const { program, folder } = await openCluster(t, fixture);
    t.match(await program('status'), {
      code: 70,
      stderr: 'gatehouse: the database of Cluster.url holds no log\n',
    });
    const config = join(folder, 'away.json');
    writeFileSync(config, fileOf(folder, `socket:${folder}?db=x`));
    t.match(await runCommand(['cluster', 'status', '--config', config]), {
      code: 70,
      stderr: /^gatehouse: the database of Cluster\.url cannot be used: .*ENOENT.*\n$/,
    });
  },
);

pgTest(
  'cluster commands: status shows nodes in a table and as JSON; forget frees a name',
  async (t, fixture) => {
    const { run, connect } = await openCluster(t, fixture);
    let figures = { links: 0, turnsRefused: 0, turnsThrown: 0 };
    const log = await connect({ figures: () => figures });
    const { node, incarnation } = await log.enter('node-1');
    const write = (nodeSeq: number) => ({ node, incarnation, nodeSeq, body: Buffer.from('body') });
    await log.join(write(1));
    await log.append(write(2));
    const table = await run('status');
    t.match(table.stdout, /^log [0-9a-f-]{36}, layout 1: row 2, 0 MiB\nno checkpoint\n/);
    t.match(table.stdout, /another configuration than here: node-1/);
    t.match(
      table.stdout,
      /^node-1 +1 +(joined|late) +2 +\d+ ms +256 +0 +0 +0 ms +0 +0{12} +127\.0\.0\.1:1$/m,
    );
    figures = { links: 2, turnsRefused: 3, turnsThrown: 4 };
    await log.renew(node, incarnation, 1);
    t.match((await run('status')).stdout, /^node-1 +1 +(joined|late) +1 +\d+ ms +256 +3 +4 +-?\d+ ms /m);
    t.match(JSON.parse((await run('status', '--json')).stdout), {
      logId: log.logId,
      position: 2,
      checkpoint: null,
      lowestVersion: '0',
      nodes: [{ name: 'node-1', number: 1, applied: 1, lag: 1, partitionsOwned: 256, turnsThrown: 4 }],
    });
    t.match(await run('forget', 'node-1'), { code: 70, stderr: /the node node-1 is in/ });
    t.match(await run('forget', 'node-2'), { code: 64, stderr: /no node "node-2"/ });
    await log.leave(write(3));
    t.match(await run('status'), { code: 70, stdout: /^node-1 +1 +out /m }, 'no node serves');
    t.match(await run('forget', 'node-1'), { code: 0, stdout: 'the node node-1 is forgotten\n' });
  },
);

pgTest('cluster commands: a journal moves into a log and out again with its accounts', async (t, fixture) => {
  const { program, run, folder, url } = await openCluster(t, fixture);
  const data = join(folder, 'data');
  const gateway = await launch({ dataPath: data });
  const person = await signUp(gateway.url);
  t.match(await run('import', '--data', data), { code: 70, stderr: /in use by another process/ });
  await gateway.stop();
  t.match(await run('import', '--data', join(folder, 'none')), { code: 70, stderr: /holds no journal/ });
  t.match(await run('recover', '--data', data), { code: 70, stderr: /not that of a node/ });
  const imported = await program('import', '--data', data);
  t.match(imported, { code: 0, stdout: /^the log begins at 1 with the journal of / }, imported.stderr);
  t.match(await run('import', '--data', data), { code: 70, stderr: /the log is in use/ });

  const node = join(folder, 'node');
  await fetchInto(t, url, 1, node);
  const cutOff = join(node, 'node.run');
  writeFileSync(cutOff, JSON.stringify({ end: 'open', boot: 'another run of the machine', reason: '' }));
  t.match(await run('recover', '--data', node), {
    code: 70,
    stderr: /the machine stopped while a node used/,
  });
  rmSync(cutOff);
  t.match(await run('recover', '--data', node), {
    code: 0,
    stdout: /^the log continues after 2 with the state/,
  });
  t.match(await run('recover', '--from-database'), { code: 0, stdout: /^the log continues after 2 with/ });
  const other = join(folder, 'other');
  await fetchInto(t, url, 2, other);
  const exported = join(folder, 'exported');
  t.match(await run('export', exported, '--data', other), { code: 0, stdout: /without Cluster/ });
  const alone = await launch({ dataPath: exported });
  const headers = { Cookie: person.cookie };
  t.equal((await request(`${alone.url}/auth/v1/keys/user_keys`, { headers })).status, 200);
  await alone.stop();
  t.match(await run('recover', '--data', exported), { code: 70, stderr: /not that of a node/ });
});

async function fetchInto(t: Test, url: string, position: number, folder: string): Promise<void> {
  const checkpoints = new Checkpoints({ url, secrets: [SECRET] });
  mkdirSync(folder);
  t.equal(await fetchState(checkpoints, folder, 'any'), position);
  checkpoints.close();
}
