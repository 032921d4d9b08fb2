/** Values of the configuration that stand in variables and files, and secrets that would stay a name. */
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { outputOf } from '../../kit/run-sync.ts';
import { loadConfiguration } from '../../src/config/load.ts';
import { printedSchema } from '../../src/config/printed-schema.ts';
import { SECRET_PATHS } from '../../src/domain/config/keys.ts';

const SECRET = 'sixteen-characters';
const url = 'http://127.0.0.1:1';

function load(t: Test, content: object, environment: Readonly<Record<string, string>> = {}) {
  const config = join(t.testdir(), 'gatehouse.json');
  writeFileSync(config, JSON.stringify(content));
  return loadConfiguration({ sandbox: false, newJournal: false, config }, environment);
}

function keyOf(t: Test, key: string, environment: Readonly<Record<string, string>> = {}): string | undefined {
  const result = load(t, { Modules: { wallet: { url, key } } }, environment);
  if (result.ok) return result.configuration.modules['wallet']?.key;
  return result.faults.map(({ path, message }) => `${path}: ${message}`).join('\n');
}

function secretFile(t: Test, content: string | Uint8Array, mode = 0o444): string {
  const path = join(t.testdir(), 'secret');
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

t.test('secrets: file:/PATH is the content, through links, without one newline at its end', async (t) => {
  for (const [content, expected] of [
    [SECRET, SECRET],
    [`${SECRET}\n`, SECRET],
    [`${SECRET}\r\n`, SECRET],
    [`${SECRET}\n\n`, `${SECRET}\n`],
    [` ${SECRET} `, ` ${SECRET} `],
    ['k'.repeat(4_096), 'k'.repeat(4_096)],
  ] as const)
    await t.test(JSON.stringify(content.slice(0, 24)), async (t) => {
      const path = secretFile(t, content);
      const link = join(t.testdirName, 'link');
      symlinkSync(path, link);
      const written = JSON.stringify({ Modules: { wallet: { url, key: `file:${link}` } } });
      const config = join(t.testdirName, 'gatehouse.json');
      writeFileSync(config, written);
      const flags = { sandbox: false, newJournal: false, config };
      const keyNow = () => {
        const result = loadConfiguration(flags, {});
        return result.ok ? result.configuration.modules['wallet']?.key : result.faults;
      };
      t.equal(keyNow(), expected);
      chmodSync(path, 0o644);
      writeFileSync(path, `another-${SECRET}`);
      t.equal(keyNow(), `another-${SECRET}`, 'read again at a reload');
    });
});

t.test('secrets: a file that cannot be had is a fault at its key, which shows no content', async (t) => {
  const folder = t.testdir();
  const file = (name: string, content: string | Uint8Array, mode = 0o444) => {
    const path = join(folder, name);
    writeFileSync(path, content);
    chmodSync(path, mode);
    return path;
  };
  const pipe = join(folder, 'pipe');
  outputOf('mkfifo', [pipe]);
  mkdirSync(join(folder, 'folder'));
  const cases: readonly (readonly [path: string, message: RegExp])[] = [
    [join(folder, 'none'), /ENOENT/],
    [join(folder, 'folder'), /is no file$/],
    [pipe, /is no file$/],
    [file('open', SECRET, 0o646), /may be written by everyone$/],
    [file('empty', '\n'), /is empty$/],
    [file('long', SECRET.repeat(4_000)), /is longer than 65536 bytes$/],
    [file('binary', Buffer.from([0xff, 0xfe, ...Buffer.from(SECRET)])), /is not UTF-8 text$/],
  ];
  for (const [path, message] of cases)
    await t.test(message.source, async (t) => {
      const found = String(keyOf(t, `file:${path}`));
      t.match(found, message);
      t.match(found, /^Modules\.wallet\.key: /);
      t.notMatch(found, SECRET);
    });
  await t.test('a relative path', async (t) => {
    t.equal(keyOf(t, `file:${SECRET}`), 'Modules.wallet.key: file: needs an absolute path');
  });
});

t.test('secrets: a variable may name a file, and a twin may name either', async (t) => {
  const sealKey = '0f'.repeat(32);
  const path = join(t.testdir(), 'seal');
  writeFileSync(path, sealKey);
  const result = loadConfiguration(
    { sandbox: false, newJournal: false },
    { GATEHOUSE_SECRETS_SEAL_KEY: `file:${path},${'1e'.repeat(32)}` },
  );
  t.same(result.ok && result.configuration.sealKeys, [sealKey, '1e'.repeat(32)]);
});

t.test('secrets: a form of another program is a fault at secrets, and a text elsewhere', async (t) => {
  for (const form of ['vault', 'secret', 'aws', 'k8s', 'docker'])
    await t.test(form, async (t) => {
      const result = load(t, {
        Project: `${form}:x`,
        Modules: { wallet: { url, key: `${form}:x` } },
        Secrets: { sealKey: [`${form}:x`] },
        Telemetry: { url, headers: { authorization: `${form}:x` } },
      });
      t.same(
        result.ok ? [] : result.faults.map(({ path }) => path).sort(),
        ['Modules.wallet.key', 'Secrets.sealKey.0', 'Telemetry.headers.authorization'],
        'once each',
      );
    });
  await t.test('other texts with a colon', async (t) => {
    t.equal(keyOf(t, 'user:sixteen-characters'), 'user:sixteen-characters');
    t.match(load(t, { Project: 'file: a sentence' }), { ok: true });
    t.match(keyOf(t, 'file://host/sixteen-characters'), /begins with file:/);
  });
});

t.test('secrets: the schema marks them, for editors and for the checks', async (t) => {
  t.same([...SECRET_PATHS].sort(), [
    'Cluster.secret',
    'Cluster.secret.*',
    'FileServers.*.S3.AccessKeyId',
    'FileServers.*.S3.SecretAccessKey',
    'Modules.*.key',
    'Secrets.sealKey',
    'Secrets.sealKey.*',
    'Telemetry.headers.*',
  ]);
  t.match(JSON.stringify(printedSchema()), /"writeOnly":true/);
});
