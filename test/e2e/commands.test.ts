/** Commands of the program beside `serve`: help, version, schema, status, restore, an upgrade and the way back. */
import { spawn } from 'node:child_process';
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import t from 'tap';
import { request, signUp } from '../../kit/agent.ts';
import { pickPort } from '../../kit/free-port.ts';
import { entryOf, launch, launchFor, plainEnvironment, runToEnd } from '../../kit/launch.ts';
import { runCommand } from '../support/command.ts';

t.setTimeout(240_000);

const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
const COMMANDS = [
  'serve',
  'check-config',
  'check',
  'keygen',
  'backup',
  'restore',
  'status',
  'profile',
  'admin',
  'cluster',
  'import-openapi',
  'print-schema',
  'version',
  'help',
];

/** Answers commands that do not end it. It has no modules: their threads are a third of a start. */
const standing = await launchFor(t, {
  command: 'serve',
  configuration: { Admin: { publicKeys: ['A'.repeat(42).concat('E')] } },
});

t.test('commands: version prints the version alone, as --version does', async (t) => {
  const printed = { code: 0, stdout: `${version}\n`, stderr: '' };
  t.match(await runToEnd(['version']), printed);
  t.match(await runCommand(['--version']), printed);
});

t.test('commands: help names every command, and help of a command its options alone', async (t) => {
  const { code, stdout } = await runCommand(['help']);
  t.equal(code, 0);
  t.same(
    COMMANDS.filter((name) => !new RegExp(`^  gatehouse ${name} `, 'm').test(stdout)),
    [],
  );
  const { stdout: one } = await runCommand(['help', 'status']);
  t.match(one, /gatehouse status .*\n[\s\S]*--json/);
  t.notMatch(one, /gatehouse serve|--sandbox/);
  t.notMatch(one, /picks a free one/, 'a port of 0 says nothing of a running gateway');
  t.match(
    (await runCommand(['help', 'admin', 'recover'])).stdout,
    /gatehouse admin recover .*\n[\s\S]*--data DIR/,
  );
});

t.test('commands: unknown names and arguments too many end with 64 and one line', async (t) => {
  for (const args of [
    ['frobnicate'],
    ['help', 'frobnicate'],
    ['help', 'admin', 'remove'],
    ['help', 'admin', 'recover', 'x'],
    ['version', 'x'],
    ['keygen', 'x'],
    ['restore'],
    ['status', '--internal-port', '0'],
  ]) {
    const { code, stdout, stderr } = await runCommand(args);
    t.same(
      { code, stdout, lines: stderr.split('\n').length },
      { code: 64, stdout: '', lines: 2 },
      args.join(' '),
    );
  }
});

t.test('commands: serve and check-config do what the former flags did', async (t) => {
  const file = `${t.testdir({})}/gatehouse.jsonc`;
  writeFileSync(file, '{ "Project": "shop" }');
  for (const args of [['check-config'], ['--check-config']])
    t.match(await runCommand([...args, '--config', file]), { code: 0, stdout: 'configuration: no faults\n' });
  t.equal((await request(`${standing.url}/health`)).status, 200);
});

t.test(
  'commands: print-schema has the keys of the file and of Settings, and takes env:NAME and file:/PATH',
  async (t) => {
    const { code, stdout } = await runCommand(['print-schema']);
    t.equal(code, 0);
    const schema = JSON.parse(stdout) as {
      properties: Record<string, { properties?: Record<string, unknown> }>;
    };
    const keys = [
      ...readFileSync('docs/reference/CONFIGURATION.md', 'utf8').matchAll(/^\| `([A-Z][A-Za-z0-9]*)[`.]/gm),
    ].map(([, key]) => key ?? '');
    t.same(Object.keys(schema.properties).sort(), [...new Set([...keys, '$schema'])].sort());
    t.match(schema.properties['BaseUrl'], {
      anyOf: [{ pattern: /https/ }, { pattern: '^(env:.+|file:/[^/].*)$' }],
    });
    t.match(schema.properties['Settings']?.properties?.['IpRPSLimit'], { type: 'integer', minimum: 0 });
  },
);

