import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import t from 'tap';
import {
  AcceptorHandshake,
  DialerHandshake,
  HandshakeRefused,
  HELLO_BYTES_MAX,
  type Identity,
  linkKeys,
  type RefusalReason,
} from '../../../src/io/cluster/handshake.ts';
import { LOG_ID, SECRET } from '../../support/cluster/node.ts';
import { runs } from '../../support/depth.ts';

const RUNS = 5_000;

interface Side {
  readonly node?: number;
  readonly logId?: string;
  readonly secrets?: readonly string[];
  readonly binding?: string;
}

function optionsOf({ node = 1, logId = LOG_ID, secrets = [SECRET], binding = '' }: Side) {
  const self: Identity = { node, incarnation: 7, logId, version: '0.2.0' };
  return { self, keys: linkKeys(secrets), randomBytes, binding };
}

const acceptorOf = (side: Side = {}) => new AcceptorHandshake(optionsOf({ node: 2, ...side }));
const dialerOf = (side: Side = {}, node = 2) => new DialerHandshake(optionsOf({ node: 1, ...side }), node);
const bytes = (text: string) => Buffer.from(text);
const refused = (reason: RefusalReason, byPeer = false) => new HandshakeRefused(reason, byPeer);

/** Runs all three messages; what both know of each other, or the reason of the refusal. */
function run(acceptor: AcceptorHandshake, dialer: DialerHandshake): readonly number[] | string {
  try {
    const { peer, message } = acceptor.answer(bytes(dialer.hello(bytes(acceptor.greeting()))));
    return [peer.node, dialer.finish(bytes(message)).node];
  } catch (error) {
    if (error instanceof HandshakeRefused) return error.reason;
    throw error;
  }
}

t.test('handshake: two nodes with one secret know each other by number', async (t) => {
  t.same(run(acceptorOf(), dialerOf()), [1, 2]);
});

t.test('handshake: a secret can be changed node by node', async (t) => {
  const both = { secrets: ['the new one', SECRET] };
  t.same(run(acceptorOf(both), dialerOf()), [1, 2], 'the old one still dials');
  t.same(run(acceptorOf({ secrets: [SECRET, 'the new one'] }), dialerOf(both)), [1, 2]);
  t.equal(run(acceptorOf(), dialerOf(both)), 'secret', 'the new one must be known before it is used');
});

t.test('handshake: each fault is refused with its reason', async (t) => {
  t.equal(run(acceptorOf(), dialerOf({ secrets: ['another'] })), 'secret');
  t.equal(run(acceptorOf(), dialerOf({ logId: 'another log' })), 'log');
  t.equal(run(acceptorOf({ node: 3 }), dialerOf()), 'node', 'another node answers at the address');
  t.equal(run(acceptorOf({ node: 1 }), dialerOf({}, 1)), 'node', 'the node has dialed itself');
  t.equal(
    run(acceptorOf({ binding: 'a' }), dialerOf({ binding: 'b' })),
    'secret',
    'relayed into another session',
  );
});

t.test('handshake: a recorded message proves nothing to the next challenge', async (t) => {
  const hello = dialerOf().hello(bytes(acceptorOf().greeting()));
  t.throws(() => acceptorOf().answer(bytes(hello)), refused('secret'));
  const dialer = dialerOf();
  const acceptor = acceptorOf();
  const { message } = acceptor.answer(bytes(dialerOf().hello(bytes(acceptor.greeting()))));
  dialer.hello(bytes(acceptor.greeting()));
  t.throws(() => dialer.finish(bytes(message)), refused('secret'), 'nor does a recorded answer');
});

t.test("handshake: a dialer's own proof is no answer to it", async (t) => {
  const dialer = dialerOf();
  const hello = dialer.hello(bytes(acceptorOf().greeting()));
  t.throws(() => dialer.finish(bytes(hello)), refused('secret'));
});

t.test('handshake: every field is covered by the proof', async (t) => {
  const changed = { layout: 2, node: 9, incarnation: 8, logId: 'x', version: 'x', nonce: 'x', proof: 'AAAA' };
  for (const [field, value] of Object.entries(changed)) {
    const acceptor = acceptorOf();
    const hello = { ...JSON.parse(dialerOf().hello(bytes(acceptor.greeting()))), [field]: value };
    t.throws(() => acceptor.answer(bytes(JSON.stringify(hello))), refused('secret'), field);
  }
});

t.test(
  'handshake: the proof is the HMAC that the decision describes, and another layout is refused',
  async (t) => {
    const key = Buffer.from(hkdfSync('sha256', SECRET, '', 'gatehouse cluster link', 32));
    const answerTo = (layout: number) => {
      const acceptor = acceptorOf();
      const { nonce: challenge } = JSON.parse(acceptor.greeting()) as { nonce: string };
      const nonce = 'n'.repeat(43);
      const said = { layout, node: 4, incarnation: 1, logId: LOG_ID, version: '9' };
      const covered = ['dialer', JSON.stringify(['', challenge, nonce]), ...Object.values(said), nonce];
      const proof = createHmac('sha256', key).update(JSON.stringify(covered)).digest('base64url');
      return () => acceptor.answer(bytes(JSON.stringify({ ...said, nonce, proof })));
    };
    t.match(answerTo(1)(), { peer: { node: 4, incarnation: 1, logId: LOG_ID, version: '9' } });
    t.throws(answerTo(2), refused('layout'));
  },
);

t.test('handshake: what is no message is refused as such', async (t) => {
  for (const text of ['', '{', '[]', '{"nonce":1}', `{"nonce":"${'n'.repeat(65)}"}`, '{"node":0}']) {
    t.throws(() => acceptorOf().answer(bytes(text)), refused('format'), text);
    t.throws(() => dialerOf().hello(bytes(text)), refused('format'), text);
  }
});

t.test('handshake: no bytes end in anything but a refusal', async (t) => {
  const dialer = dialerOf();
  dialer.hello(bytes(acceptorOf().greeting()));
  const parts = fc.constantFrom(
    '{',
    '}',
    '"nonce":',
    '"proof":',
    '"node":',
    '"a"',
    '1',
    ',',
    '[',
    'null',
    '\u0000',
  );
  const content = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.array(parts).map((texts) => bytes(texts.join(''))),
  );
  fc.assert(
    fc.property(content, (frame) => {
      for (const read of [() => acceptorOf().answer(frame), () => dialer.finish(frame)])
        t.throws(read, refused('format'));
    }),
    runs(RUNS),
  );
});

t.test('handshake: a refusal says which side refused', async (t) => {
  const dialer = dialerOf();
  dialer.hello(bytes(acceptorOf().greeting()));
  const refusal = acceptorOf().refusal('incarnation');
  t.throws(() => dialer.finish(bytes(refusal)), refused('incarnation', true));
  t.throws(() => dialer.finish(bytes('{"refused":"later"}')), refused('format', true));
});

t.test('handshake: the longest messages fit their bound', async (t) => {
  const long = 'x'.repeat(64);
  const hello = dialerOf({ logId: long }).hello(bytes(acceptorOf().greeting()));
  t.ok(Buffer.byteLength(hello) + 64 < HELLO_BYTES_MAX);
});
