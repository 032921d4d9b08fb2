/** WebAuthn ceremonies: six recorded in a browser, generated ones of every algorithm, and forgeries. */
import { randomBytes, webcrypto } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { SettingsService } from '@simplewebauthn/server';
import fc from 'fast-check';
import t from 'tap';
import { create, get, makePasskey } from '../../kit/authenticator.ts';
import {
  type AuthenticationTask,
  type RegistrationTask,
  verifyAuthentication,
  verifyRegistration,
} from '../../src/workers/fido2.ts';
import { createWorkerPool } from '../../src/workers/pool.ts';
import { THREAD_CRYPTO } from '../../src/workers/thread-crypto.ts';
import { runs } from '../support/depth.ts';

interface Fixture {
  readonly name: string;
  readonly origin: string;
  readonly rpID: string;
  readonly registration: {
    readonly challenge: string;
    readonly userHandle: string;
    readonly response: {
      readonly id: string;
      readonly response: { readonly attestationObject: string; readonly clientDataJSON: string };
    };
    readonly expect: {
      readonly userVerified: boolean;
      readonly backedUp: boolean;
      readonly credentialId: string;
      readonly cosePublicKey: string;
      readonly counter: number;
    };
  };
  readonly authentication: {
    readonly challenge: string;
    readonly response: {
      readonly id: string;
      readonly response: {
        readonly authenticatorData: string;
        readonly clientDataJSON: string;
        readonly signature: string;
        readonly userHandle?: string;
      };
    };
    readonly expect: { readonly userVerified: boolean; readonly newCounter: number };
  };
}

const FIXTURES = JSON.parse(
  readFileSync('test/vectors/webauthn_chromium_fixtures.json', 'utf8'),
) as Fixture[];

function registrationOf({ registration, rpID, origin }: Fixture): RegistrationTask {
  const { challenge, response } = registration;
  return { challenge, rpId: rpID, origins: [origin], credentialId: response.id, ...response.response };
}

function authenticationOf(fixture: Fixture): AuthenticationTask {
  const { challenge, response } = fixture.authentication;
  const { authenticatorData, clientDataJSON, signature, userHandle } = response.response;
  return {
    challenge,
    rpId: fixture.rpID,
    origins: ['https://elsewhere.example', fixture.origin],
    credentialId: response.id,
    authenticatorData,
    clientDataJSON,
    signature,
    userHandle,
    ownerHandle: fixture.registration.userHandle,
    cosePublicKey: new Uint8Array(Buffer.from(fixture.registration.expect.cosePublicKey, 'base64url')),
    userVerificationRequired: fixture.registration.expect.userVerified,
  };
}

t.equal(FIXTURES.length, 6);
for (const fixture of FIXTURES) {
  // covers R55
  t.test(`recorded ceremony: ${fixture.name}`, async (t) => {
    const { expect } = fixture.registration;
    const registration = registrationOf(fixture);
    t.match(await verifyRegistration(registration), {
      result: 'good',
      credential: {
        cosePublicKey: Buffer.from(expect.cosePublicKey, 'base64url'),
        userVerified: expect.userVerified,
        backedUp: expect.backedUp,
        counter: expect.counter,
      },
    });
    const authentication = authenticationOf(fixture);
    const { newCounter: counter } = fixture.authentication.expect;
    const good = await verifyAuthentication(authentication);
    t.same(good, { result: 'good', backedUp: expect.backedUp, counter });

    const other = FIXTURES.find((each) => each !== fixture);
    if (other === undefined) throw new Error('one fixture only');
    const elsewhere = {
      'another origin': { origins: ['http://localhost:8124'] },
      'no origin': { origins: [] },
      'no ceremony at all': { challenge: '', rpId: '', origins: [] },
      'another relying party': { rpId: 'localhost.example' },
      'another challenge': { challenge: other.registration.challenge },
      'another credential': { credentialId: other.registration.response.id },
    };
    for (const [name, change] of Object.entries(elsewhere))
      t.same(await verifyRegistration({ ...registration, ...change }), { result: 'bad' }, name);
    const { 'another credential': _, ...places } = elsewhere;
    const misused = {
      ...places,
      'a key of another': { cosePublicKey: authenticationOf(other).cosePublicKey },
      'the handle of another': { userHandle: other.registration.userHandle },
      'a signature of another': { signature: authenticationOf(other).signature },
      'a key that is none': { cosePublicKey: new Uint8Array(77) },
    };
    for (const [name, change] of Object.entries(misused))
      t.same(await verifyAuthentication({ ...authentication, ...change }), { result: 'bad' }, name);
    if (!expect.userVerified) {
      const strict = { ...authentication, userVerificationRequired: true };
      t.same(await verifyAuthentication(strict), { result: 'bad' }, 'without user verification');
    }
    t.same(await verifyRegistration({ ...registration, clientDataJSON: authentication.clientDataJSON }), {
      result: 'bad',
    });
  });
}

