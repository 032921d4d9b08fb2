/** The agent's key: its letters and signatures, its file, the addresses that name a gateway; and the manifest of the package. */
import { createPublicKey, verify } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { addressOf } from '../../../packages/connect/src/address.ts';
import { createKeyPair, enrollmentLink, keyOf, lettersOf } from '../../../packages/connect/src/agent-key.ts';
import { defaultKeyFile, loadKey } from '../../../packages/connect/src/key-file.ts';
import { sign } from '../../../packages/connect/src/login.ts';

const COUNTED = Buffer.from(Array.from({ length: 32 }, (_, index) => index)).toString('base64url');

t.test('connector: letters are the first six of the base32 of the SHA-256 of the raw key', async (t) => {
  t.equal(lettersOf(COUNTED), 'MMG42K');
});

t.test('connector: a link carries key and name in its fragment, and not the letters', async (t) => {
  const { publicKey } = createKeyPair();
  const link = new URL(enrollmentLink('https://gate.example/mcp', publicKey, `a & b${'x'.repeat(80)}`));
  t.equal(`${link.origin}${link.pathname}${link.search}`, 'https://gate.example/');
  const fields = new URLSearchParams(link.hash.slice(1));
  t.strictSame([...fields.keys()], ['agent-key', 'agent-name']);
  t.equal(fields.get('agent-key'), publicKey);
  t.match(fields.get('agent-name'), /^a & bx{59}$/);
});

t.test('connector: a signature is over the timestamp as 8 bytes, and the key verifies it', async (t) => {
  const { publicKey, secretKey } = createKeyPair();
  const headers = sign(secretKey, 1_764_000_000);
  const message = Buffer.alloc(8);
  message.writeBigInt64LE(1_764_000_000n);
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' });
  t.equal(headers['X-PublicKey'], publicKey);
  t.equal(headers['X-Timestamp'], '1764000000');
  t.ok(verify(null, message, key, Buffer.from(headers['X-Signature'] ?? '', 'base64url')));
});

t.test('connector: a secret that is not the base64url of 32 bytes is refused', async (t) => {
  for (const wrong of ['', 'x', `${'A'.repeat(42)}=`, 'A'.repeat(44), `${'A'.repeat(42)}B`])
    t.throws(() => keyOf(wrong), /base64url of 32 bytes/, wrong);
});

t.test('connector: a key file is made once, for its owner alone', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'connector-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = defaultKeyFile('https://gate.example:8443', { XDG_CONFIG_HOME: folder });
  t.equal(file, join(folder, 'gatehouse-connect', 'gate.example_8443.json'));
  const first = loadKey(file);
  t.ok(first.isNew);
  t.equal(statSync(file).mode & 0o777, 0o600);
  const second = loadKey(file);
  t.strictSame([second.isNew, second.key.publicKey], [false, first.key.publicKey]);
});

t.test('connector: a key file that others may read, or that holds no key, is refused and kept', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'connector-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'key.json');
  writeFileSync(file, '{"secretKey":"short"}', { mode: 0o600 });
  t.throws(() => loadKey(file), /holds no key/);
  chmodSync(file, 0o644);
  t.throws(() => loadKey(file), /chmod 600/);
  t.equal(readFileSync(file, 'utf8'), '{"secretKey":"short"}');
});

t.test('connector: each address of a gateway leads to the endpoint that takes headers', async (t) => {
  const rows: [string, string][] = [
    ['https://gate.example', '/mcp'],
    ['https://gate.example/', '/mcp'],
    ['https://gate.example/mcp?tools=wallet', '/mcp?tools=wallet'],
    ['https://gate.example/connect/mcp', '/mcp'],
    ['https://gate.example/connect/p/shop/mcp', '/mcp/p/shop'],
    ['https://gate.example/mcp/p/shop', '/mcp/p/shop'],
  ];
  t.strictSame(
    rows.map(([url]) => addressOf(url).mcp),
    rows.map(([, path]) => `https://gate.example${path}`),
  );
});

t.test('connector: an address that names no gateway is refused with what one looks like', async (t) => {
  for (const wrong of ['gate.example', 'ftp://gate.example', '', 'https://'])
    t.throws(() => addressOf(wrong), /such as https:\/\/gate\.example/, wrong);
  t.throws(() => addressOf('https://me:pw@gate.example'), /name or password/);
  t.throws(() => addressOf('https://gate.example/docs'), /no MCP endpoint/);
});

interface Manifest {
  readonly version: string;
  readonly dependencies?: object;
  readonly scripts: object;
}

const manifestOf = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Manifest;

t.test(
  'connector: its package has the version of the gateway, no dependency and no install script',
  async (t) => {
    const own = manifestOf('packages/connect/package.json');
    t.equal(own.version, manifestOf('package.json').version);
    t.equal(own.dependencies, undefined);
    t.strictSame(Object.keys(own.scripts), ['prepack']);
  },
);
