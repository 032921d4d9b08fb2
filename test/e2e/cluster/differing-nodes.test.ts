/** Three processes of which one has another state than most: it ends with 70, and repairs itself at its next start. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { request, signUp, untilAvailable, updateKey } from '../../../kit/agent.ts';
import type { Nodes } from '../../../kit/cluster/nodes.ts';
import { NO_LIMITS, runToEnd } from '../../../kit/launch.ts';
import { SAMPLE_ROWS } from '../../../src/actors/runtime/journal/replica-rows.ts';
import { Database } from '../../../src/io/cluster/database.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';

t.setTimeout(240_000);

/** Changes the digests of the other nodes, as if their state were another one. */
const FALSIFY = `update gatehouse.node set digest = sha256(digest) where name <> 'a' and digest is not null`;

/** Every node has applied so many rows, and has said what it has. */
async function haveApplied({ records }: Nodes, position: number): Promise<boolean> {
  return (await records()).every(({ applied }) => applied >= position);
}

postgresTest(
  'three nodes: one that the others contradict ends, sets its journal aside and serves again',
  async (t, postgres) => {
    const configuration = { Settings: NO_LIMITS };
    const { cluster, a, b, c } = await startedNodes(t, 3, { postgres, configuration, sandbox: false });
    const others = [b, c];
    const person = await untilAvailable(() => signUp(a.url));
    let isAllowed = true;
    while (!(await haveApplied(cluster, SAMPLE_ROWS + 1))) {
      await updateKey(a.url, person, { mcpAccess: isAllowed });
      isAllowed = !isAllowed;
    }

    // Stopped nodes do not say anything else meanwhile.
    for (const { gateway } of others) gateway.process.kill('SIGSTOP');
    const database = new Database({ url: cluster.databaseUrl, applicationName: 'test' });
    await database.script(FALSIFY);
    database.close();
    t.match(await a.gateway.exited, { code: 70 });
    t.match(
      a.gateway.output().stderr,
      /the state of this node differs at row \d+00 of the log .* which are most/,
    );
    for (const { gateway } of others) gateway.process.kill('SIGCONT');
    await cluster.isOut(a);

    await a.start();
    await cluster.allServe();
    t.match(a.gateway.output().stderr, /"cause":"diverged","msg":"journal set aside"/);
    const headers = { Cookie: person.cookie };
    t.equal((await request(`${a.url}/auth/v1/keys/user_keys`, { headers })).status, 200);
    const aside = join(a.dataPath, 'set-aside');
    const [folder = ''] = readdirSync(aside);
    const exported = join(a.dataPath, 'exported');
    t.match(await runToEnd(['backup', exported, '--data', join(aside, folder)]), { code: 0 });
  },
);