const ORIGIN = 'http://localhost:8123';
const CHALLENGE = 'SpZkPKeWE38mov4gLYYv60GnXU6aJawTCFotaduhra4';
const PLACE = { challenge: CHALLENGE, rpId: 'localhost', origins: [ORIGIN] };

// covers R55
t.test('ceremony: no input of a client throws, and no mutation passes', async (t) => {
  const passkey = makePasskey('ES256');
  const made = create(passkey, { challenge: CHALLENGE, origin: ORIGIN });
  const { clientDataJSON, attestationObject } = made.response;
  const good = { ...PLACE, credentialId: passkey.id, clientDataJSON, attestationObject };
  t.match(await verifyRegistration(good), { result: 'good' });
  const bytes = Buffer.from(attestationObject, 'base64url');
  const flips = fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 })), {
    minLength: 1,
    maxLength: 4,
  });
  const property = fc.asyncProperty(flips, fc.nat(bytes.length), async (changes, cut) => {
    const changed = Buffer.from(bytes);
    for (const [at, by] of changes) changed[at] = (changed[at] ?? 0) ^ by;
    for (const each of [changed, bytes.subarray(0, cut)]) {
      const { result } = await verifyRegistration({
        ...good,
        attestationObject: each.toString('base64url'),
      });
      if (!['good', 'bad', 'unsound'].includes(result)) return false;
    }
    return true;
  });
  await fc.assert(property, runs(400));
  const json = fc.asyncProperty(fc.json(), async (text) => {
    const data = Buffer.from(text).toString('base64url');
    return (await verifyRegistration({ ...good, clientDataJSON: data })).result === 'bad';
  });
  await fc.assert(json, runs(200));
  const nested = Buffer.alloc(16 * 1024, 0x81).toString('base64url');
  t.same(
    await verifyRegistration({ ...good, attestationObject: nested }),
    { result: 'bad' },
    'nested arrays',
  );
});

t.test('ceremony: without origins no answer is valid', async (t) => {
  const passkey = makePasskey();
  const { response } = create(passkey, { challenge: '', origin: '' });
  const nothing = { challenge: '', rpId: '', origins: [] };
  t.same(await verifyRegistration({ ...nothing, ...response, credentialId: passkey.id }), { result: 'bad' });
});

