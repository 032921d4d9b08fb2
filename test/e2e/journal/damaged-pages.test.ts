/** Pages of the journal that are damaged while a gateway serves it: what ends, with what, and what the next start says. */
import { join } from 'node:path';
import t from 'tap';
import { type Person, request, signUp } from '../../../kit/agent.ts';
import { launch, NO_LIMITS, runToEnd } from '../../../kit/launch.ts';
import { PAGE_BYTES } from '../../../src/actors/runtime/journal/pages/pages.ts';
import { hashToken } from '../../../src/domain/ids.ts';
import { refusedStart } from '../../support/command.ts';
import { changePage, treeAt, zeroPage } from '../../support/journal-pages.ts';

t.setTimeout(120_000);

const PORTS = ['--port', '0', '--internal-port', '0'];

for (const [table, startAgain] of [
  ['index/sidHash', (dataPath: string) => runToEnd(['--data', dataPath, ...PORTS])],
  ['timer', refusedStart],
] as const) {
  // covers S145
  t.test(
    `damaged page: one of ${table} ends the run with 70 and one line, and no start follows`,
    async (t) => {
      const dataPath = `${t.testdir({ data: {} })}/data`;
      const gateway = await launch({ dataPath, configuration: {} });
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
      t.match(await startAgain(dataPath), {
        code: 70,
        stdout: '',
        stderr: /the journal in .* is damaged: .*page [0-9]+ is damaged: .*; restore a backup\n$/,
      });
    },
  );
}

// covers S146
t.test(
  'damaged key: a session whose name in the index was hit is 503, not 401, once the walk found it',
  async (t) => {
    const dataPath = `${t.testdir({ data: {} })}/data`;
    const configuration = { Settings: NO_LIMITS };
    const gateway = await launch({ dataPath, configuration });
    const people: Person[] = [];
    for (let at = 0; at < 20; at += 1) people.push(await signUp(gateway.url));
    await gateway.stop();
    const file = join(dataPath, 'data.mdb');
    // The last byte of a hash that is neither the first nor the last one of the table.
    const [leaf = 0] = treeAt(file, 'index/sidHash').leaves;
    let key = '';
    changePage(file, leaf, 0, PAGE_BYTES, (bytes) => {
      const hashes = people.map(({ cookie }) => hashToken(cookie.slice('sid='.length)) ?? '').sort();
      key = hashes[10] ?? '';
      const last = bytes.indexOf(key) + key.length - 1;
      bytes[last] = (bytes[last] ?? 0) ^ 1;
    });
    const again = await launch({ dataPath, configuration });
    await again.said(/"msg":"journal read"/);
    const answers = await Promise.all(
      people.map(async ({ cookie }) => {
        const { status } = await request(`${again.url}/auth/v1/keys/user_keys`, {
          headers: { Cookie: cookie },
        });
        return { isHit: hashToken(cookie.slice('sid='.length)) === key, status };
      }),
    );
    t.equal(answers.filter(({ isHit, status }) => isHit && status === 503).length, 1);
    t.equal(answers.filter(({ isHit, status }) => !isHit && status === 200).length, 19);
    t.match(again.output().stderr, /"table":"index\/sidHash".*"msg":"journal damaged"/);
    const metrics = await (await fetch(`${again.internal}/metrics`)).text();
    t.match(metrics, /^gatehouse_journal_damaged_records 1$/m);
    t.match(metrics, /^gatehouse_journal_checked_bytes_total [1-9]/m);
    t.same(await again.stop(), { code: 0, signal: null });
  },
);
