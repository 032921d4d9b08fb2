/** Storage servers in the configuration: a server or a bucket, defaults, secrets and faults. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { loadConfiguration } from '../../src/config/load.ts';
import { agreementOf } from '../../src/domain/config/agreement.ts';
import { SECRET_PATHS } from '../../src/domain/config/keys.ts';

const Host = 'http://127.0.0.1:1';
const S3 = {
  Endpoint: 'https://s3.example.org',
  Bucket: 'files',
  AccessKeyId: 'env:KEY',
  SecretAccessKey: 'env:SECRET',
};

function load(t: Test, server: object, environment: Record<string, string> = {}) {
  const config = join(t.testdir(), 'gatehouse.json');
  writeFileSync(config, JSON.stringify({ FileServers: { 5: server } }));
  const secrets = { KEY: 'key', SECRET: 'secret', ...environment };
  return loadConfiguration({ sandbox: true, newJournal: false, config }, secrets);
}

function faultsOf(t: Test, server: object): string[] {
  const result = load(t, server);
  return result.ok ? [] : result.faults.map(({ path, message }) => `${path}: ${message}`);
}

t.test('file servers: a server has Host or S3, with defaults, and secrets from elsewhere', async (t) => {
  const loaded = load(t, { S3 });
  t.same(loaded.ok && loaded.configuration.fileServers, {
    5: {
      S3: {
        endpoint: 'https://s3.example.org',
        region: 'us-east-1',
        bucket: 'files',
        prefix: '',
        accessKeyId: 'key',
        secretAccessKey: 'secret',
        pathStyle: false,
        redirectDownloads: false,
      },
    },
  });
  const plain = load(t, { Host });
  t.same(plain.ok && plain.configuration.fileServers, { 5: { Host } });
  t.match(SECRET_PATHS.join(' '), /FileServers\.\*\.S3\.AccessKeyId FileServers\.\*\.S3\.SecretAccessKey/);
});

t.test('file servers: every fault is named by its key', async (t) => {
  const both = 'FileServers.5: needs Host or S3, and not both';
  t.same(faultsOf(t, {}), [both]);
  t.same(faultsOf(t, { Host, S3 }), [both]);
  const faults: [more: object, fault: RegExp][] = [
    [{ Endpoint: 'ftp://h' }, /^FileServers\.5\.S3\.Endpoint: /],
    [{ Endpoint: 'https://a:b@h' }, /^FileServers\.5\.S3\.Endpoint: must not hold a user name/],
    [{ Endpoint: 'http://127.0.0.1:9000' }, /^FileServers\.5\.S3\.PathStyle: must be true/],
    [{ Endpoint: 'http://[::1]:9000', PathStyle: false }, /^FileServers\.5\.S3\.PathStyle: must be true/],
    [{ Bucket: 'a/b' }, /^FileServers\.5\.S3\.Bucket: must be the name of a bucket/],
    [{ Prefix: 'a' }, /^FileServers\.5\.S3\.Prefix: must be names that each end in \//],
    [{ Prefix: '../' }, /^FileServers\.5\.S3\.Prefix: /],
    [{ Prefix: '/a/' }, /^FileServers\.5\.S3\.Prefix: /],
    [{ Region: 'eu central' }, /^FileServers\.5\.S3\.Region: /],
    [{ SecretAccessKey: 'env:NONE' }, /^FileServers\.5\.S3\.SecretAccessKey: .*NONE is not set/],
    [{ SecretAccessKey: 'vault:x' }, /^FileServers\.5\.S3\.SecretAccessKey: begins with vault:/],
    [{ Secret: 'x' }, /^FileServers\.5\.S3\.Secret: /],
  ];
  for (const [more, fault] of faults) t.match(faultsOf(t, { S3: { ...S3, ...more } }), [fault]);
  t.same(faultsOf(t, { S3: { ...S3, Endpoint: 'http://127.0.0.1:9000', PathStyle: true } }), []);
});

t.test('file servers: nodes agree on buckets, and each may have a key of its own', async (t) => {
  const digest = (server: object, environment?: Record<string, string>) => {
    const result = load(t, server, environment);
    return result.ok ? Buffer.from(agreementOf(result.configuration)).toString('hex') : '';
  };
  t.equal(digest({ S3 }), digest({ S3 }, { KEY: 'other', SECRET: 'other' }));
  t.not(digest({ S3 }), digest({ S3: { ...S3, Bucket: 'other' } }));
});