t.test('ceremony: an assertion with any bit turned over is bad', async (t) => {
  const passkey = makePasskey('EdDSA');
  const { response } = get(passkey, { challenge: CHALLENGE, origin: ORIGIN });
  const registered = create(passkey, { challenge: CHALLENGE, origin: ORIGIN });
  const { clientDataJSON, attestationObject } = registered.response;
  const enrolled = await verifyRegistration({
    ...PLACE,
    credentialId: passkey.id,
    clientDataJSON,
    attestationObject,
  });
  if (enrolled.result !== 'good') throw new Error(enrolled.result);
  const good: AuthenticationTask = {
    ...PLACE,
    credentialId: passkey.id,
    clientDataJSON: response.clientDataJSON,
    authenticatorData: response.authenticatorData,
    signature: response.signature,
    userHandle: undefined,
    ownerHandle: 'AAAA',
    cosePublicKey: enrolled.credential.cosePublicKey,
    userVerificationRequired: true,
  };
  t.match(await verifyAuthentication(good), { result: 'good' });
  for (const part of ['clientDataJSON', 'authenticatorData', 'signature'] as const) {
    const bytes = Buffer.from(good[part], 'base64url');
    for (let bit = 0; bit < bytes.length * 8; bit += part === 'clientDataJSON' ? 7 : 1) {
      const changed = Buffer.from(bytes);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const { result } = await verifyAuthentication({
        ...good,
        [part]: changed.toString('base64url'),
      });
      if (result !== 'bad') t.fail(`${part}, bit ${bit}: ${result}`);
    }
  }
});

t.test('signatures: verdicts are those of WebCrypto, which the library does not call', async (t) => {
  const { subtle } = webcrypto;
  const data = randomBytes(69);
  const pairs = [
    { name: 'ECDSA', namedCurve: 'P-256', hash: { name: 'SHA-256' } },
    { name: 'ECDSA', namedCurve: 'P-384', hash: { name: 'SHA-384' } },
    { name: 'ECDSA', namedCurve: 'P-256', hash: { name: 'SHA-1' } },
    {
      name: 'RSASSA-PKCS1-v1_5',
      modulusLength: 2_048,
      publicExponent: Uint8Array.of(1, 0, 1),
      hash: { name: 'SHA-256' },
    },
    {
      name: 'RSA-PSS',
      modulusLength: 2_048,
      publicExponent: Uint8Array.of(1, 0, 1),
      hash: { name: 'SHA-256' },
    },
    { name: 'Ed25519' },
  ];
  for (const named of pairs) {
    const algorithm = named.name === 'RSA-PSS' ? { ...named, saltLength: 32 } : named;
    const made = await subtle.generateKey(algorithm, true, ['sign', 'verify']);
    const { privateKey, publicKey } = made as webcrypto.CryptoKeyPair;
    const signature = new Uint8Array(await subtle.sign(algorithm, privateKey, data));
    const exported = await subtle.exportKey('jwk', publicKey);
    const jwk = { ...exported, ext: false, key_ops: ['verify'] };
    const changed = Uint8Array.from(signature, (byte, index) => (index === 40 ? byte ^ 1 : byte));
    for (const sent of [signature, changed, signature.subarray(1), new Uint8Array(), signature]) {
      const imported = await THREAD_CRYPTO.subtle.importKey('jwk', jwk, algorithm, false, ['verify']);
      const verdict = await THREAD_CRYPTO.subtle.verify(algorithm, imported, sent, data);
      t.equal(verdict, await subtle.verify(algorithm, publicKey, sent, data), algorithm.name);
    }
    const imported = await THREAD_CRYPTO.subtle.importKey('jwk', jwk, algorithm, false, ['verify']);
    t.notOk(await THREAD_CRYPTO.subtle.verify(algorithm, imported, signature, randomBytes(69)), 'other data');
  }
  const calls: string[] = [];
  for (const name of ['digest', 'importKey', 'verify'] as const)
    t.intercept(Object.getPrototypeOf(subtle), name, {
      value: () => {
        calls.push(name);
        throw new Error('called');
      },
    });
  for (const fixture of FIXTURES) {
    t.match(await verifyRegistration(registrationOf(fixture)), { result: 'good' });
    t.match(await verifyAuthentication(authenticationOf(fixture)), { result: 'good' });
  }
  t.same(calls, []);
  t.equal(globalThis.crypto.subtle, subtle, 'the global is as it was');
});

