/** `Cluster`: defaults, twins, one sentence a fault, what nodes should have alike. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { checkTls } from '../../src/bootstrap/tls.ts';
import { clusterFaults } from '../../src/config/cluster.ts';
import { loadConfiguration } from '../../src/config/load.ts';
import { agreementOf } from '../../src/domain/config/agreement.ts';
import { hostPortText, parseHostPort } from '../../src/domain/host-port.ts';
import { makeCertificate } from '../support/certificate.ts';
import { temporaryFolder } from '../support/files/file-storage.ts';

const SECRET = '0f'.repeat(32);
const OTHER = 'a1'.repeat(32);
const CLUSTER = { url: 'postgres://db.example/gatehouse', name: 'a', secret: SECRET, sharedFiles: true };
const FOLDER = { LocalFileStoragePath: '/srv/files' };

function load(test: Test, content: object, environment: Record<string, string> = {}, sandbox = false) {
  const config = join(temporaryFolder(test), 'gatehouse.json');
  writeFileSync(config, JSON.stringify(content));
  return loadConfiguration({ config, sandbox, newJournal: false }, environment, [checkTls, clusterFaults]);
}

function configurationOf(...given: Parameters<typeof load>) {
  const result = load(...given);
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  return result.configuration;
}

function faultsOf(test: Test, cluster: object, sandbox = false): string[] {
  const result = load(test, { ...FOLDER, Cluster: cluster }, {}, sandbox);
  return result.ok ? [] : result.faults.map(({ path, message }) => `${path}: ${message}`);
}

t.test('cluster configuration: without the section there is no cluster', async (t) => {
  t.equal(configurationOf(t, {}).cluster, undefined);
});

t.test('cluster configuration: keys that are left out have their defaults', async (t) => {
  t.same(configurationOf(t, { ...FOLDER, Cluster: CLUSTER }).cluster, {
    ...CLUSTER,
    secret: [SECRET],
    listen: '127.0.0.1:0',
    advertise: undefined,
    tls: undefined,
    plain: false,
    leaseMilliseconds: 1_000,
    logHours: 1,
    audit: 'node',
    sharedFiles: true,
  });
});

t.test(
  'cluster configuration: every key has an environment twin, a list of secrets has commas',
  async (t) => {
    const { certificate, key } = makeCertificate();
    const pem = join(temporaryFolder(t), 'pem');
    writeFileSync(pem, certificate + key);
    const { cluster } = configurationOf(
      t,
      {},
      {
        GATEHOUSE_CLUSTER_URL: 'socket:/run/postgresql?db=gatehouse',
        GATEHOUSE_CLUSTER_NAME: 'node-1',
        GATEHOUSE_CLUSTER_LISTEN: '10.0.0.1:8090',
        GATEHOUSE_CLUSTER_ADVERTISE: 'node-1.example:9000',
        GATEHOUSE_CLUSTER_SECRET: `${SECRET},${OTHER}`,
        GATEHOUSE_CLUSTER_PLAIN: 'true',
        GATEHOUSE_CLUSTER_LEASE_MILLISECONDS: '2000',
        GATEHOUSE_CLUSTER_LOG_HOURS: '24',
        GATEHOUSE_CLUSTER_AUDIT: 'table',
        GATEHOUSE_CLUSTER_SHARED_FILES: 'true',
        GATEHOUSE_LOCAL_FILE_STORAGE_PATH: '/srv/files',
      },
    );
    t.same(cluster, {
      url: 'socket:/run/postgresql?db=gatehouse',
      name: 'node-1',
      listen: '10.0.0.1:8090',
      advertise: 'node-1.example:9000',
      secret: [SECRET, OTHER],
      tls: undefined,
      plain: true,
      leaseMilliseconds: 2_000,
      logHours: 24,
      audit: 'table',
      sharedFiles: true,
    });
  },
);

t.test('cluster configuration: each bad value is one sentence at its key', async (t) => {
  t.same(faultsOf(t, { name: 'a', secret: SECRET, sharedFiles: true }).length, 1, 'a url is needed');
  const faults: readonly (readonly [given: object, fault: string | RegExp])[] = [
    [{ url: 'mysql://db' }, /^Cluster\.url: .*postgres:\/\//],
    [{ name: 'A b' }, /^Cluster\.name: /],
    [{ name: '' }, /^Cluster\.name: /],
    [{ listen: '10.0.0.1' }, 'Cluster.listen: is not an address with a port like 10.0.0.1:8090'],
    [{ listen: '127.0.0.1:65536' }, 'Cluster.listen: is not an address with a port like 10.0.0.1:8090'],
    [{ advertise: 'a.example:0' }, 'Cluster.advertise: names no port'],
    [{ secret: 'short' }, 'Cluster.secret: is not 32 bytes in base64url or hex'],
    [{ secret: [SECRET, 'x'] }, 'Cluster.secret.1: is not 32 bytes in base64url or hex'],
    [{ leaseMilliseconds: 299 }, /^Cluster\.leaseMilliseconds: /],
    [{ logHours: 0 }, /^Cluster\.logHours: /],
    [{ audit: 'log' }, /^Cluster\.audit: /],
    [{ unknown: 1 }, /^Cluster\.unknown: /],
    [
      { listen: '10.0.0.1:8090' },
      'Cluster.tls: is needed, as Cluster.listen is not a loopback address; a private network may set Cluster.plain',
    ],
    [
      { listen: '0.0.0.0:8090', plain: true },
      'Cluster.advertise: is needed, as other nodes cannot connect to the address of Cluster.listen',
    ],
  ];
  for (const [given, fault] of faults)
    t.match(faultsOf(t, { ...CLUSTER, ...given }), [fault], JSON.stringify(given));
});

t.test('cluster configuration: a place of files that not all nodes reach is refused', async (t) => {
  const { sharedFiles: _, ...Cluster } = CLUSTER;
  const FileServers = { 0: { Host: 'http://files.example' } };
  const FileStagingPath = '/srv/staging';
  const S3 = { Endpoint: 'http://s3.example', Bucket: 'files', AccessKeyId: 'a', SecretAccessKey: 'b' };
  const places: readonly (readonly [given: object, shared: boolean, fault?: RegExp])[] = [
    [FOLDER, true],
    [{ FileServers, FileStagingPath }, false],
    [{ FileServers: { 0: { S3 } } }, false],
    [{ ...FOLDER, FileServers }, true],
    [{}, false, /^Cluster: needs a place of files that all nodes reach: /],
    [{}, true, /^Cluster\.sharedFiles: needs LocalFileStoragePath: the folder that all nodes share$/],
    [FOLDER, false, /^LocalFileStoragePath: must be one folder that all nodes share, with /],
    [{ ...FOLDER, FileServers }, false, /^LocalFileStoragePath: must be one folder that all nodes share/],
    [{ FileServers }, false, /^FileServers: need FileStagingPath with Cluster, /],
    [{ FileServers: { ...FileServers, 9: { S3 } } }, false, /^FileServers: need FileStagingPath /],
    [{ FileServers: {} }, false, /^Cluster: needs a place of files/],
    [{ FileServers, FileStagingPath }, true, /^Cluster\.sharedFiles: needs LocalFileStoragePath/],
    [{ ...FOLDER, FileServers, FileStagingPath }, true, /^FileStagingPath: needs FileServers, and no /],
  ];
  for (const [given, shared, fault] of places) {
    const result = load(t, { ...given, Cluster: { ...Cluster, ...(shared ? { sharedFiles: true } : {}) } });
    const found = result.ok ? [] : result.faults.map(({ path, message }) => `${path}: ${message}`);
    t.match(found, fault === undefined ? [] : [fault], JSON.stringify([given, shared]));
    t.equal(found.length, fault === undefined ? 0 : 1);
  }
  t.match(load(t, { FileStagingPath }), { ok: false, faults: [{ path: 'FileStagingPath' }] }, 'alone too');
});

t.test(
  'cluster configuration: the sandbox is refused, by flag and without a configuration file',
  async (t) => {
    t.match(faultsOf(t, CLUSTER, true), [/^Cluster: the sandbox of one process cannot serve other nodes/]);
    const environment = {
      GATEHOUSE_CLUSTER_URL: CLUSTER.url,
      GATEHOUSE_CLUSTER_NAME: 'a',
      GATEHOUSE_CLUSTER_SECRET: SECRET,
      GATEHOUSE_CLUSTER_SHARED_FILES: 'true',
      GATEHOUSE_LOCAL_FILE_STORAGE_PATH: '/srv/files',
    };
    const result = loadConfiguration({ sandbox: false, newJournal: false }, environment, [clusterFaults]);
    t.match(result, { ok: false, faults: [{ path: 'Cluster' }] });
  },
);

t.test('cluster configuration: certificate, key and authority are read and compared', async (t) => {
  const folder = temporaryFolder(t);
  const [first, second] = [makeCertificate(), makeCertificate()];
  const put = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const cert = put('cert.pem', first.certificate);
  const key = put('key.pem', first.key);
  const tls = { cert, key, ca: cert };
  const listen = '10.0.0.1:8090';
  t.same(faultsOf(t, { ...CLUSTER, listen, tls }), []);
  t.match(faultsOf(t, { ...CLUSTER, listen, tls: { ...tls, ca: join(folder, 'none.pem') } }), [
    /^Cluster\.tls\.ca: .*none\.pem/,
  ]);
  t.match(faultsOf(t, { ...CLUSTER, listen, tls: { ...tls, key: put('other.pem', second.key) } }), [
    /^Cluster\.tls: .*(?:mismatch|does not match)/,
  ]);
});

t.test(
  'agreement: a name or a tool changes the hash, an address of a module or the order does not',
  async (t) => {
    const hashOf = (content: object) => Buffer.from(agreementOf(configurationOf(t, content))).toString('hex');
    const module = (url: string) => ({ url, key: 'sixteen-characters' });
    const base = { Project: 'a', Modules: { core: module('http://a'), chat: module('http://a') } };
    const other = { Modules: { chat: module('http://b'), core: module('http://b') }, Project: 'a' };
    t.equal(hashOf(base), hashOf({ ...other, ...FOLDER, Cluster: CLUSTER, Listen: { port: 1 } }));
    t.not(hashOf(base), hashOf({ ...base, Project: 'b' }));
    t.not(hashOf(base), hashOf({ ...base, Modules: { core: module('http://a') } }));
    t.not(hashOf(base), hashOf({ ...base, BaseUrl: 'https://a.example' }));
    const people = { ...module('http://a'), contactSync: true };
    t.not(hashOf(base), hashOf({ ...base, Modules: { core: people, chat: module('http://a') } }));
  },
);

t.test('host and port: both forms of addresses are read and written', async (t) => {
  for (const text of ['127.0.0.1:0', 'a.example:65535', '[::1]:8090']) {
    const parsed = parseHostPort(text);
    t.ok(parsed, text);
    if (parsed !== undefined) t.equal(hostPortText(parsed), text);
  }
  for (const text of ['', 'a', ':1', 'a:', '::1:80', 'a:65536', 'a:01', '[::1]', 'a b:1', 'a:1:2'])
    t.equal(parseHostPort(text), undefined, text);
});
