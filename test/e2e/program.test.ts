/** The command line of the program: flags, exit codes, output of a start, keygen, signals, backup. */

import { existsSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { mcpLogin, readKey, request, rpc, signUpAgent } from '../../kit/agent.ts';
import { listenFor } from '../../kit/http.ts';
import { entryOf, launch, launchFor, runToEnd } from '../../kit/launch.ts';
import { outputOf } from '../../kit/run-sync.ts';
import { runCommand } from '../support/command.ts';

t.setTimeout(240_000);

/** Serves the tests that ask a gateway and do not end it. */
const standing = await launchFor(t, { configuration: { Listen: { host: '0.0.0.0' } } });

const OTHER_VERSION = fileURLToPath(new URL('../support/preloads/other-version.cjs', import.meta.url));

t.test('program: an invalid flag ends with 64 and one line with the reason', async (t) => {
  const run = await runToEnd(['--prot', '1']);
  t.equal(run.code, 64);
  t.match(run.stderr, /--prot/);
  t.equal(run.stderr.trim().split('\n').length, 1);
  t.equal(run.stdout, '');
  t.equal((await runCommand(['no-such-command'])).code, 64);
});

t.test('program: --help and -h print the usage and end with 0, beside any other flag', async (t) => {
  for (const args of [['--help'], ['-h'], ['backup', '--help'], ['--check-config', '--help']]) {
    const run = await runCommand(args);
    t.equal(run.code, 0, args.join(' '));
    const words = ['keygen', 'backup DIR', '--config', '--internal-port', '--check-config'];
    t.same(
      words.filter((word) => !run.stdout.includes(word)),
      [],
    );
    t.equal(run.stderr, '');
  }
});

t.test('program: an unsupported Node version ends the start with 78 and one sentence', async (t) => {
  const startOn = (version: string) =>
    runToEnd(['--help'], { NODE_OPTIONS: `--require ${OTHER_VERSION}`, NODE_VERSION_SAID: version });
  for (const version of ['v18.20.8', 'v20.19.9', 'v21.7.3', 'v22.12.9', 'v25.1.0']) {
    const { code, stdout, stderr } = await startOn(version);
    t.strictSame({ code, stdout }, { code: 78, stdout: '' }, version);
    t.match(stderr, /^gatehouse: needs Node 20 from 20\.20\.0 or .+; this is [0-9.]+\n$/);
  }
  // One process: the entry is run anew for each, and its modules are loaded once.
  const accepted = ['v20.20.0', 'v20.21.0', 'v22.13.1', 'v24.0.0', 'v26.0.0'];
  const entry = entryOf();
  const runs = accepted.map(
    (version) =>
      `Object.defineProperty(process, 'version', { value: '${version}', configurable: true });
      delete require.cache['${entry}'];
      require('${entry}');`,
  );
  const printed = outputOf(process.execPath, ['-e', runs.join('\n'), '--', entry, 'version']);
  t.equal(printed.trim().split('\n').length, accepted.length);
});

t.test('program: an invalid configuration ends with 78 and names every fault with its path', async (t) => {
  const folder = t.testdir();
  const file = `${folder}/bad.json`;
  const tool = { endpoint: 'wallet:/x', method: 'TRACE', description: '', inputSchema: { type: 'array' } };
  writeFileSync(
    file,
    JSON.stringify({
      Listen: { port: -1 },
      Sandbx: true,
      Settings: { IpRPSLimit: 'x' },
      McpTools: { 'bad name!': tool },
    }),
  );
  for (const args of [
    ['--config', file],
    ['--check-config', '--config', file],
  ]) {
    const run = await (args[0] === '--config' ? runToEnd : runCommand)([...args, '--data', folder]);
    t.equal(run.code, 78, args.join(' '));
    for (const path of ['Listen.port', 'Sandbx', 'Settings.IpRPSLimit']) t.match(run.stderr, path);
    t.equal(run.stdout, '');
  }
});

t.test('program: a public listener outside production warns about webhooks to private ranges', async (t) => {
  await t.resolves(standing.said(/webhooks may go to the networks/));
});

t.test('program: a port in use ends with 69 and one line', async (t) => {
  const blocker = createServer();
  const { port } = await listenFor(t, blocker);
  for (const args of [
    ['--port', String(port), '--internal-port', '0'],
    ['--port', '0', '--internal-port', String(port)],
  ]) {
    const run = await runToEnd([...args, '--data', `${t.testdir()}/data`]);
    t.equal(run.code, 69);
    t.match(run.stderr, new RegExp(`127\\.0\\.0\\.1:${port}: the port is taken; --port and --internal-port`));
    t.equal(run.stderr.trim().split('\n').length, 1);
  }
});

t.test('program: a data path that cannot be created ends with 78', async (t) => {
  const file = `${t.testdir()}/file`;
  writeFileSync(file, '');
  const run = await runToEnd(['--data', `${file}/data`, '--port', '0', '--internal-port', '0']);
  t.equal(run.code, 78);
  t.match(run.stderr, /DataPath/);
});

t.test('program: unusable certificates end with 78 and name their configuration key', async (t) => {
  const folder = t.testdir({ 'cert.pem': 'not a certificate', 'key.pem': 'nor a key' });
  const check = async (tls: object) => {
    writeFileSync(`${folder}/tls.json`, JSON.stringify({ Listen: { tls } }));
    return await runCommand(['--check-config', '--config', `${folder}/tls.json`]);
  };
  const missing = await check({ cert: `${folder}/none.pem`, key: `${folder}/key.pem` });
  t.equal(missing.code, 78);
  t.match(missing.stderr, /Listen\.tls\.cert: .*none\.pem/);
  const wrong = await check({ cert: `${folder}/cert.pem`, key: `${folder}/key.pem` });
  t.equal(wrong.code, 78);
  t.match(wrong.stderr, /Listen\.tls: /);
});

t.test('program: a data folder in use ends with 70 and one line', async (t) => {
  const ports = ['--port', '0', '--internal-port', '0'];
  const second = await runToEnd(['--data', standing.dataPath, ...ports]);
  t.equal(second.code, 70);
  t.match(second.stderr, /^gatehouse: .*in use by another process\n$/);
});

t.test(
  'program: a damaged sandbox log and a backup without a journal end with 70 and one line',
  async (t) => {
    const folder = t.testdir({ sandbox: { 'log.jsonl': 'damaged\n{}\n' } });
    for (const run of [
      await runToEnd(['--data', folder, '--port', '0', '--internal-port', '0']),
      await runCommand(['backup', `${folder}/copy`, '--data', `${folder}/none`]),
    ]) {
      t.equal(run.code, 70);
      t.match(run.stderr, /^gatehouse: .*(damaged|holds no journal)/);
      t.equal(run.stderr.trim().split('\n').length, 1);
    }
    t.equal(existsSync(`${folder}/none`), false, 'a backup creates no data folder');
  },
);

// covers R16 R24
t.test('program: tools under Config, and SIGHUP names changed keys that need a restart', async (t) => {
  const folder = t.testdir();
  const file = `${folder}/config.json`;
  const row = { endpoint: 'http://127.0.0.1:1/x', method: 'GET', description: 'x' };
  const tool = { ...row, inputSchema: { type: 'object' } };
  const write = (configuration: object) => writeFileSync(file, JSON.stringify(configuration));
  const open = { Listen: { host: '0.0.0.0' }, WebhookAllow: [] };
  write({ ...open, Config: { McpTools: { first: tool } }, Modules: { core: { url: 'http://127.0.0.1:1' } } });
  const gateway = await launchFor(t, { dataPath: `${folder}/data`, args: ['--config', file] });
  const names = async () => {
    const list = await rpc(gateway.url, undefined, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    return [...list.text.matchAll(/"name":"(first|second)"/g)].map(([, name]) => name);
  };
  t.same(await names(), ['first']);
  const key = 'a-secret-of-the-module';
  write({
    ...open,
    Config: { McpTools: { second: tool } },
    Project: 'other',
    Listen: { ...open.Listen, port: 9 },
    Modules: { core: { url: 'http://127.0.0.1:1', key } },
  });
  gateway.process.kill('SIGHUP');
  await gateway.said(/catalog reloaded/);
  t.same(await names(), ['second'], 'tools are loaded nevertheless');
  const warning = gateway
    .output()
    .stderr.split('\n')
    .filter((line) => line.includes('"msg":"restart needed"'))
    .map((line) => JSON.parse(line) as { keys: string[]; level: unknown });
  t.equal(warning.length, 1);
  t.same(warning[0]?.keys.sort(), ['Modules.core.key', 'Project'], 'the port is set by a flag and not named');
  t.notMatch(gateway.output().stderr, key, 'only names are logged');
  t.notMatch(gateway.output().stderr, /webhooks may go/, 'an empty list allows no network');
});

// covers R6
t.test('program: the first line says where it listens, and SIGTERM ends the program with 0', async (t) => {
  const gateway = await launch({ configuration: { BaseUrl: 'https://gate.example' }, args: ['--sandbox'] });
  t.match(
    gateway.output().stdout.split('\n')[0],
    /^listening \{"url":"http:\/\/127\.0\.0\.1:\d+","internal":"http:\/\/127\.0\.0\.1:\d+","sandbox":"http:\/\/127\.0\.0\.1:\d+"\}$/,
  );
  const health = await request(`${gateway.url}/health`);
  t.equal(health.status, 200);
  t.match(health.json, { status: 'healthy', database: 'connected', activeSessions: 0 });
  t.same((await request(`${gateway.url}/health?plain=1`)).json, { status: 'healthy' });
  t.match((await request(`${gateway.internal}/health`)).json, {
    status: 'healthy',
    version: /^\d+\.\d+\.\d+$/,
  });
  t.match((await request(`${gateway.internal}/metrics`)).text, /^gatehouse_http_requests_total\{/m);
  t.equal((await request(`${gateway.url}/metrics`)).status, 404, 'metrics are not public');
  t.same(await gateway.stop(), { code: 0, signal: null });
  const [, , title, address] = gateway.output().stdout.split('\n');
  t.match(title, /^Gatehouse \d/);
  const note = 'the address for MCP hosts is first, by BaseUrl and not by the listener';
  t.equal(address, '  for MCP hosts  https://gate.example/connect/mcp', note);
});

t.test('program: keygen prints a pair that logs in', async (t) => {
  const run = await runCommand(['keygen']);
  t.equal(run.code, 0);
  const pair = JSON.parse(run.stdout) as { publicKey: string; secretKey: string };
  t.match(pair, { publicKey: /^[A-Za-z0-9_-]{43}$/, secretKey: /^[A-Za-z0-9_-]{43}$/ });
  const key = readKey(pair.publicKey, pair.secretKey);
  await signUpAgent(standing.url, key);
  t.equal((await mcpLogin(standing.url, key, Date.now())).status, 200);
});