t.test('signatures: a key that does not fit its algorithm is refused', async (t) => {
  const { subtle } = webcrypto;
  const data = randomBytes(69);
  const off = { kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) };
  await t.rejects(
    THREAD_CRYPTO.subtle.importKey('jwk', off, { name: 'ECDSA' }, false, ['verify']),
    'no point of the curve',
  );

  const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: { name: 'SHA-256' } };
  const RSA = { name: 'RSASSA-PKCS1-v1_5', hash: { name: 'SHA-256' } };
  const keys = await Promise.all([
    subtle.generateKey(P256, true, ['sign', 'verify']),
    subtle.generateKey({ ...RSA, modulusLength: 2_048, publicExponent: Uint8Array.of(1, 0, 1) }, true, [
      'sign',
      'verify',
    ]),
  ]);
  const [ec, ecPrivate, rsa] = await Promise.all(
    [keys[0].publicKey, keys[0].privateKey, keys[1].publicKey].map((key) => subtle.exportKey('jwk', key)),
  );
  const { key_ops: _, ...ofEc } = ec ?? {};
  const { key_ops: __, ...ofRsa } = rsa ?? {};
  for (const [what, jwk, algorithm] of [
    ['another curve', ofEc, { ...P256, namedCurve: 'P-384' }],
    ['a private key', ecPrivate, P256],
    ['a key of a curve for Ed25519', ofEc, { name: 'Ed25519' }],
    ['a key of a curve for RSA', ofEc, RSA],
    ['another hash than the key names', ofRsa, { ...RSA, hash: { name: 'SHA-1' } }],
  ] as const)
    await t.rejects(THREAD_CRYPTO.subtle.importKey('jwk', jwk ?? {}, algorithm, false, ['verify']), what);
  const imported = await THREAD_CRYPTO.subtle.importKey('jwk', ofRsa, RSA, false, ['verify']);
  const signed = new Uint8Array(await subtle.sign(RSA, keys[1].privateKey, data));
  await t.rejects(THREAD_CRYPTO.subtle.verify(P256, imported, signed, data), 'a key of another algorithm');
  const asked = { ...RSA, hash: { name: 'SHA-1' } };
  t.ok(await THREAD_CRYPTO.subtle.verify(asked, imported, signed, data), 'the hash is that of the key');
});

t.test('attestation: no trust anchors, so no revocation list is ever fetched', async (t) => {
  const [fixture] = FIXTURES;
  if (fixture === undefined) throw new Error('no fixture');
  await verifyRegistration(registrationOf(fixture));
  for (const identifier of [
    'android-key',
    'android-safetynet',
    'apple',
    'packed',
    'tpm',
    'fido-u2f',
  ] as const)
    t.same(SettingsService.getRootCertificates({ identifier }), [], identifier);
});

t.test('pool: ceremonies are verified on its threads', async (t) => {
  const faults: string[] = [];
  const pool = createWorkerPool({ threads: 1, queueMax: 100, onFault: (message) => faults.push(message) });
  t.teardown(() => pool.close());
  const registrations = FIXTURES.map((fixture) => pool.run('verifyRegistration', registrationOf(fixture)));
  for (const [index, result] of (await Promise.all(registrations)).entries()) {
    if (!result.ok || result.value.result !== 'good') throw new Error(JSON.stringify(result));
    const fixture = FIXTURES[index];
    if (fixture === undefined) throw new Error('no such');
    const { cosePublicKey } = result.value.credential;
    const task = { ...authenticationOf(fixture), cosePublicKey };
    t.match(await pool.run('verifyAuthentication', task), { ok: true, value: { result: 'good' } });
    const forged = {
      ...task,
      signature: task.signature.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
    };
    t.same(await pool.run('verifyAuthentication', forged), { ok: true, value: { result: 'bad' } });
  }
  t.same(faults, [], 'a bad ceremony is no fault');
});