t.test('commands: status is one line or JSON of a running gateway, and 69 when none answers', async (t) => {
  const { port } = new URL(standing.internal);
  const line = await runToEnd(['status', '--internal-port', port]);
  t.match(line, { code: 0, stdout: new RegExp(`^healthy: gatehouse ${version} on Node .+ MiB\n$`) });
  const { stdout } = await runCommand(['status', '--internal-port', port, '--json']);
  t.match(JSON.parse(stdout), { status: 'healthy', version, parts: {} });
  const free = String(await pickPort());
  const gone = await runCommand(['status', '--internal-port', free]);
  t.match(gone, {
    code: 69,
    stdout: '',
    stderr: new RegExp(`^gatehouse: http://127.0.0.1:${free}/health: .+\n$`),
  });
});

t.test('commands: profile prints the file of a running gateway; 64 and 69 where it cannot', async (t) => {
  const at = ['--data', standing.dataPath];
  const { code, stdout } = await runCommand(['profile', 'cpu', '--seconds', '1', ...at]);
  t.equal(code, 0);
  t.ok(stdout.startsWith(join(standing.dataPath, 'profiles')));
  t.match(readFileSync(stdout.trim(), 'utf8'), /"functionName":/);
  for (const args of [
    [],
    ['disk'],
    ['cpu', '--seconds', '0'],
    ['heap', '--seconds', '61'],
    ['cpu', '--often'],
  ])
    t.match(await runCommand(['profile', ...args, ...at]), { code: 64, stdout: '' }, args.join(' '));
  const nowhere = ['--data', `${t.testdir({})}/data`];
  t.match(await runCommand(['profile', 'cpu', ...nowhere]), { code: 69, stderr: /no gateway serves/ });
});

t.test('commands: a restored backup serves its accounts; later ones are gone', async (t) => {
  const folder = t.testdir({});
  const person = await signUp(standing.url);
  t.equal((await runCommand(['backup', `${folder}/backup`, '--data', standing.dataPath])).code, 0);
  const later = await signUp(standing.url);
  const run = await runToEnd(['restore', `${folder}/backup`, '--data', `${folder}/other`]);
  t.match(run, { code: 0, stdout: /holds the journal of/ }, run.stderr);
  const restored = await launch({ dataPath: `${folder}/other`, configuration: {} });
  const statusOf = async ({ cookie }: { cookie: string }) =>
    (await request(`${restored.url}/auth/v1/keys/user_keys`, { headers: { Cookie: cookie } })).status;
  t.same([await statusOf(person), await statusOf(later)], [200, 401]);
  await restored.stop();
});

t.test(
  'commands: restore refuses a folder with a journal, a folder in use and a source without one',
  async (t) => {
    const folder = t.testdir({});
    t.equal((await runCommand(['backup', `${folder}/backup`, '--data', standing.dataPath])).code, 0);
    cpSync(`${folder}/backup`, `${folder}/data`, { recursive: true });
    const before = readFileSync(`${folder}/backup/data.mdb`);
    const refused = async (from: string, to: string, reason: RegExp) => {
      const { code, stderr } = await runCommand([
        'restore',
        join(folder, from),
        '--data',
        resolve(folder, to),
      ]);
      t.equal(code, 70);
      t.match(stderr, reason);
    };
    await refused('backup', standing.dataPath, /is in use/);
    await refused('backup', 'data', /holds a journal already/);
    await refused('nothing', 'new', /holds no journal/);
    t.notOk(existsSync(`${folder}/new/data.mdb`));
    writeFileSync(`${folder}/backup/data.mdb`, before.subarray(0, 100));
    await refused('backup', 'new', /cannot be copied|is damaged/);
    t.notOk(existsSync(`${folder}/new/data.mdb`), 'nothing is left of a failed restore');
  },
);

