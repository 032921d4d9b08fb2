/** Starts with `Cluster`: what each refusal says and exits with, and what a start warns of. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { logIn, signUp, untilAvailable } from '../../../kit/agent.ts';
import { stopAfter } from '../../../kit/close-after.ts';
import { launch, runToEnd } from '../../../kit/launch.ts';
import { makeCertificate } from '../../support/certificate.ts';
import { pgTest, SECRET } from '../../support/cluster/pg-fixture.ts';
import { postgresTest } from '../../support/cluster/postgres.ts';
import { startedNodes } from '../../support/cluster/started-nodes.ts';
import { temporaryFolder } from '../../support/files/file-storage.ts';

t.setTimeout(240_000);

const FAST_TIME = fileURLToPath(new URL('../../support/cluster/fast-time.cjs', import.meta.url));

interface StartOptions {
  /** Keys of the section `Cluster`, over those that are given here. */
  readonly cluster?: object;
  readonly args?: readonly string[];
  readonly dataPath?: string;
  readonly nodeOptions?: string;
}

/** The program over the database `url`, with a data folder of its own. */
function programOver(t: Test, url: string) {
  const folder = temporaryFolder(t);
  const fileOf = (cluster: object) => {
    const file = join(folder, 'gatehouse.json');
    const Cluster = { url, name: 'a', secret: SECRET.toString('hex'), sharedFiles: true, ...cluster };
    writeFileSync(file, JSON.stringify({ Cluster, LocalFileStoragePath: join(folder, 'files') }));
    return file;
  };
  return {
    folder,
    launch: (dataPath = join(folder, 'data')) => launch({ dataPath, args: ['--config', fileOf({})] }),
    command: (name: string, cluster: object = {}) => runToEnd([name, '--config', fileOf(cluster)]),
    /** A start that ends by itself. */
    run({ cluster = {}, args = [], dataPath = join(folder, 'data'), nodeOptions }: StartOptions = {}) {
      const ports = ['--port', '0', '--internal-port', '0'];
      const environment = nodeOptions === undefined ? {} : { NODE_OPTIONS: nodeOptions };
      const all = ['--config', fileOf(cluster), '--data', dataPath, ...ports, ...args];
      return runToEnd(all, environment);
    },
  };
}

const UNREACHABLE = 'postgres://x@127.0.0.1:1/x';

// Each fault: test/config/cluster.test.ts.
t.test('cluster start: faults of the configuration are refused with 78 before anything starts', async (t) => {
  const { run, command } = programOver(t, UNREACHABLE);
  const listen = '192.0.2.1:8090';
  const { code, stderr } = await run({ args: ['--sandbox'], cluster: { listen, sharedFiles: false } });
  t.equal(code, 78);
  t.match(stderr.split('\n').sort(), [
    '',
    /^configuration: Cluster\.tls: is needed, as Cluster\.listen is not a loopback address/,
    /^configuration: Cluster: the sandbox of one process cannot serve other nodes: /,
    /^configuration: LocalFileStoragePath: must be one folder that all nodes share/,
  ]);
  t.match(await run({ cluster: { tls: { cert: '/none', key: '/none', ca: '/none' } } }), {
    code: 78,
    stderr: /^configuration: Cluster\.tls\.cert: ENOENT/,
  });
  t.match(await command('check-config', { listen, plain: true }), { code: 0 }, 'plain is the word for it');
});

t.test('cluster start: a database that is away for 30 s is refused with 70 and the reason', async (t) => {
  const { run } = programOver(t, UNREACHABLE);
  t.match(await run({ nodeOptions: `--require ${FAST_TIME}` }), {
    code: 70,
    stderr: /^gatehouse: the database of Cluster\.url cannot be used for 30 s: [^\n]*ECONNREFUSED[^\n]*\n$/,
  });
});

