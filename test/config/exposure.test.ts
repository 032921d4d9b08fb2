/** Refusals of production mode, warnings of a start, and printed addresses, which are public ones. */
import { writeFileSync } from 'node:fs';
import t from 'tap';
import { launch, launchFor, runToEnd } from '../../kit/launch.ts';
import { resolveSite } from '../../src/bootstrap/site.ts';
import { exposureWarnings, productionFaults } from '../../src/config/exposure.ts';
import { loadConfiguration, parseFlags } from '../../src/config/load.ts';
import type { Configuration } from '../../src/domain/config/configuration.ts';
import { featuresOf } from '../../src/domain/features.ts';

t.setTimeout(120_000);

/** The configuration of a file, with the rules of production mode. */
function load(file: object, ...args: string[]) {
  const path = `${t.testdir({ 'gatehouse.json': JSON.stringify(file) })}/gatehouse.json`;
  const flags = parseFlags(['--config', path, ...args]);
  return loadConfiguration(flags, {}, [
    (written, sandbox) => productionFaults(written, sandbox && !flags.sandbox),
  ]);
}

function siteOf(configuration: Configuration) {
  return resolveSite(configuration, '1.0.0', 8080, false, () => featuresOf());
}

function warningsOf(file: object, ...args: string[]): string[] {
  const result = load(file, ...args);
  if (!result.ok) throw new Error(JSON.stringify(result.faults));
  return exposureWarnings(result.configuration).map(({ detail }) => detail);
}

const PUBLIC = { Production: true, BaseUrl: 'https://gate.example', TrustedProxies: ['127.0.0.1'] };

// covers S123
t.test('production: a BaseUrl that is not https is a fault, elsewhere it is none', async (t) => {
  t.match(load({ ...PUBLIC, BaseUrl: 'http://gate.example' }), {
    ok: false,
    faults: [{ path: 'BaseUrl', message: 'is not https, as production mode asks' }],
  });
  t.match(load({ ...PUBLIC, Production: false, BaseUrl: 'http://gate.example' }), { ok: true });
  t.match(load(PUBLIC), { ok: true });
});

// covers R3
t.test(
  'BaseUrl: a path, a query or a user ends with 78; it is kept as an origin in one spelling',
  async (t) => {
    for (const BaseUrl of ['https://gate.example/sub', 'https://gate.example//', 'https://gate.example/?a=1'])
      t.match(
        load({ BaseUrl }),
        { ok: false, faults: [{ path: 'BaseUrl', message: 'is an origin: scheme, host and port only' }] },
        BaseUrl,
      );
    t.match(load({ BaseUrl: 'https://me@gate.example' }), { ok: false, faults: [{ path: 'BaseUrl' }] });
    const run = await runToEnd(['--check-config'], { GATEHOUSE_BASE_URL: 'https://gate.example/sub' });
    t.match(run, { code: 78, stderr: /BaseUrl: is an origin/ });
    for (const BaseUrl of ['https://gate.example', 'https://gate.example/', 'https://Gate.Example:443'])
      t.match(load({ BaseUrl }), { ok: true, configuration: { baseUrl: 'https://gate.example' } }, BaseUrl);
  },
);

t.test('OAuthRootMetadata: the issuer is BaseUrl, or BaseUrl/connect where it is false', async (t) => {
  const issuerOf = (content: object) => {
    const loaded = load(content);
    return loaded.ok && siteOf(loaded.configuration).issuer;
  };
  const BaseUrl = 'https://gate.example';
  t.equal(issuerOf({ BaseUrl }), BaseUrl);
  t.equal(issuerOf({ BaseUrl, OAuthRootMetadata: false }), `${BaseUrl}/connect`);
  t.equal(issuerOf({}), 'http://localhost:8080');
});

t.test(
  'secure cookies: the scheme of BaseUrl decides outside production, not that of another origin',
  async (t) => {
    const isSecure = (content: object) => {
      const loaded = load(content);
      return loaded.ok && siteOf(loaded.configuration).secureCookies;
    };
    const Fido2 = { origins: ['https://pages.example'], serverDomain: 'pages.example' };
    t.equal(isSecure({ BaseUrl: 'http://gate.example', Fido2 }), false);
    t.equal(isSecure({ BaseUrl: 'http://gate.example', AllowedOrigins: ['https://pages.example'] }), false);
    t.equal(isSecure({ BaseUrl: 'https://gate.example' }), true);
  },
);

// covers R81
t.test('Fido2.origins: pages and native apps are taken, other schemes are faults', async (t) => {
  const of = (origin: string) => {
    const loaded = load({ BaseUrl: 'https://gate.example', Fido2: { origins: [origin] } });
    return loaded.ok ? siteOf(loaded.configuration) : undefined;
  };
  for (const app of [`android:apk-key-hash:${'aB_-'.repeat(10)}abc`, 'ios:bundle-id:com.example.app']) {
    const site = of(app);
    t.same(site?.fido2.origins, [app]);
    t.notOk(site?.origins.has(app), 'it may not send cookies');
  }
  for (const wrong of [
    'android:apk-key-hash:short',
    'ios:bundle-id:',
    'custom:app',
    'https://a.example/path',
  ])
    t.equal(of(wrong), undefined, wrong);
});

