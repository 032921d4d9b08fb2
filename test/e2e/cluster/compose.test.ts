/** The compose files: what they set is a configuration without faults, and the files that they name are there. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';
import { runToEnd } from '../../../kit/launch.ts';

/** Values of environment variables in a text, quotes removed; a value from outside is a secret. */
function environmentOf(text: string): Record<string, string> {
  const lines = [...text.matchAll(/^ +(GATEHOUSE_[A-Z_]+): (.+)$/gm)];
  return Object.fromEntries(
    lines.map(([, name = '', value = '']) => [
      name,
      value.startsWith('${') ? randomBytes(32).toString('hex') : value.replace(/^"(.*)"$/, '$1'),
    ]),
  );
}

t.test('compose: the environment of each node of compose.cluster.yaml has no faults', async (t) => {
  const text = readFileSync('compose.cluster.yaml', 'utf8');
  const common = environmentOf(text.slice(text.indexOf('x-environment:'), text.indexOf('\nservices:')));
  t.match(common, { GATEHOUSE_CLUSTER_LISTEN: /:\d+$/, GATEHOUSE_CLUSTER_PLAIN: 'true' });
  const nodes = [...text.matchAll(/^ {2}([abc]):\n {4}<<: \*node\n([\s\S]*?)^ {4}volumes:/gm)];
  t.same(
    nodes.map(([, name]) => name),
    ['a', 'b', 'c'],
  );
  const run = (environment: Record<string, string>) =>
    runToEnd(['check-config', '--config', 'examples/gatehouse.jsonc'], environment);
  let environment: Record<string, string> = {};
  for (const [, name, part = ''] of nodes) {
    const own = environmentOf(part);
    t.match(own, { GATEHOUSE_CLUSTER_NAME: name, GATEHOUSE_CLUSTER_ADVERTISE: `${name}:7000` });
    environment = { ...common, ...own };
    t.match(await run(environment), { code: 0, stdout: /^configuration: no faults\n/ });
  }
  const { GATEHOUSE_CLUSTER_PLAIN: _, ...unprotected } = environment;
  t.match(await run(unprotected), { code: 78 }, 'links between containers need the word');
});

t.test('compose: the environment of compose.yaml has no faults', async (t) => {
  const environment = environmentOf(readFileSync('compose.yaml', 'utf8'));
  t.ok(Object.keys(environment).length > 2);
  t.match(await runToEnd(['check-config'], environment), { code: 0, stdout: 'configuration: no faults\n' });
});

t.test('compose: every file that is mounted exists', async (t) => {
  for (const file of ['compose.yaml', 'compose.cluster.yaml']) {
    const mounted = [...readFileSync(file, 'utf8').matchAll(/(?:- |")(\.\/[^:"]+):/g)].map(
      ([, path = '']) => path,
    );
    t.ok(mounted.length > 2, `${mounted.length} of ${file}`);
    for (const path of mounted) t.ok(existsSync(path), path);
  }
});
