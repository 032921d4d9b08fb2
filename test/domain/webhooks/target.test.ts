/** Addresses of webhooks: every way to spell an inner address, what is exempt, and no public address refused. */
import fc from 'fast-check';
import t from 'tap';
import { judgeWebhookUrl, mayConnect, type WebhookRules } from '../../../src/domain/webhooks/target.ts';
import { runs } from '../../support/depth.ts';

const STRICT: WebhookRules = { production: true, allow: [], ports: '' };
const OPEN: WebhookRules = { production: false, allow: [], ports: '' };
const LOOPBACK: WebhookRules = { production: false, allow: ['127.0.0.0/8', '::1/128'], ports: '' };

const ok = (url: string, rules: WebhookRules) => judgeWebhookUrl(url, rules).ok;

const LOOPBACK_SPELLINGS = [
  '127.0.0.1',
  '127.255.255.254',
  '127.1',
  '2130706433',
  '0x7f.1',
  '0x7f000001',
  '0177.0.0.1',
  '017700000001',
  '127.0.0.1.',
  '127.0x0.0.1',
  '１２７.0.0.1',
  '127。0。0。1',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  'localhost',
  'localhost.',
  'LOCALHOST',
  '%6c%6fcalhost',
  'ｌocalhost',
  'a.b.localhost',
  'a.localhost.',
  'localhost.localdomain',
  'ip6-localhost',
  'ip6-loopback',
];
const INNER = [
  '0.0.0.0',
  '0',
  '10.0.0.1',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '100.64.0.1',
  '169.254.169.254',
  '0xa9fea9fe',
  '192.0.0.192',
  '168.63.129.16',
  '0xa83f8110',
  '[::ffff:168.63.129.16]',
  '100.100.100.200',
  '[fd20:ce::254]',
  '[fe80::a9fe:a9fe]',
  '192.0.2.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '[::]',
  '[::7f00:1]',
  '[::ffff:10.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[64:ff9b::8.8.8.8]',
  '[64:ff9b:1::a00:1]',
  '[2002:7f00:1::1]',
  '[2001::1]',
  '[2001:db8::1]',
  '[2001:2::1]',
  '[3fff::1]',
  '[100::1]',
  '[5f00::1]',
  '[fc00::1]',
  '[fd00:ec2::254]',
  '[fe80::1]',
  '[fec0::1]',
  '[ff02::1]',
  '[4000::1]',
];

// covers R13 S24
t.test(
  'webhook target: every spelling of an inner address is refused, in production and without',
  async (t) => {
    const hosts = [...LOOPBACK_SPELLINGS, ...INNER];
    const secure = hosts.flatMap((host) => [`https://${host}/`, `https://${host}:8443/x?y`]);
    const plain = hosts.map((host) => `http://${host}/`);
    t.same(
      secure.filter((url) => ok(url, STRICT)),
      [],
      'in production',
    );
    t.same(
      [...secure, ...plain].filter((url) => ok(url, OPEN)),
      [],
      'without',
    );
  },
);

t.test(
  'webhook target: an exempt range frees its addresses from the rules on address and scheme',
  async (t) => {
    t.same(
      LOOPBACK_SPELLINGS.filter((host) => !ok(`http://${host}:9000/`, LOOPBACK)),
      [],
    );
    t.same(
      INNER.filter((host) => ok(`http://${host}/`, LOOPBACK)),
      [],
    );
    const exempt: WebhookRules = {
      production: true,
      ports: '',
      allow: ['10.1.0.0/16', '192.168.7.7', 'fd00::/8', '2001:db8::5'],
    };
    for (const host of ['10.1.2.3', '192.168.7.7', '[fd12::1]', '[2001:db8::5]', '[::ffff:10.1.0.1]'])
      t.equal(ok(`http://${host}/`, exempt), true, host);
    for (const host of [
      '10.2.0.1',
      '192.168.7.8',
      '[fc12::1]',
      '[2001:db8::6]',
      'localhost',
      'hooks.example',
    ])
      t.equal(ok(`http://${host}/`, exempt), false, host);
    t.equal(ok('http://u:p@10.1.2.3/', exempt), false, 'what is exempt keeps the other rules');
  },
);

// covers R13 S24
t.test('webhook target: public names and addresses pass; plain http only without production', async (t) => {
  const hosts = [
    'hooks.example',
    'hooks.example.',
    'xn--bcher-kva.example',
    'notlocalhost',
    '8.8.8.8',
    '[2606:4700::1111]',
    '[::ffff:8.8.8.8]',
  ];
  for (const host of hosts) {
    t.equal(ok(`https://${host}/hook?a=b`, STRICT), true, host);
    t.equal(ok(`http://${host}/`, OPEN), true, host);
    t.same(judgeWebhookUrl(`http://${host}/`, STRICT), { ok: false, reason: 'expected https' }, host);
  }
});

t.test('webhook target: other schemes, broken syntax, user names and white space are refused', async (t) => {
  const bad = [
    '',
    'hooks.example',
    '//hooks.example',
    'ftp://hooks.example',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'data:,x',
    'https:hooks.example',
    'https:/hooks.example',
    'https://',
    'https:///',
    'https://.',
    'https://a b/',
    ' https://hooks.example',
    'https://hooks.example/\n',
    'https://hooks.exa\tmple',
    'https://user@hooks.example',
    'https://:secret@hooks.example',
    'https://hooks.example@127.0.0.1/',
    'https://hooks.example:99999/',
    'https://[::1',
    'https://[fe80::1%25eth0]/',
    'https://256.1.1.1/',
  ];
  for (const url of bad) t.equal(ok(url, OPEN), false, JSON.stringify(url));
});

t.test('webhook target: the reason of a refusal never reveals the address of a name', async (t) => {
  const reasons = [...LOOPBACK_SPELLINGS, ...INNER].map((host) => {
    const verdict = judgeWebhookUrl(`https://${host}/`, OPEN);
    return [host, verdict.ok ? '' : verdict.reason];
  });
  t.same(
    reasons,
    reasons.map(([host]) => [host, 'this address is not allowed']),
  );
});

t.test('webhook target: what may be connected to is what may be registered, for any address', async (t) => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.constantFrom(STRICT, OPEN, LOOPBACK), (address, rules) => {
      const host = address.includes(':') ? `[${address}]` : address;
      return mayConnect(address, rules) === ok(`https://${host}/`, rules);
    }),
    runs(5_000),
  );
  for (const text of ['', 'localhost', 'hooks.example']) t.equal(mayConnect(text, LOOPBACK), false, text);
});