t.test('commands: an upgrade from 0.1.0 serves, and the backup from before it is the way back', async (t) => {
  const folder = t.testdir({});
  const data = join(folder, 'data');
  cpSync('test/fixtures/journal-1', data, { recursive: true });
  const before = readFileSync(join(data, 'data.mdb'));
  t.equal((await runCommand(['backup', `${folder}/backup`, '--data', data])).code, 0);
  const upgraded = await launch({ dataPath: data, configuration: {} });
  t.equal((await request(`${upgraded.url}/health`)).status, 200);
  await upgraded.stop();
  t.not(
    Buffer.compare(readFileSync(join(data, 'data.mdb')), before),
    0,
    'the layout is that of this version',
  );
  t.equal((await runCommand(['restore', `${folder}/backup`, '--data', `${folder}/back`])).code, 0);
  const { stdout } = await runCommand(['check', '--data', `${folder}/back`]);
  t.match(stdout, /rows of an earlier version have no checksum/, 'the rows are those of version 0.1.0');
});

t.test(
  'commands: admin recover prints a link of a gateway that has an admin, and leaves no file',
  async (t) => {
    t.notMatch(standing.output().stdout, /(Setup|Recovery)#/);
    const files = () => readdirSync(standing.dataPath).filter((name) => name.includes('recover'));
    const run = await runCommand(['admin', 'recover', '--data', standing.dataPath]);
    t.equal(run.code, 0, run.stderr);
    t.match(run.stdout, /^admin recovery http:\/\/localhost:\d+\/ProxyAdmin\/Recovery#[A-Za-z0-9_-]{43}\n/);
    t.same(files(), []);
    await standing.said(/"msg":"admin recovery"/);
    const token = /#(\S+)/.exec(run.stdout)?.[1] ?? '';
    t.notMatch(standing.output().stderr, token, 'the link is not logged');
  },
);

t.test(
  'commands: admin recover ends with 69 where no gateway serves, and with 64 without its action',
  async (t) => {
    const folder = t.testdir({});
    const run = await runCommand(['admin', 'recover', '--data', `${folder}/data`]);
    t.match(run, { code: 69, stdout: '', stderr: /no gateway serves/ });
    t.notOk(existsSync(`${folder}/data`));
    t.equal((await runCommand(['admin', 'forget'])).code, 64);
  },
);

t.test(
  'commands: a start on a terminal prints the addresses alone, with one host and absolute paths',
  async (t) => {
    const folder = t.testdir({});
    // `script` gives its command a terminal.
    const line = `exec ${process.execPath} ${entryOf()} --port 0 --internal-port 0 --data data`;
    const child = spawn('script', ['-qefc', line, '/dev/null'], {
      cwd: folder,
      env: plainEnvironment(),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    let text = '';
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`it ended with ${code}: ${text}`)));
      child.stdout.setEncoding('utf8').on('data', (piece: string) => {
        text += piece;
        if (/"headers"[\s\S]*\}\s*\}\s*\}\s*$/.test(text)) resolve();
      });
    });
    const pid = Number(/process +([0-9]+)/.exec(text)?.[1]);
    const ended = new Promise((resolve) => child.once('exit', resolve));
    process.kill(pid, 'SIGTERM');
    await ended;
    const [beforeBanner] = text.split('Gatehouse');
    t.equal(beforeBanner?.trim(), '', 'no log line comes first');
    t.notMatch(text, /listening \{/);
    t.match(text, new RegExp(`runs with +Node ${process.versions.node}, uWebSockets\\.js 20\\.`));
    t.match(text, new RegExp(`data +${folder}/data\r?$`, 'm'));
    const hosts = [...text.matchAll(/http:\/\/([^:/]+)/g)].map(([, host]) => host);
    t.same([...new Set(hosts)], ['localhost']);
  },
);
