/** Checkpoints in the database: what was stored comes back, and nothing else. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { closeAfter } from '../../../kit/close-after.ts';
import { Checkpoints } from '../../../src/io/cluster/checkpoints.ts';
import { type PgFixture, pgTest, SECRET } from '../../support/cluster/pg-fixture.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

const MEBIBYTE = 1024 * 1024;

async function openCheckpoints(t: Test, fixture: PgFixture) {
  await fixture.connect();
  const folder = temporaryFolder(t);
  const connect = (secrets: readonly Uint8Array[] = [SECRET]) => {
    return closeAfter(t, new Checkpoints({ url: fixture.url, secrets }));
  };
  const file = (sizeBytes: number, fill = 1) => {
    const path = join(folder, `file-${sizeBytes}-${fill}`);
    writeFileSync(path, Buffer.from(Uint8Array.from({ length: sizeBytes }, (_, index) => index * 31 + fill)));
    return path;
  };
  return { ...fixture, connect, file, target: join(folder, 'target') };
}

pgTest('checkpoint: a file comes back byte for byte, whatever its size', async (t, fixture) => {
  const { connect, file, target } = await openCheckpoints(t, fixture);
  const checkpoints = connect();
  for (const [position, sizeBytes] of [0, 1, MEBIBYTE, MEBIBYTE + 1, 9 * MEBIBYTE + 7].entries()) {
    const source = file(sizeBytes);
    t.equal(await checkpoints.upload(position, source), true);
    const newest = await checkpoints.newest();
    t.match(newest, { position, parts: Math.max(1, Math.ceil(sizeBytes / MEBIBYTE)) });
    if (newest !== undefined) await checkpoints.download(newest, target);
    t.ok(readFileSync(target).equals(readFileSync(source)), `${sizeBytes} bytes`);
  }
});

pgTest('checkpoint: an unfinished one is not offered, and is removed once it is old', async (t, fixture) => {
  const { connect, file, database } = await openCheckpoints(t, fixture);
  const checkpoints = connect();
  t.equal(await checkpoints.newest(), undefined);
  await checkpoints.upload(5, file(10));
  await checkpoints.upload(9, file(3 * MEBIBYTE));
  await database.script('delete from gatehouse.checkpoint where pos = 9 and part = 1');
  t.match(await checkpoints.newest(), { position: 5 });
  await checkpoints.trim();
  t.equal(await positions(database), '5 9', 'it may still be written');
  await checkpoints.trim(0);
  t.equal(await positions(database), '5');
});

pgTest('checkpoint: older ones go when a newer one is complete', async (t, fixture) => {
  const { connect, file, database } = await openCheckpoints(t, fixture);
  const checkpoints = connect();
  for (const position of [1, 2, 3]) await checkpoints.upload(position, file(10, position));
  await checkpoints.trim();
  t.equal(await positions(database), '1 2 3', 'nodes may be fetching them');
  await checkpoints.trim(0);
  t.equal(await positions(database), '3');
});

pgTest(
  'checkpoint: has the digest that was stored with it, and goes when it is removed',
  async (t, fixture) => {
    const { connect, file } = await openCheckpoints(t, fixture);
    const checkpoints = connect();
    await checkpoints.upload(150, file(10));
    t.equal((await checkpoints.newest())?.sample, undefined);
    const sample = { position: 200, digest: Buffer.alloc(32, 5) };
    await checkpoints.upload(250, file(3 * MEBIBYTE), sample);
    t.match(await checkpoints.newest(), { position: 250, parts: 3, sample });
    await checkpoints.remove(250);
    t.match(await checkpoints.newest(), { position: 150 });
  },
);

pgTest('checkpoint: the log after a position is measured', async (t, fixture) => {
  const { connect, database } = await openCheckpoints(t, fixture);
  const checkpoints = connect();
  t.same(await checkpoints.logAfter(3), { position: 3, bytes: 0 });
  await database.script(
    "insert into gatehouse.log (pos, node, incarnation, node_seq, body) select pos, 1, 1, pos, 'four' from generate_series(1, 5) pos",
  );
  t.same(await checkpoints.logAfter(3), { position: 5, bytes: 8 });
});

pgTest('checkpoint: of two nodes that store one position the second stores nothing', async (t, fixture) => {
  const { connect, file, target } = await openCheckpoints(t, fixture);
  const [first, second] = [connect(), connect()];
  await first.upload(4, file(10, 1));
  t.equal(await second.upload(4, file(10, 2)), false);
  await second.download({ position: 4, parts: 1 }, target);
  t.ok(readFileSync(target).equals(readFileSync(file(10, 1))));
});

const refused = (
  title: string,
  change: string,
  reason: RegExp,
  secrets?: readonly Uint8Array[],
  position = 4,
) =>
  pgTest(`checkpoint: ${title} is refused, and leaves no file`, async (t, fixture) => {
    const { connect, file, target, database } = await openCheckpoints(t, fixture);
    await connect().upload(4, file(3 * MEBIBYTE));
    await database.script(change);
    await t.rejects(connect(secrets).download({ position, parts: 3 }, target), {
      name: 'ClusterUnusable',
      message: reason,
    });
    t.notOk(existsSync(target) || existsSync(`${target}.part`));
  });
refused('one with a missing part', 'delete from gatehouse.checkpoint where part = 1', /part 1 .* gone/);
refused('one that was removed', 'delete from gatehouse.checkpoint', /part 0 .* gone/);
refused(
  'one with parts in another order',
  'update gatehouse.checkpoint set part = case part when 0 then 10 else part end; update gatehouse.checkpoint set part = 0 where part = 1; update gatehouse.checkpoint set part = 1 where part = 10',
  /part 0 .* changed/,
);
refused('one of another position', 'update gatehouse.checkpoint set pos = 5', /changed/, [SECRET], 5);
refused('one of another secret', 'select 1', /Cluster\.secret/, [Buffer.alloc(32, 9)]);

pgTest('checkpoint: one that an earlier secret sealed is opened by the list', async (t, fixture) => {
  const { connect, file, target } = await openCheckpoints(t, fixture);
  await connect().upload(4, file(10));
  await connect([Buffer.alloc(32, 9), SECRET]).download({ position: 4, parts: 1 }, target);
  t.equal(readFileSync(target).length, 10);
});

async function positions(database: Awaited<ReturnType<typeof openCheckpoints>>['database']): Promise<string> {
  const text = "select string_agg(distinct pos::text, ' ') as positions from gatehouse.checkpoint";
  return String((await database.run({ name: 'positions', text })).rows[0]?.['positions']);
}
