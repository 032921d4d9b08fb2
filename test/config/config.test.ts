/** Configuration: precedence, faults all at once, secrets, flags. */
import { writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { checkCatalog } from '../../src/bootstrap/served-catalog.ts';
import { twinName, twins } from '../../src/config/environment.ts';
import { type Flags, loadConfiguration, parseFlags } from '../../src/config/load.ts';
import { keysForRestart } from '../../src/domain/config/changes.ts';
import { MODULE_NAME } from '../../src/domain/config/configuration.ts';
import { routeTable } from '../support/route-table.ts';

const KEY = 'A'.repeat(43);
const NO_FLAGS: Flags = { sandbox: false, newJournal: false };

function file(test: Test, content: unknown): Flags {
  const path = `${test.testdir()}/gatehouse.jsonc`;
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return { ...NO_FLAGS, config: path };
}

function faultsOf(flags: Flags, environment: Record<string, string> = {}): string[] {
  const result = loadConfiguration(flags, environment);
  return result.ok ? [] : result.faults.map((fault) => `${fault.path}: ${fault.message}`);
}

function loaded(...given: Parameters<typeof loadConfiguration>) {
  const result = loadConfiguration(...given);
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  return result.configuration;
}

t.test('configuration: nothing given runs the sandbox on loopback with the defaults', async (t) => {
  const configuration = loaded(NO_FLAGS, {});
  t.match(configuration, {
    project: 'demo',
    listen: { host: '127.0.0.1', port: 8080 },
    internal: { host: '127.0.0.1', port: 8081 },
    dataPath: './data',
    sandbox: true,
    webhookAllow: ['127.0.0.0/8', '::1/128'],
  });
  t.ok(Object.isFrozen(configuration.listen), 'deeply frozen');
});

t.test(
  'configuration: a flag wins over the environment, the environment over the file, the file over a default',
  async (t) => {
    const flags = file(
      t,
      '{ // a comment\n "Listen": { "port": 1111, "host": "0.0.0.0" }, "Project": "from-file", "Production": true, }',
    );
    const configuration = loaded(
      { ...flags, port: 3333 },
      {
        GATEHOUSE_LISTEN_PORT: '2222',
        GATEHOUSE_PROJECT: 'from-environment',
        GATEHOUSE_SETTINGS_API_RPS_LIMIT: '9',
      },
    );
    t.equal(configuration.listen.port, 3333);
    t.equal(configuration.listen.host, '0.0.0.0');
    t.equal(configuration.project, 'from-environment');
    t.equal(configuration.settings.ApiRPSLimit, 9);
    t.equal(configuration.sandbox, false, 'a file names its modules; the sandbox only by flag');
    t.same(configuration.webhookAllow, [], 'production allows no private webhook target');
  },
);

t.test(
  'configuration: Telemetry needs an address, a ratio of 0 to 1 and headers that can be set',
  async (t) => {
    const url = 'http://127.0.0.1:4318';
    const ratioOf = (Telemetry: object, environment = {}) => {
      const result = loadConfiguration(file(t, { Telemetry }), environment);
      return result.ok ? result.configuration.telemetry?.sampleRatio : result.faults.map(({ path }) => path);
    };
    t.equal(ratioOf({ url }), 0, 'no traces unless a ratio is given');
    t.equal(ratioOf({ url, sampleRatio: 0.25 }), 0.25);
    t.equal(ratioOf({ url }, { GATEHOUSE_TELEMETRY_SAMPLE_RATIO: '0.5' }), 0.5, 'its twin takes a fraction');
    t.same(ratioOf({ url }, { GATEHOUSE_TELEMETRY_SAMPLE_RATIO: 'half' }), ['Telemetry.sampleRatio']);
    for (const sampleRatio of [-0.1, 1.1, '1'])
      t.same(ratioOf({ url, sampleRatio }), ['Telemetry.sampleRatio']);
    t.same(ratioOf({ url: 'http://a:b@c/' }), ['Telemetry.url']);
    t.same(ratioOf({ sampleRatio: 1 }), ['Telemetry.url']);
    for (const [name, value] of [
      ['content-length', '1'],
      ['a b', '1'],
      ['x-token', 'a\nb'],
    ] as const)
      t.same(ratioOf({ url, headers: { [name]: value } }), [`Telemetry.headers.${name}`]);
  },
);

function serverLoads(t: Test) {
  const load = (content: object) => loadConfiguration(file(t, content), { TOKEN: 'x' }, [checkCatalog]);
  const faults = (content: object) => {
    const result = load(content);
    return result.ok ? [] : result.faults.map(({ path, message }) => `${path}: ${message}`);
  };
  return { load, faults };
}

t.test('configuration: McpServers: a server has either an address or a command', async (t) => {
  const url = 'https://mcp.example/mcp';
  const { load, faults } = serverLoads(t);
  const command = ['node', 'server.js'];
  const byCommand = load({ McpServers: { a: { command, env: { X: 'env:TOKEN' } } } });
  t.match(byCommand.ok && byCommand.configuration.mcpServers['a'], {
    url: undefined,
    command,
    environment: { X: 'x' },
    prefix: 'a_',
  });
  const env = { X: 'x' };
  for (const [server, message] of [
    [{}, 'needs either url or command'],
    [{ url, command }, 'needs either url or command'],
    [{ url, env }, 'has env, which goes with command'],
    [{ command, headers: env }, 'has headers, which goes with url'],
  ] as const)
    t.same(faults({ McpServers: { a: server } }), [`McpServers.a: ${message}`]);
  t.same(faults({ McpServers: { a: { command: ['a\0b'], env: { '1': 'x' } } } }), [
    'McpServers.a.command.0: has a zero character',
    'McpServers.a.env.1: the key is not the name of a variable',
  ]);
});

// covers R122
t.test(
  'configuration: McpServers: with auth, no session without proof calls, and no other bearer is sent',
  async (t) => {
    const url = 'https://mcp.example/mcp';
    const { load, faults } = serverLoads(t);
    const own = { url, auth: 'user', title: 'Notes', authClient: { id: 'x', secret: 'env:TOKEN' } };
    const loaded = load({ McpServers: { a: own } });
    t.match(loaded.ok && loaded.configuration.mcpServers['a'], {
      title: 'Notes',
      login: { url, client: { id: 'x', secret: 'x' }, networks: [] },
    });
    const open = { restricted: [] };
    for (const [server, message] of [
      [
        { tools: { rows: { x: open } } },
        '.tools.rows.x.restricted: must name McpBasic: with auth, calls use credentials of a person',
      ],
      [
        { prompts: open },
        '.prompts.restricted: must name McpBasic: with auth, calls use credentials of a person',
      ],
      [
        { resources: open },
        '.resources.restricted: must name McpBasic: with auth, calls use credentials of a person',
      ],
      [{ headers: { authorization: 'x' } }, '.headers.authorization: is set by auth'],
    ] as const)
      t.same(faults({ McpServers: { a: { url, auth: 'user', ...server } } }), [`McpServers.a${message}`]);
    t.same(faults({ McpServers: { a: { url, authNetworks: ['10.0.0.0/8'] } } }), [
      'McpServers.a.authNetworks: has no effect without auth',
    ]);
    t.same(faults({ McpServers: { a: { command: ['x'], auth: 'user' } } }), [
      'McpServers.a: has auth, which goes with url',
    ]);
    t.match(faults({ McpServers: { a: { url, auth: 'user', authNetworks: ['x'] } } }), [/authNetworks\.0/]);
  },
);

t.test('configuration: McpServers: defaults of a server, and every fault by its key', async (t) => {
  const url = 'https://mcp.example/mcp';
  const { load, faults } = serverLoads(t);
  const loaded = load({
    McpServers: {
      a: {
        url,
        headers: { Authorization: 'env:TOKEN' },
        tools: { rows: { x: { appScope: true } } },
        prompts: { restricted: [] },
      },
    },
    McpProfiles: { p: { tools: ['a_x', 'a_*', 'a'], resources: ['up+a:*'] } },
  });
  t.same(loaded.ok && loaded.configuration.mcpServers, {
    a: {
      title: 'a',
      login: null,
      url,
      command: undefined,
      environment: {},
      headers: { Authorization: 'x' },
      prefix: 'a_',
      allow: undefined,
      rows: { x: { restricted: ['McpBasic'], appScope: true } },
      promptAccess: { restricted: [] },
      resourceAccess: { restricted: ['McpBasic'] },
    },
  });
  t.same(faults({ McpServers: { a: { url }, b: { url, prefix: 'a_' } } }), [
    'McpServers.b.prefix: is the prefix of a too',
  ]);
  t.same(faults({ McpServers: { a: { url, prefix: 'wallet_', tools: { rows: { get_balance: {} } } } } }), [
    'McpServers.a.tools.rows.get_balance: wallet_get_balance is the name of another tool',
  ]);
  for (const own of ['http://localhost:8080/mcp', 'http://[::1]:8081/x', 'https://own.example/mcp'])
    t.same(faults({ BaseUrl: 'https://own.example', McpServers: { a: { url: own } } }), [
      'McpServers.a.url: is an address of this gateway',
    ]);
  t.same(
    faults({ McpServers: { a: { url } }, Cluster: { url: 'postgres://h/d', name: 'n', secret: KEY } }),
    [],
  );
  t.same(faults({ McpProfiles: { p: { tools: ['b_x'] } }, McpServers: { a: { url } } }), [
    'McpProfiles.p.tools.0: matches none of the tools',
  ]);
  const faulty: [object, RegExp][] = [
    [{ A: { url } }, /^McpServers\.A: the name/],
    [{ a: { command: [] } }, /^McpServers\.a\.command/],
    [{ a: { url: 'ftp://x/' } }, /^McpServers\.a\.url/],
    [{ a: { url: 'https://u:p@x/' } }, /^McpServers\.a\.url/],
    [{ a: { url, cwd: 'x' } }, /^McpServers\.a\.cwd/],
    [{ a: { url, prefix: 'a.b' } }, /^McpServers\.a\.prefix/],
    [{ a: { url, headers: { Host: 'x' } } }, /^McpServers\.a\.headers\.Host/],
    [{ a: { url, headers: { 'x-a': 'a\nb' } } }, /^McpServers\.a\.headers\.x-a/],
    [{ a: { url, tools: { allow: [] } } }, /^McpServers\.a\.tools\.allow/],
    [{ a: { url, tools: { rows: { x: { restricted: ['McpOther'] } } } } }, /^McpServers\.a\.tools\.rows\.x/],
  ];
  for (const [McpServers, fault] of faulty) {
    const found = faults({ McpServers });
    t.equal(found.length, 1, JSON.stringify(McpServers));
    t.match(found[0], fault);
  }
});

t.test('configuration: SendfileBehind needs trusted peers, a free field and a whole path', async (t) => {
  const SendfileBehind = { header: 'X-Accel', prefix: '/_files/' };
  const TrustedProxies = ['10.0.0.0/8'];
  const loaded = loadConfiguration(file(t, { SendfileBehind, TrustedProxies }), {});
  t.same(loaded.ok && loaded.configuration.sendfileBehind, SendfileBehind);
  t.same(faultsOf(file(t, { SendfileBehind })), [
    'SendfileBehind: needs TrustedProxies: the peers whose header counts',
  ]);
  for (const header of ['X-Forwarded-For', 'x-request-id', 'X-MCP-Code'])
    t.same(faultsOf(file(t, { SendfileBehind: { ...SendfileBehind, header }, TrustedProxies })), [
      'SendfileBehind.header: has another meaning; X-Accel is usual',
    ]);
  for (const header of ['Cookie', 'X-A B', 'X-A:', 'X_Accel', ''])
    t.match(faultsOf(file(t, { SendfileBehind: { ...SendfileBehind, header }, TrustedProxies })), [
      /^SendfileBehind\.header: /,
    ]);
  for (const prefix of ['_files/', '/_files', '/', '/a/../b/', '/a b/', '/a%2f/', '//a/', 'http://h/'])
    t.match(faultsOf(file(t, { SendfileBehind: { ...SendfileBehind, prefix }, TrustedProxies })), [
      /^SendfileBehind\.prefix: /,
    ]);
});

t.test(
  'configuration: PROXY protocol needs trusted peers and no TLS, names of hosts and seal keys are judged',
  async (t) => {
    const sealKey = '0f'.repeat(32);
    const good = { Listen: { proxyProtocol: true }, TrustedProxies: ['10.0.0.0/8'], Secrets: { sealKey } };
    t.same(faultsOf(file(t, good)), []);
    const bad = {
      Listen: { proxyProtocol: true },
      Internal: { allowHosts: ['fine.example', 'http://x', 'a b'] },
      Secrets: { sealKey: ['0f'.repeat(31), 'A'.repeat(43), `${'A'.repeat(42)}B`] },
    };
    t.same(faultsOf(file(t, bad)), [
      'Internal.allowHosts.1: is not a host name',
      'Internal.allowHosts.2: is not a host name',
      'Secrets.sealKey.0: is not 32 bytes in base64url or hex',
      'Secrets.sealKey.2: is not 32 bytes in base64url or hex',
      'Listen.proxyProtocol: needs TrustedProxies: the peers whose header counts',
    ]);
    const tls = { cert: 'cert.pem', key: 'key.pem' };
    t.same(
      faultsOf(file(t, { ...good, Listen: { proxyProtocol: true, tls } })),
      ['Listen.proxyProtocol: cannot be used with Listen.tls: end TLS at the proxy'],
      'uWebSockets.js looks for the header inside of TLS',
    );
    t.same(faultsOf(file(t, { ...good, Listen: { proxyProtocol: false, tls } })), []);
    t.same(
      faultsOf(file(t, { Secrets: { sealKey: 'short' } })),
      ['Secrets.sealKey: is not 32 bytes in base64url or hex'],
      'no fault names a value',
    );
    t.ok(faultsOf(file(t, { Secrets: { sealKey: [] } })).length > 0, 'an empty list');
    const configuration = loaded(file(t, {}), {
      GATEHOUSE_LISTEN_PROXY_PROTOCOL: 'true',
      GATEHOUSE_TRUSTED_PROXIES: '10.0.0.1',
      GATEHOUSE_INTERNAL_ALLOW_HOSTS: 'a.example, b.example',
      GATEHOUSE_SECRETS_SEAL_KEY: `${sealKey},${'A'.repeat(43)}`,
    });
    t.match(configuration, {
      listen: { proxyProtocol: true },
      internal: { allowHosts: ['a.example', 'b.example'] },
      sealKeys: [sealKey, 'A'.repeat(43)],
      sealKeyLost: false,
    });
  },
);

t.test('configuration: all faults are reported at once, each with the path of its key', async (t) => {
  const flags = file(t, {
    Listen: { port: 70_000, hots: 'x' },
    Unknown: 1,
    Production: 'yes',
    Modules: { wallet: { url: 'ftp://x' }, Walet: { url: 'http://x' }, mcp: { url: 'http://x' } },
    Settings: { ApiRPSLimit: -1, NoSuch: 1, FileBlockedExtensions: 5, FileDownloadByIdEnabled: 2 },
    Admin: { publicKeys: ['short'] },
    Fido2: { origins: ['env:GATEHOUSE_TEST_ORIGIN'] },
  });
  const faults = faultsOf(flags, { GATEHOUSE_LISTEN_PROT: '1' }).join('\n');
  for (const path of [
    'Listen.port',
    'Production',
    'Modules.wallet.url',
    'Modules.mcp',
    'Settings.ApiRPSLimit',
    'Settings.NoSuch',
    'Settings.FileBlockedExtensions',
    'Settings.FileDownloadByIdEnabled',
    'Admin.publicKeys.0',
    'Fido2.origins.0',
    'GATEHOUSE_LISTEN_PROT',
  ]) {
    t.match(faults, new RegExp(`^${path.replaceAll('.', '\\.')}: .`, 'm'), path);
  }
  t.match(faults, /hots/, 'the unknown key in Listen is named');
  t.match(faults, /Walet/, 'the malformed name of a module is named');
  t.match(faults, /Unknown/, 'the unknown top-level key is named');
});

t.test('configuration: an unknown name is shown with the one that it may stand for', async (t) => {
  const flags = file(t, {
    BaseURL: 'http://a',
    Listen: { prot: 1 },
    Modules: { wallet: { url: 'http://x', Key: 'sixteen-characters' } },
    Settings: { ApiRpsLimit: 1 },
    Unlike: 1,
    [`${'Project'.repeat(200)}`]: 1,
  });
  const faults = faultsOf(flags, { GATEHOUSE_PROJEKT: 'x' });
  t.same(faults.map((fault) => fault.replace(/(Project){9,}/, 'Projects')).sort(), [
    'BaseURL: unknown key; did you mean BaseUrl?',
    'GATEHOUSE_PROJEKT: unknown environment variable; did you mean GATEHOUSE_PROJECT?',
    'Listen.prot: unknown key; did you mean port?',
    'Modules.wallet.Key: unknown key; did you mean key?',
    'Projects: unknown key',
    'Settings.ApiRpsLimit: unknown setting; did you mean ApiRPSLimit?',
    'Unlike: unknown key',
  ]);
});

t.test('configuration: a broken file is refused with its line, a missing one by name', async (t) => {
  t.match(faultsOf(file(t, '{\n "Project": \n')).join('\n'), /gatehouse\.jsonc:[23]: /);
  t.match(faultsOf(file(t, '[1]')).join('\n'), /expected an object/);
  t.match(
    faultsOf({ ...NO_FLAGS, config: '/nonexistent/x.json' }).join('\n'),
    /cannot read \/nonexistent\/x\.json/,
  );
});

t.test('configuration: a module of any name, from the file and by the environment', async (t) => {
  const url = 'http://127.0.0.1:1';
  const flags = file(t, { Modules: { 'my-shop2': { url, public: ['/my-shop2/v1/news'] } } });
  const configuration = loaded(flags, {
    GATEHOUSE_MODULES_MY_SHOP2_POLL: 'true',
    GATEHOUSE_MODULES_WALLET_URL: `${url}/`,
  });
  const defaults = {
    key: undefined,
    poll: false,
    public: [],
    methods: [],
    encodedSlashes: false,
    contactSync: false,
    accountEvents: false,
  };
  t.strictSame(configuration.modules, {
    'my-shop2': { ...defaults, url, poll: true, public: ['/my-shop2/v1/news'] },
    wallet: { ...defaults, url },
  });
});

t.test('configuration: one module syncs contacts, with the methods of CardDAV', async (t) => {
  const url = 'http://127.0.0.1:1';
  const people = { url, contactSync: true, methods: ['PROPPATCH', 'REPORT'] };
  const result = loadConfiguration(file(t, { Modules: { people, core: { url } } }), {});
  t.match(result, {
    ok: true,
    configuration: { modules: { people: { contactSync: true }, core: { contactSync: false, methods: [] } } },
  });
  const { methods } = (result.ok && result.configuration.modules['people']) || { methods: [] };
  t.same([...methods].sort(), ['OPTIONS', 'PROPFIND', 'PROPPATCH', 'REPORT']);
  t.match(faultsOf(file(t, { Modules: { people, friends: { url, contactSync: true } } })), [
    /^Modules\.friends\.contactSync: another module has it/,
  ]);
  t.same(faultsOf(file(t, { Modules: { people, friends: { url, contactSync: false } } })), []);
});

t.test(
  'configuration: no module has the name of a path of the gateway, or one of another form',
  async (t) => {
    const own = routeTable()
      .map(({ path }) => path.split('/')[1]?.toLowerCase() ?? '')
      .filter((name) => new RegExp(MODULE_NAME).test(name));
    t.ok(own.length > 5);
    const faulty = [...own, 'gateway', 'https', 'token', 'Shop', '1shop', 'sh_op', '', 'a'.repeat(33)];
    for (const name of faulty) {
      const written = `{"Modules":{${JSON.stringify(name)}:{"url":"http://127.0.0.1:1"}}}`;
      t.match(faultsOf(file(t, written)).join('\n'), /^Modules/m, name);
    }
  },
);

t.test(
  'configuration: FileMaxSizeBytes above the hard cap is used as the hard cap; flags of settings take true',
  async (t) => {
    const configuration = loaded(
      file(t, { Settings: { FileMaxSizeBytes: 2 ** 40, FileDownloadByIdEnabled: true } }),
      {},
    );
    t.same(configuration.settings, { FileMaxSizeBytes: 104_857_600, FileDownloadByIdEnabled: 1 });
  },
);

const TOOL = {
  endpoint: 'http://127.0.0.1:1/x',
  method: 'GET',
  description: 'x',
  inputSchema: { type: 'object' },
};

// covers R16
t.test('configuration: custom tools and resources under Config, as spec 2.5 writes them', async (t) => {
  const resource = { endpoint: 'http://127.0.0.1:1/y', name: 'y' };
  const load = (content: unknown) => loadConfiguration(file(t, content), {}, [checkCatalog]);
  const under = load({ Config: { McpTools: { one: TOOL }, McpResources: { 'test://y': resource } } });
  t.ok(under.ok);
  if (under.ok)
    t.match(under.configuration, { mcpTools: { one: TOOL }, mcpResources: { 'test://y': resource } });
  const both = load({ McpTools: { two: TOOL }, Config: { McpTools: { one: TOOL } } });
  t.ok(both.ok);
  if (both.ok) t.same(both.configuration.mcpTools, { one: TOOL, two: TOOL });
  const empty = load({ Config: {} });
  t.ok(empty.ok && Object.keys(empty.configuration.mcpTools).length === 0);
});

// covers R16
t.test('configuration: faults under Config have the path of their key', async (t) => {
  const faults = (content: unknown) => {
    const result = loadConfiguration(file(t, content), {}, [checkCatalog]);
    return result.ok ? [] : result.faults.map(({ path }) => path);
  };
  const faulty = { ...TOOL, method: 'TRACE' };
  t.same(faults({ Config: { McpTools: { 'a/b.c': faulty } }, McpTools: { out: faulty } }).sort(), [
    'Config.McpTools.a/b.c.method',
    'McpTools.out.method',
  ]);
  t.same(faults({ Config: { McpTools: { one: TOOL } }, McpTools: { one: TOOL } }), ['Config.McpTools.one']);
  t.same(
    faults({ Config: { McpResources: { 'no uri': { endpoint: 'http://127.0.0.1:1/y', name: 'y' } } } }),
    ['Config.McpResources.no uri'],
  );
  for (const Config of [5, [], { McpTools: 5 }, { Project: 'x' }, { mcpTools: {} }]) {
    const found = faults({ Config });
    t.equal(found.length, 1, JSON.stringify(Config));
    t.match(found[0], /^Config/);
  }
});

// covers R24
t.test('configuration: changed keys that need a restart, by the names of the file', async (t) => {
  const load = (content: unknown, environment: Record<string, string> = {}, flags: Partial<Flags> = {}) => {
    return loaded({ ...file(t, content), ...flags }, environment);
  };
  const core = { url: 'http://127.0.0.1:1', key: 'sixteen-characters' };
  const started = load({ Project: 'a', Modules: { core }, Settings: { ApiRPSLimit: 3 } });
  t.same(
    keysForRestart(started, load({ Modules: { core }, Settings: { ApiRPSLimit: 3 }, Project: 'a' })),
    [],
  );
  const now = load({
    Project: 'b',
    Listen: { port: 9_000, tls: { cert: 'c.pem', key: 'k.pem' } },
    TrustedProxies: ['10.0.0.0/8'],
    Modules: { core: { ...core, key: 'another-key-of-it' }, chat: core },
    Settings: { IpRPSLimit: 5 },
    Fido2: { timestampDriftTolerance: 5 },
    FileServers: { 0: { Host: 'http://127.0.0.1:2' } },
    SendfileBehind: { header: 'X-Accel', prefix: '/_files/' },
    Secrets: { sealKey: '0f'.repeat(32), sealKeyLost: true },
    Workers: { threads: 2 },
    Log: { requests: 'off', format: 'pretty', level: 'warn' },
    Telemetry: { url: 'http://127.0.0.1:3', sampleRatio: 0.5 },
    Admin: { allow: [] },
    StaticPath: 'x',
  });
  t.same(keysForRestart(started, now).sort(), [
    'Admin.allow',
    'Fido2.timestampDriftTolerance',
    'FileServers.0',
    'Listen.port',
    'Listen.tls',
    'Log.format',
    'Log.level',
    'Log.requests',
    'Modules.chat',
    'Modules.core.key',
    'Project',
    'Secrets.sealKey',
    'Secrets.sealKeyLost',
    'SendfileBehind',
    'Settings.ApiRPSLimit',
    'Settings.IpRPSLimit',
    'StaticPath',
    'Telemetry',
    'TrustedProxies',
    'Workers.threads',
  ]);
  const reloaded = {
    McpTools: { one: TOOL },
    Config: { McpTools: { two: TOOL } },
    McpBasicPersonalReads: false,
  };
  const same = { Project: 'a', Modules: { core }, Settings: { ApiRPSLimit: 3 } };
  t.same(keysForRestart(started, load({ ...same, ...reloaded })), [], 'a reload takes these');
  const pinned = load(same, {}, { port: 0 });
  t.same(
    keysForRestart(pinned, load({ ...same, Listen: { port: 9 } }, {}, { port: 0 })),
    [],
    'a flag wins over the file after a restart too',
  );
  t.same(keysForRestart(started, load(same, { GATEHOUSE_PROJECT: 'c' })), ['Project']);
});

t.test('environment: twins are named after the path of their key', async (t) => {
  t.equal(twinName(['BaseUrl']), 'GATEHOUSE_BASE_URL');
  t.equal(twinName(['Settings', 'ApiRPSLimit']), 'GATEHOUSE_SETTINGS_API_RPS_LIMIT');
  t.ok(twins().has('GATEHOUSE_MODULES_WALLET_URL'));
  const configuration = loaded(NO_FLAGS, { GATEHOUSE_TRUSTED_PROXIES: '10.0.0.0/8, 192.168.0.0/16' });
  t.same(configuration.trustedProxies, ['10.0.0.0/8', '192.168.0.0/16']);
  t.match(faultsOf(NO_FLAGS, { GATEHOUSE_LISTEN_PORT: 'eighty' }).join(), /Listen\.port/);
});

t.test('flags: unknown ones, stray words and unusable ports are refused with a sentence', async (t) => {
  t.same(
    parseFlags([
      '--port',
      '0',
      '--internal-port',
      '9',
      '--data',
      'd',
      '--sandbox',
      '--new-journal',
      '--config',
      'c',
    ]),
    {
      port: 0,
      internalPort: 9,
      data: 'd',
      config: 'c',
      sandbox: true,
      newJournal: true,
    },
  );
  for (const args of [
    ['--prot', '1'],
    ['stray'],
    ['--port', 'x'],
    ['--port', '65536'],
    ['--port'],
    ['--data='],
  ]) {
    t.throws(() => parseFlags(args), { name: 'UsageError' }, args.join(' '));
  }
});

t.test('configuration: a fault of the syntax shows its column and line, long values cut', async (t) => {
  const secret = 'a-secret-of-the-operator';
  const file = `${t.testdir({})}/gatehouse.jsonc`;
  const messagesOf = (source: string) => {
    writeFileSync(file, source);
    const result = loadConfiguration({ ...NO_FLAGS, config: file }, {});
    const faults = result.ok ? [] : result.faults.filter(({ path }) => path === '');
    return faults.map(({ message }) => message.slice(file.length));
  };
  const comma = `{\n  "Secrets": { "sealKey": "${secret}" "sealKeyLost": true }\n}`;
  t.same(messagesOf(comma), [
    ':2: column 54: a comma is expected: "Secrets": { "sealKey": "a-se…" "sealKeyLost": true }',
  ]);
  const broken = [`{ "Secrets": { "sealKey": "${secret}`, `{ "Project": ${secret} }`, `{ "${secret}\n": 1 }`];
  for (const source of broken) {
    const faults = messagesOf(source);
    t.match(faults.join(), /:1: column \d+: /);
    t.notMatch(faults.join(), secret.slice(0, 12));
  }
});

t.test('configuration: a faulty value has its line, or the variable that wins over it', async (t) => {
  const file = `${t.testdir({})}/gatehouse.jsonc`;
  writeFileSync(file, '{\n  "Listen": {\n    "port": -1\n  },\n  "Project": "",\n  "Sandbx": 1\n}\n');
  const result = loadConfiguration({ ...NO_FLAGS, config: file }, { GATEHOUSE_PROJECT: ' x' });
  const places = result.ok
    ? []
    : result.faults.map(({ path, place }) => [path, place?.replace(file, 'FILE')]);
  t.same(places.sort(), [
    ['Listen.port', 'FILE:3'],
    ['Project', 'GATEHOUSE_PROJECT'],
    ['Sandbx', 'FILE:6'],
  ]);
});

t.test('configuration: $schema names the schema for editors and is no key', async (t) => {
  const file = `${t.testdir({})}/gatehouse.jsonc`;
  writeFileSync(file, '{ "$schema": "./gatehouse.schema.json", "Project": "shop" }');
  const result = loadConfiguration({ ...NO_FLAGS, config: file }, {});
  t.equal(result.ok && result.configuration.project, 'shop');
  writeFileSync(file, '{ "$schema": 1 }');
  t.equal(loadConfiguration({ ...NO_FLAGS, config: file }, {}).ok, false);
});
