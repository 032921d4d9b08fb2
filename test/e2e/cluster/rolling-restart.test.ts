/** A node that is restarted with SIGTERM under load, behind one address: what clients are answered meanwhile. */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { request, untilHolds } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { pickPort } from '../../../kit/free-port.ts';
import { startRolling } from '../../../tools/cluster/rolling.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';
import { lacking } from '../../support/programs/tools.ts';

t.setTimeout(240_000);

/** HAProxy with the file of deploy/ in front of the nodes; resolves with its address once it sends requests to one. */
async function startHaproxy(t: Test, nodes: readonly string[]): Promise<string> {
  const port = await pickPort();
  const text = readFileSync('deploy/haproxy/cluster.cfg', 'utf8');
  const servers = nodes.map((url, index) => `  server node${index} ${new URL(url).host}`);
  const folder = temporaryFolder(t);
  const file = join(folder, 'haproxy.cfg');
  const named = /(?:^ {2}server \w \w:8080\n)+/m;
  t.match(text, named, 'the nodes of the file');
  writeFileSync(
    file,
    text
      .replace(named, `${servers.join('\n')}\n`)
      .replace('0.0.0.0:8080', `127.0.0.1:${port}`)
      .replace('maxconn 20000', 'maxconn 100'),
  );
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  t.teardown(() => child.kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  await untilHolds(async () => {
    if (child.exitCode !== null) throw new Error(`HAProxy has ended with ${child.exitCode}`);
    return await request(`${url}/health`).then(
      ({ status }) => status === 200,
      () => false,
    );
  });
  return url;
}

postgresTest('rolling restart', async (t, postgres) => {
  // Without HAProxy the clients ask one node after the other.
  const front = lacking('HAProxy') ? {} : { front: (nodes: readonly string[]) => startHaproxy(t, nodes) };
  const options = { postgres, nodes: 2, clients: 4, pauseMs: 20, ...front };
  const { cluster, restart, under } = stopAfter(t, await startRolling(options));
  const [node, other] = cluster.nodes;
  if (node === undefined || other === undefined) throw new Error('too few nodes');
  await t.test(
    'a node leaves and comes back, and clients of deploy/haproxy/cluster.cfg see success or 503 alone',
    async (t) => {
      const isIn = async () => (await cluster.records()).find(({ name }) => name === node.name)?.joined;
      let exit: unknown;
      const report = await under(async () => {
        exit = await restart(node, async () => {
          t.equal(await isIn(), false, 'it has left: an expulsion would take longer than a lease');
        });
      });
      t.same(exit, { code: 0, signal: null }, 'the node ends by itself');
      t.same(report.faults, [], 'success, or 503 with Retry-After');
      t.ok(report.requests > report.unavailable, `${report.requests} answers`);
      t.equal(await isIn(), true, 'it is in again');
    },
  );
  await t.test('a node without its database ends within its time all the same', async (t) => {
    other.database.hold();
    other.gateway.process.kill('SIGTERM');
    t.same(await other.gateway.exited, { code: 0, signal: null });
    await cluster.isOut(other);
  });
});
