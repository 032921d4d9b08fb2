import { createPublicKey, generateKeyPairSync, verify as nativeVerify, sign } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { checkEd25519Key, verifyEd25519 } from '../../src/workers/ed25519.ts';
import { KEYS_CACHED_MAX } from '../../src/workers/key-cache.ts';
import { runs } from '../support/depth.ts';

interface Vector {
  src: string;
  id: number;
  key: string;
  msg: string;
  sig: string;
  openssl: boolean;
  guarded: boolean;
}
const file = new URL('../../../test/vectors/ed25519_expected.json', import.meta.url);
const { vectors, lowOrderEncodings } = JSON.parse(readFileSync(file, 'utf8')) as {
  vectors: Vector[];
  lowOrderEncodings: string[];
};
const hex = (text: string): Buffer => Buffer.from(text, 'hex');
/** R = identity, S = 0: the signature that small-order keys accept for many messages. */
const TRIVIAL_SIGNATURE = hex(`01${'00'.repeat(63)}`);
/** R of low order, with a key that is none. */
const LOW_ORDER_R = vectors.filter(({ src, id }) => src === 'speccheck' && id === 2);
/** Node 24 and later refuse signatures whose R or key has a low order; before, the guard alone does, whatever the OpenSSL. */
const REFUSES_LOW_ORDER = LOW_ORDER_R.every(
  ({ key, msg, sig }) => !nativeAccepts(hex(key), hex(msg), hex(sig)),
);
const GROUP_ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;

interface Signer {
  publicKey: Buffer;
  sign(message: Uint8Array): Buffer;
}

/** In DER: `export` of a freshly generated key can dead-lock in node 20 when a collection falls into it. */
function newSigner(): Signer {
  const pair = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { format: 'der', type: 'spki' },
    privateKeyEncoding: { format: 'der', type: 'pkcs8' },
  });
  return {
    publicKey: pair.publicKey.subarray(-32),
    sign: (message) => sign(null, message, { key: pair.privateKey, format: 'der', type: 'pkcs8' }),
  };
}

function timestampBytes(seconds: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(seconds));
  return bytes;
}

function nativeAccepts(publicKey: Buffer, message: Buffer, signature: Buffer): boolean {
  const key = createPublicKey({
    format: 'jwk',
    key: { kty: 'OKP', crv: 'Ed25519', x: publicKey.toString('base64url') },
  });
  return nativeVerify(null, message, key, signature);
}

// covers R9 S22
t.test(
  'ed25519: every vector has the guarded result, on the first and on a repeated use of the key',
  async (t) => {
    t.equal(vectors.length, 163);
    t.equal(LOW_ORDER_R.length, 1);
    for (const round of ['first', 'repeated']) {
      const wrong = vectors.filter(
        (vector) =>
          verifyEd25519({
            publicKey: hex(vector.key),
            message: hex(vector.msg),
            signature: hex(vector.sig),
          }) !== (vector.guarded && !(REFUSES_LOW_ORDER && LOW_ORDER_R.includes(vector))),
      );
      t.same(wrong, [], `${round} use`);
    }
  },
);

// covers R9
t.test(
  'ed25519: the 14 low-order keys with R = identity and S = 0 are refused for 64 timestamps',
  async (t) => {
    t.equal(lowOrderEncodings.length, 14);
    let acceptedByOpenssl = 0;
    for (const key of lowOrderEncodings.map(hex)) {
      for (let step = 0; step < 64; step += 1) {
        const message = timestampBytes(1_790_000_000 + step);
        if (nativeAccepts(key, message, TRIVIAL_SIGNATURE)) acceptedByOpenssl += 1;
        if (verifyEd25519({ publicKey: key, message, signature: TRIVIAL_SIGNATURE })) {
          t.fail(`forgery accepted for ${key.toString('hex')}`);
        }
      }
      t.equal(checkEd25519Key({ publicKey: key }), false, `${key.toString('hex')} cannot be enrolled`);
    }
    const accepts = `without the guard OpenSSL accepts ${acceptedByOpenssl} of 896`;
    t.equal(acceptedByOpenssl > 64, !REFUSES_LOW_ORDER, accepts);
  },
);

