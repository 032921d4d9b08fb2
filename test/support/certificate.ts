/** A self-signed certificate for loopback, made anew for a test: no key lies in the tree. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Test } from 'tap';

/** DER: tag, length, content (X.690 8.1). */
function der(tag: number, ...content: Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const length =
    body.length < 128
      ? [body.length]
      : body.length < 256
        ? [0x81, body.length]
        : [0x82, body.length >> 8, body.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const SEQUENCE = 0x30;
const ECDSA_WITH_SHA256 = der(SEQUENCE, Buffer.from('06082a8648ce3d040302', 'hex'));
const SHA256_WITH_RSA = der(SEQUENCE, Buffer.from('06092a864886f70d01010b0500', 'hex'));
const COMMON_NAME = Buffer.from('0603550403', 'hex');
/** extnID 2.5.29.17 (subjectAltName) with dNSName localhost and iPAddress 127.0.0.1. */
const ALTERNATIVE_NAMES = der(
  SEQUENCE,
  Buffer.from('0603551d11', 'hex'),
  der(0x04, der(SEQUENCE, der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])))),
);

export interface Certificate {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
}

/** Makes keys of 2048 bits; suites without forward secrecy need such a key. */
const makeRsaKeys = () => generateKeyPairSync('rsa', { modulusLength: 2048 });
const makeEcKeys = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });

/** Valid from 2020 to 2049 for localhost and 127.0.0.1 (RFC 5280 4.1). */
export function makeCertificate(kind: 'ec' | 'rsa' = 'ec'): Certificate {
  const { privateKey, publicKey } = kind === 'ec' ? makeEcKeys() : makeRsaKeys();
  const algorithm = kind === 'ec' ? ECDSA_WITH_SHA256 : SHA256_WITH_RSA;
  const name = der(SEQUENCE, der(0x31, der(SEQUENCE, COMMON_NAME, der(0x0c, Buffer.from('localhost')))));
  const validity = der(
    SEQUENCE,
    der(0x17, Buffer.from('200101000000Z')),
    der(0x17, Buffer.from('491231235959Z')),
  );
  const version3 = der(0xa0, der(0x02, Buffer.from([2])));
  const serial = der(0x02, Buffer.from([1]));
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const extensions = der(0xa3, der(SEQUENCE, ALTERNATIVE_NAMES));
  const body = der(SEQUENCE, version3, serial, algorithm, name, validity, name, spki, extensions);
  const whole = der(SEQUENCE, body, algorithm, der(0x03, Buffer.from([0]), signed(body, privateKey)));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    certificate: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function signed(bytes: Uint8Array, key: KeyObject): Buffer {
  return sign('sha256', bytes, key);
}

/** A new certificate, and its files for a listener. */
export function certificateFiles(t: Test): { certificate: string; tls: { cert: string; key: string } } {
  const { certificate, key } = makeCertificate();
  const folder = t.testdir({ 'cert.pem': certificate, 'key.pem': key });
  return { certificate, tls: { cert: `${folder}/cert.pem`, key: `${folder}/key.pem` } };
}
