/** Keys on hosts that connect with OAuth: defaults by mode, and what is refused. */
import t from 'tap';
import { loadConfiguration, parseFlags } from '../../src/config/load.ts';

const PRODUCTION = { Production: true, BaseUrl: 'https://gate.example' };

function load(file: object) {
  const path = `${t.testdir({ 'gatehouse.json': JSON.stringify(file) })}/gatehouse.json`;
  return loadConfiguration(parseFlags(['--config', path]), {});
}

function faultsOf(file: object): string[] {
  const result = load(file);
  return result.ok ? [] : result.faults.map(({ path, message }) => `${path}: ${message}`);
}

t.test('OAuth keys: registration is on in every mode, documents in Production and with cimd', async (t) => {
  const found = (file: object) => {
    const loaded = load(file);
    return loaded.ok && [loaded.configuration.oauthClients, loaded.configuration.oauthDocuments];
  };
  t.strictSame(found({}), ['any', false]);
  t.strictSame(found(PRODUCTION), ['any', true]);
  t.strictSame(found({ OAuthClients: 'cimd' }), ['cimd', true]);
  t.strictSame(found({ OAuthClients: 'registered' }), ['registered', false]);
  t.strictSame(found({ ...PRODUCTION, OAuthDocuments: false }), ['any', false]);
  t.match(faultsOf({ OAuthClients: 'all' }), [/^OAuthClients: /]);
});

t.test(
  'OAuth keys: documents off with cimd, which takes nothing else of unknown hosts, is a fault',
  async (t) => {
    for (const mode of [{}, PRODUCTION])
      t.strictSame(faultsOf({ ...mode, OAuthClients: 'cimd', OAuthDocuments: false }), [
        'OAuthDocuments: is false, and OAuthClients "cimd" takes documents',
      ]);
    t.strictSame(faultsOf({ OAuthClients: 'registered', OAuthDocuments: false }), []);
  },
);

// covers S91
t.test('OAuth keys: documents come from loopback on a loopback listener of development alone', async (t) => {
  const loopback = ['127.0.0.0/8', '::1/128'];
  const allowed = (file: object) => {
    const loaded = load(file);
    return loaded.ok && loaded.configuration.oauthDocumentAllow;
  };
  t.strictSame(allowed({}), loopback);
  t.strictSame(allowed({ Listen: { host: '::1' } }), loopback);
  t.strictSame(allowed({ Listen: { host: '0.0.0.0' } }), []);
  t.strictSame(allowed(PRODUCTION), [], 'a proxy stands before it');
  t.strictSame(allowed({ Listen: { host: '0.0.0.0' }, WebhookAllow: ['10.0.0.0/8'] }), [], 'not of webhooks');
  t.strictSame(allowed({ ...PRODUCTION, OAuthDocumentAllow: ['10.1.0.0/16'] }), ['10.1.0.0/16']);
  t.match(faultsOf({ OAuthDocumentAllow: ['10.0.0.0/99'] }), [/^OAuthDocumentAllow.0: /]);
});

t.test(
  'OAuth keys: hosts are lower-case; private redirects have an authority, and a list replaces the default',
  async (t) => {
    const redirects = (file: object) => {
      const loaded = load(file);
      return loaded.ok && loaded.configuration.oauthPrivateRedirects;
    };
    t.strictSame(redirects({}), ['cursor://anysphere.cursor-mcp/oauth/']);
    t.strictSame(redirects({ OAuthPrivateRedirects: [] }), []);
    t.strictSame(redirects({ OAuthPrivateRedirects: ['studio://auth/'] }), ['studio://auth/']);
    t.match(faultsOf({ OAuthPrivateRedirects: ['cursor:', 'https://host.example/'] }), [
      /^OAuthPrivateRedirects.0: /,
      /^OAuthPrivateRedirects.1: /,
    ]);
    t.match(load({ OAuthClientHosts: ['Host.Example'] }), {
      configuration: { oauthClientHosts: ['host.example'] },
    });
    t.match(faultsOf({ OAuthClientHosts: ['https://host.example'] }), [/^OAuthClientHosts.0: /]);
  },
);