t.test('ed25519: any changed bit of key, message or signature makes it false', async (t) => {
  const signer = newSigner();
  const property = fc.property(
    fc.uint8Array({ maxLength: 80 }),
    fc.constantFrom('publicKey', 'message', 'signature'),
    fc.nat(),
    (message, part, position) => {
      const good = { publicKey: signer.publicKey, message, signature: signer.sign(message) };
      if (!verifyEd25519(good)) return false;
      const changed = Buffer.from(good[part]);
      if (changed.length === 0) return true;
      const bit = position % (changed.length * 8);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      return !verifyEd25519({ ...good, [part]: changed });
    },
  );
  t.doesNotThrow(() => fc.assert(property, runs(1_000)));
});

// covers S22
t.test('ed25519: S + L in place of S is refused (one signature has one spelling)', async (t) => {
  const signer = newSigner();
  const message = timestampBytes(1_790_000_000);
  const signature = signer.sign(message);
  const scalar = BigInt(`0x${Buffer.from(signature.subarray(32)).reverse().toString('hex')}`) + GROUP_ORDER;
  const malleated = Buffer.concat([
    signature.subarray(0, 32),
    hex(scalar.toString(16).padStart(64, '0')).reverse(),
  ]);
  t.equal(verifyEd25519({ publicKey: signer.publicKey, message, signature }), true);
  t.equal(verifyEd25519({ publicKey: signer.publicKey, message, signature: malleated }), false);
});

t.test('ed25519: wrong lengths are false, not an error', async (t) => {
  const signer = newSigner();
  const message = timestampBytes(1);
  const signature = signer.sign(message);
  for (const length of [0, 1, 31, 33, 64]) {
    const publicKey = Buffer.concat([signer.publicKey, signer.publicKey]).subarray(0, length);
    t.equal(verifyEd25519({ publicKey, message, signature }), false, `key of ${length} bytes`);
    t.equal(checkEd25519Key({ publicKey }), false, `enrolment of ${length} bytes`);
  }
  for (const length of [0, 63, 65, 128]) {
    const wrong = Buffer.concat([signature, signature]).subarray(0, length);
    t.equal(verifyEd25519({ publicKey: signer.publicKey, message, signature: wrong }), false);
  }
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), fc.uint8Array(), (publicKey, message, signature) => {
      return !verifyEd25519({ publicKey, message, signature });
    }),
    runs(),
  );
});

t.test('ed25519: keys leave the cache when it is full and still verify', async (t) => {
  const first = newSigner();
  const message = timestampBytes(7);
  const check = (signer: Signer): boolean =>
    verifyEd25519({ publicKey: signer.publicKey, message, signature: signer.sign(message) });
  t.equal(check(first), true);
  for (let count = 0; count < KEYS_CACHED_MAX + 1; count += 1) {
    if (!check(newSigner())) t.fail(`key ${count} does not verify`);
  }
  t.equal(check(first), true);
});

t.test('enrollment: fresh keys pass; off-curve, non-canonical and mixed-order keys do not', async (t) => {
  for (let count = 0; count < 20; count += 1) {
    t.equal(checkEd25519Key({ publicKey: newSigner().publicKey }), true);
  }
  // y = 2 is on no point of the curve; p + 3 is a second spelling of y = 3.
  t.equal(checkEd25519Key({ publicKey: hex(`02${'00'.repeat(31)}`) }), false, 'off the curve');
  t.equal(checkEd25519Key({ publicKey: hex(`f0${'ff'.repeat(30)}7f`) }), false, 'non-canonical');
  // The key of speccheck 4 and 5 is a point of full order plus one of order 8.
  const mixed = vectors.filter(({ src, id }) => src === 'speccheck' && (id === 4 || id === 5));
  t.equal(mixed.length, 2);
  for (const { key } of mixed) t.equal(checkEd25519Key({ publicKey: hex(key) }), false, 'mixed order');
});