// covers S123
t.test('production: a sandbox without --sandbox ends the start with 78 and one sentence', async (t) => {
  const run = await runToEnd(['--check-config'], { GATEHOUSE_PRODUCTION: 'true' });
  t.match(run, {
    code: 78,
    stderr:
      'configuration: Production: the sandbox has demo money: name a configuration with --config, or ask for it with --sandbox (GATEHOUSE_PRODUCTION)\n',
  });
  t.match(await runToEnd(['--check-config', '--sandbox'], { GATEHOUSE_PRODUCTION: 'true' }), { code: 0 });
});

t.test('production: the sandbox, no BaseUrl and loopback without proxies are a warning each', async (t) => {
  t.same(warningsOf(PUBLIC), []);
  t.match(warningsOf(PUBLIC, '--sandbox'), [/with the sandbox/]);
  t.match(warningsOf({ ...PUBLIC, BaseUrl: undefined }), [/without BaseUrl/]);
  t.match(warningsOf({ ...PUBLIC, TrustedProxies: [] }), [/empty TrustedProxies/]);
  t.same(warningsOf({ ...PUBLIC, TrustedProxies: [], Listen: { host: '192.0.2.1' } }), []);
  t.same(warningsOf({}), [], 'on loopback outside of production nothing is unusual');
});

t.test('BaseUrl: every address that a start prints is below it, and pages receive it', async (t) => {
  const file = `${t.testdir()}/gatehouse.json`;
  writeFileSync(file, JSON.stringify({ BaseUrl: 'https://gate.example/' }));
  const gateway = await launch({ args: ['--config', file] });
  const headers = { host: 'gate.example' };
  const info = await fetch(`${gateway.url}/auth/v1/info`, { headers });
  t.match(await info.json(), { result: { baseUrl: 'https://gate.example' } });
  const openapi = await fetch(`${gateway.url}/docs/openapi.json`, { headers });
  t.match(await openapi.json(), { servers: [{ url: 'https://gate.example' }] });
  await gateway.stop();
  const { stdout } = gateway.output();
  for (const path of ['/', '/docs/swagger/', '/mcp', '/health', '/auth/v1/info', '/ProxyAdmin/Setup#'])
    t.match(stdout, ` https://gate.example${path}`, path);
  t.match(stdout, '"url": "https://gate.example/mcp"', 'what to paste into an MCP host');
  t.match(stdout, `listens on     ${gateway.url}\n`);
  t.match(stdout, `process        ${gateway.process.pid} `, 'where signals go');
});

// covers S121
t.test('admin: behind an untrusted proxy every request is refused, and the log says so once', async (t) => {
  const gateway = await launchFor(t, {});
  const ask = async (path: string, forwardedFor?: string) => {
    const headers = forwardedFor === undefined ? {} : { 'x-forwarded-for': forwardedFor };
    const answer = await fetch(`${gateway.url}${path}`, { headers });
    return { status: answer.status, text: await answer.text() };
  };
  for (const address of ['192.0.2.1', '127.0.0.1', 'unknown'])
    t.match(await ask('/ProxyAdmin/api/overview', address), { status: 403, text: /"code":1103/ }, address);
  t.equal((await ask('/ProxyAdmin/api/overview')).status, 401, 'without a proxy a session is required');
  t.equal((await ask('/auth/v1/info', '192.0.2.1')).status, 200, 'other routes are served');
  t.equal(gateway.output().stderr.split('"msg":"untrusted proxy"').length - 1, 1);
});

const proxied = await launchFor(t, { configuration: { TrustedProxies: ['127.0.0.1'] } });
const asked = async (path: string, forwardedFor: string) =>
  (await fetch(`${proxied.url}${path}`, { headers: { 'x-forwarded-for': forwardedFor } })).status;

t.test('admin: behind a trusted proxy the address of its client decides', async (t) => {
  t.equal(await asked('/ProxyAdmin/api/overview', '192.0.2.1'), 403, 'not in Admin.allow');
  t.equal(await asked('/ProxyAdmin/api/overview', '127.0.0.1'), 401);
});

// covers S122
t.test(
  'admin: a client that a trusted proxy names unreadably is refused, other routes serve it',
  async (t) => {
    const trusted = Array.from({ length: 33 }, () => '127.0.0.1').join(',');
    for (const address of ['unknown', '', '_hidden', 'garbage, 127.0.0.1', '1.2.3', '127.0.0.1,', trusted]) {
      t.equal(await asked('/ProxyAdmin/api/overview', address), 403, address);
      t.equal(await asked('/auth/v1/info', address), 200, address);
    }
  },
);
