/** docs/dependencies.md explains every package that a run needs, and no other. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { plainEnvironment } from '../../kit/launch.ts';
import { outputOf } from '../../kit/run-sync.ts';
import { dependencies } from '../../tools/packaging/print-dependencies.ts';

const rows = readFileSync('docs/dependencies.md', 'utf8')
  .split('\n')
  .filter((line) => line.startsWith('| `'));

t.test('dependencies: npm ls --omit=dev names the packages of the page', async (t) => {
  const args = ['ls', '--omit=dev', '--package-lock-only', '--json'];
  const listed = JSON.parse(outputOf('npm', args, { env: plainEnvironment() })) as {
    dependencies: Record<string, unknown>;
  };
  const named = rows.map((row) => /^\| `([^`]+)`/.exec(row)?.[1]);
  t.same(named.sort(), Object.keys(listed.dependencies).sort());
});

t.test('dependencies: each row has figures', async (t) => {
  for (const row of rows) t.match(row, /\| \d+ \| \d+\.\d MiB \| (?:\d+ ms|–) \|$/);
});

t.test('dependencies: every licence is permissive', async (t) => {
  const permissive = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'ISC', 'MIT'];
  t.same(
    dependencies().filter(({ licence }) => !permissive.includes(licence)),
    [],
  );
});
