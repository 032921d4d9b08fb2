/** Wrong configurations as operators write them, with what `check-config` answers to each: the key, and what to change. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { folderFaults } from '../../src/bootstrap/data-directory.ts';
import { checkCatalog } from '../../src/bootstrap/served-catalog.ts';
import { checkTls } from '../../src/bootstrap/tls.ts';
import { clusterFaults } from '../../src/config/cluster.ts';
import { productionFaults } from '../../src/config/exposure.ts';
import { loadConfiguration } from '../../src/config/load.ts';

interface Wrong {
  readonly title: string;
  /** Text of the file, or its value. */
  readonly file?: object | string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly answers: readonly string[];
}

const url = 'http://10.0.0.9:9000';
const core = (more: object) => ({ Modules: { core: { url, ...more } } });
const node = {
  url: 'postgres://gatehouse@db/gatehouse',
  name: 'a',
  secret: '5a'.repeat(32),
  sharedFiles: true,
};
const cluster = (more: object) => ({ LocalFileStoragePath: '/srv/files', Cluster: { ...node, ...more } });
const tool = { description: 'A tool.', inputSchema: { type: 'object' }, method: 'GET' };

const WRONG: readonly Wrong[] = [
  {
    title: 'a comma is missing',
    file: '{ "Project": "a" "BaseUrl": "http://x" }',
    answers: ['FILE:1: column 18: a comma is expected: { "Project": "a" "BaseUrl": "http://x" }'],
  },
  { title: 'the file is empty', file: '', answers: ['FILE:1: column 1: a value is expected'] },
  {
    title: 'the file is YAML',
    file: 'Project: shop\n',
    answers: [
      'FILE:1: column 1: unknown word: Project: shop',
      'FILE:1: column 8: a value is expected: Project: shop',
    ],
  },
  {
    title: 'a key in another case',
    file: { BaseURL: 'https://gate.example' },
    answers: ['BaseURL: unknown key; did you mean BaseUrl?'],
  },
  {
    title: 'a key that stands twice',
    file: '{ "Listen": { "port": 1,\n "port": 2 },\n "Project": "a",\n "Project": "b" }',
    answers: ['Listen.port: stands twice, in lines 1 and 2', 'Project: stands twice, in lines 3 and 4'],
  },
  {
    title: 'an address without its scheme',
    file: { BaseUrl: 'gate.example' },
    answers: ['BaseUrl: must be an http or https address'],
  },
  {
    title: 'an address with a path',
    file: { BaseUrl: 'https://gate.example/api' },
    answers: ['BaseUrl: is an origin: scheme, host and port only'],
  },
  {
    title: 'production without https',
    file: { Production: true, BaseUrl: 'http://gate.example', ...core({}) },
    answers: ['BaseUrl: is not https, as production mode asks'],
  },
  {
    title: 'a port as a text',
    file: { Listen: { port: '8080' } },
    answers: ['Listen.port: must be integer'],
  },
  {
    title: 'a port that is too large',
    file: { Listen: { port: 80_800 } },
    answers: ['Listen.port: must be <= 65535'],
  },
  {
    title: 'both listeners on one port',
    file: { Listen: { host: '0.0.0.0', port: 9_000 }, Internal: { port: 9_000 } },
    answers: ['Internal.port: is the port of Listen'],
  },
  {
    title: 'a certificate without its key',
    file: { Listen: { tls: { cert: '/nonexistent/tls.crt' } } },
    answers: [
      'Listen.tls.key: is required',
      "Listen.tls.cert: ENOENT: no such file or directory, open '/nonexistent/tls.crt'",
    ],
  },
  {
    title: 'a certificate that is not there',
    file: { Listen: { tls: { cert: '/nonexistent/tls.crt', key: '/nonexistent/tls.key' } } },
    answers: [
      "Listen.tls.cert: ENOENT: no such file or directory, open '/nonexistent/tls.crt'",
      "Listen.tls.key: ENOENT: no such file or directory, open '/nonexistent/tls.key'",
    ],
  },
  {
    title: 'a data folder that is a file',
    file: { DataPath: 'FOLDER/plain' },
    answers: ['DataPath: FOLDER/plain is not a folder'],
  },
  {
    title: 'a module without its address',
    file: { Modules: { core: {} } },
    answers: ['Modules.core.url: is required'],
  },
  {
    title: 'a module with the name of a path of the gateway',
    file: { Modules: { auth: { url } } },
    answers: ['Modules.auth: the name is the first segment of paths of the gateway'],
  },
  {
    title: 'a public path of another module',
    file: core({ public: ['/core/v1/news', '/wallet/v1', '/core'] }),
    answers: ['Modules.core.public.1: is not below /core, where this module is'],
  },
  {
    title: 'a method that no module may have',
    file: core({ methods: ['LOCK'] }),
    answers: [
      'Modules.core.methods.0: must be one of OPTIONS, PROPFIND, PROPPATCH, REPORT, MKCOL, COPY, MOVE',
    ],
  },
  {
    title: 'a secret whose variable is not set',
    file: core({ key: 'env:NOT_SET' }),
    answers: ['Modules.core.key: environment variable NOT_SET is not set'],
  },
  {
    title: 'a secret whose file is not there',
    file: core({ key: 'file:/nonexistent/key' }),
    answers: ["Modules.core.key: ENOENT: no such file or directory, open '/nonexistent/key'"],
  },
  {
    title: 'a secret of another store',
    file: { Secrets: { sealKey: 'aws:secret/gatehouse' } },
    answers: [
      'Secrets.sealKey: begins with aws:, which the gateway does not read: env:NAME and file:/PATH are read',
    ],
  },
  {
    title: 'a proxy by its host name',
    file: { TrustedProxies: ['nginx'] },
    answers: ['TrustedProxies.0: is not an address or a range like 10.0.0.0/8'],
  },
  {
    title: 'PROXY protocol of no proxy',
    file: { Listen: { proxyProtocol: true } },
    answers: ['Listen.proxyProtocol: needs TrustedProxies: the peers whose header counts'],
  },
  {
    title: 'a setting in another case',
    file: { Settings: { ApiRpsLimit: 5 } },
    answers: ['Settings.ApiRpsLimit: unknown setting; did you mean ApiRPSLimit?'],
  },
  {
    title: 'a setting below its minimum',
    file: { Settings: { ConnectionsMax: 1 } },
    answers: ['Settings.ConnectionsMax: expected 10 to 1000000'],
  },
  {
    title: 'a variable with a mistake in its name',
    environment: { GATEHOUSE_LISTEN_PROT: '1' },
    answers: ['GATEHOUSE_LISTEN_PROT: unknown environment variable; did you mean GATEHOUSE_LISTEN_PORT?'],
  },
  {
    title: 'a project with a blank in front',
    file: { Project: ' shop' },
    answers: ['Project: must be ASCII text without blanks at its ends'],
  },
  {
    title: 'addresses of admins and a relying party of no form',
    file: { Admin: { allow: ['999.1.1.1/8'] }, Fido2: { serverDomain: 'http://x' } },
    answers: [
      'Fido2.serverDomain: is not a host name',
      'Admin.allow.0: is not an address or a range like 10.0.0.0/8',
    ],
  },
  {
    title: 'an admin by name',
    file: { Admin: { publicKeys: ['me'] } },
    answers: ['Admin.publicKeys.0: must be 32 bytes in base64url'],
  },
  {
    title: 'an origin with a path',
    file: { AllowedOrigins: ['https://app.example/page'] },
    answers: ['AllowedOrigins.0: is an origin: scheme, host and port only'],
  },
  {
    title: 'a tool of a module that is not there',
    file: { Config: { McpTools: { report: { ...tool, endpoint: 'shop:/shop/v1/report/get' } } } },
    answers: ['Config.McpTools.report.endpoint: module "shop" is not configured'],
  },
  {
    title: 'a cluster over another database',
    file: cluster({ url: 'mysql://db/gatehouse' }),
    answers: ['Cluster.url: must be an address that begins with postgres:// or socket:'],
  },
  {
    title: 'links of nodes beyond the machine without TLS',
    file: cluster({ listen: '0.0.0.0:7000' }),
    answers: [
      'Cluster.tls: is needed, as Cluster.listen is not a loopback address; a private network may set Cluster.plain',
      'Cluster.advertise: is needed, as other nodes cannot connect to the address of Cluster.listen',
    ],
  },
  {
    title: 'a ratio in percent',
    file: { Telemetry: { url: 'http://collector:4318', sampleRatio: 10 } },
    answers: ['Telemetry.sampleRatio: must be <= 1'],
  },
  {
    title: 'a collector that takes gRPC',
    file: { Telemetry: { url: 'grpc://collector:4317' } },
    answers: ['Telemetry.url: must be an http or https address'],
  },
  {
    title: 'a level of other loggers',
    file: { Log: { level: 'debug' } },
    answers: ['Log.level: must be one of info, warn, error'],
  },
];

for (const { title, file = {}, environment = {}, answers } of WRONG)
  t.test(`wrong configuration: ${title}`, async (t) => {
    const folder = t.testdir({ plain: 'a file' });
    const config = join(folder, 'gatehouse.jsonc');
    const text = typeof file === 'string' ? file : JSON.stringify(file);
    writeFileSync(config, text.replaceAll('FOLDER', folder));
    const folders = (given: unknown) => folderFaults(given, undefined);
    const result = loadConfiguration({ config, sandbox: false, newJournal: false }, environment, [
      ...[checkTls, checkCatalog, productionFaults, clusterFaults, folders],
    ]);
    const said = result.ok
      ? []
      : result.faults.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
    t.same(
      said.map((line) => line.replaceAll(config, 'FILE').replaceAll(folder, 'FOLDER')),
      answers,
    );
  });