postgresTest(
  'cluster start: with Cluster.tls nodes are linked by TLS, with certificates of their CA',
  async (t, postgres) => {
    const { certificate, key } = makeCertificate();
    const folder = temporaryFolder(t);
    const [cert, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    writeFileSync(cert, certificate);
    writeFileSync(keyFile, key);
    const { a, b } = await startedNodes(t, 2, {
      ...{ postgres, sandbox: false },
      cluster: { tls: { cert, key: keyFile, ca: cert }, leaseMilliseconds: 10_000 },
    });
    await Promise.all([a, b].map(({ gateway }) => gateway.said(/"direction":"out","msg":"link opened"/)));
    const person = await untilAvailable(() => signUp(a.url));
    t.equal((await logIn(b.url, person.key)).status, 200);
    const socket = connect({
      ca: certificate,
      cert: certificate,
      key,
      host: '127.0.0.1',
      port: b.links.port,
    });
    t.teardown(() => socket.destroy());
    await once(socket, 'secureConnect');
    t.same([socket.authorized, socket.getProtocol()], [true, 'TLSv1.3']);
  },
);

pgTest(
  'cluster start: another secret than that of the log is refused with 78',
  async (t, { url, connect }) => {
    await connect();
    t.match(await programOver(t, url).run({ cluster: { secret: '0e'.repeat(32) } }), {
      code: 78,
      stderr: 'configuration: Cluster.secret: is not the secret of this log, nor is any of the list\n',
    });
  },
);

pgTest('cluster start: a role that the database refuses ends it with 70 and a line', async (t, { url }) => {
  const { run } = programOver(t, url.replace(/user=.*/, 'user=missing'));
  const line = '"sqlState":"28000","detail":"role \\"missing\\" does not exist","msg":"database refused"';
  const sentence = 'gatehouse: the database of Cluster.url refuses this node: role "missing" does not exist';
  const { code, stderr } = await run();
  t.same([code, ...[line, sentence].map((text) => stderr.includes(text))], [70, true, true], stderr);
});

/** A function of this name is found before that of the server. */
const settingsAs = (values: string) => `
  create schema if not exists former;
  create or replace function former.current_setting(name text) returns text language sql as
    $$ select case name ${values} else pg_catalog.current_setting(name) end $$;
  do $$ begin execute format('alter database %I set search_path = former, pg_catalog', current_database()); end $$`;

/** After a node has used the database; each harm is undone, save that of the last row. */
const HARMS = [
  {
    name: 'standbys that are not waited for',
    harm: settingsAs("when 'synchronous_commit' then 'off' when 'synchronous_standby_names' then 'none'"),
    undo: 'drop schema former cascade',
    code: 78,
    sentence: /^configuration: Cluster\.url: synchronous_commit is off although synchronous_standby_names/,
  },
  {
    name: 'PostgreSQL 14',
    harm: settingsAs("when 'server_version_num' then '140012'"),
    undo: 'drop schema former cascade',
    code: 70,
    sentence: /^gatehouse: PostgreSQL 14 is too old for a cluster: 15 is the oldest\n$/,
  },
  {
    name: 'a log of a newer layout',
    harm: 'update gatehouse.head set layout = layout + 1',
    undo: 'update gatehouse.head set layout = layout - 1',
    code: 70,
    sentence:
      /^gatehouse: the log has layout 2, which a newer version of the gateway writes: this one knows 1\n$/,
  },
  {
    name: 'a log that is another one than the node has followed',
    harm: 'update gatehouse.head set log_id = gen_random_uuid(); update gatehouse.log set node_seq = node_seq + 1',
    undo: 'select',
    code: 70,
    sentence: /^gatehouse: the log is [0-9a-f-]{36}, and this node has followed [0-9a-f-]{36}\n$/,
  },
] as const;

pgTest('cluster start: over a database that a node uses or has used', async (t, { url, database }) => {
  const program = programOver(t, url);
  const first = stopAfter(t, await program.launch());
  await t.test('a name that a running node has is refused with 70; the node serves on', async (t) => {
    t.match(await program.run({ dataPath: join(program.folder, 'other') }), {
      code: 70,
      // The walk over the journal may have said that it is done.
      stderr: /^(?:\{[^\n]*"journal read"\}\n)?gatehouse: another process uses the node name a\n$/,
    });
    t.equal((await fetch(`${first.url}/health`)).status, 200);
  });
  t.match(await first.stop(), { code: 0 });
  for (const { name, harm, undo, code, sentence } of HARMS)
    await t.test(`${name} is refused with ${code}`, async (t) => {
      await database.script(harm);
      t.match(await program.run(), { code, stderr: sentence });
      await database.script(undo);
    });
});
