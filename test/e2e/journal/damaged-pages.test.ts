/** Pages of the journal that are damaged while a gateway serves it: what ends, with what, and what the next start says. */
import { join } from 'node:path';
import t from 'tap';
import { request, signUp } from '../../../tools/agent.ts';
import { launch, runToEnd } from '../../../tools/launch.ts';
import { treeAt, zeroPage } from '../../support/journal-pages.ts';

t.setTimeout(120_000);

const PORTS = ['--port', '0', '--internal-port', '0'];

for (const table of ['index/sidHash', 'timer']) {
  t.test(
    `damaged page: one of ${table} ends the run with 70 and one line, and no start follows`,
    async (t) => {
      const dataPath = `${t.testdir({ data: {} })}/data`;
      const gateway = await launch({ dataPath });
      const person = await signUp(gateway.url);
      const file = join(dataPath, 'data.mdb');
      zeroPage(file, treeAt(file, table).root);
      const headers = { Cookie: person.cookie };
      // A timer is read by itself, a session when it is asked for.
      await request(`${gateway.url}/auth/v1/get_info`, { headers }).catch(() => undefined);
      await signUp(gateway.url).catch(() => undefined);
      t.same(await gateway.exited, { code: 70, signal: null });
      const lines = gateway
        .output()
        .stderr.split('\n')
        .filter((line) => /"level":"(fatal|error)"/.test(line));
      t.equal(lines.length, 1, lines.join('\n'));
      t.match(lines[0], /"msg":"journal failed"/);
      const again = await runToEnd(['--data', dataPath, ...PORTS]);
      t.match(again, {
        code: 70,
        signal: null,
        stdout: '',
        stderr: /the journal in .* is damaged: .*page [0-9]+ is damaged: .*; restore a backup\n$/,
      });
    },
  );
}
