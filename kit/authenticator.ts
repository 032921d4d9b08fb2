/**
 * An authenticator in software: makes the answers that a browser would send, with every part open to be made wrong.
 * Keys of all enrolled algorithms, attestation "none".
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isoCBOR } from '@simplewebauthn/server/helpers';

export type CoseKey = Map<number, number | Uint8Array>;
export type KeyName = 'EdDSA' | 'ES256' | 'RS256';

export interface Passkey {
  /** base64url. */
  readonly id: string;
  readonly secret: KeyObject;
  readonly cose: CoseKey;
  readonly name: KeyName;
}

export interface RegistrationJson {
  readonly id: string;
  readonly rawId: string;
  readonly type: string;
  readonly response: {
    readonly clientDataJSON: string;
    readonly attestationObject: string;
    readonly transports: string[];
  };
}

export interface AuthenticationJson {
  readonly id: string;
  readonly rawId: string;
  readonly type: string;
  readonly response: {
    readonly clientDataJSON: string;
    readonly authenticatorData: string;
    readonly signature: string;
    readonly userHandle?: string;
  };
}

/** Input of a ceremony, with planted faults. */
export interface Making {
  readonly challenge: string;
  readonly origin: string;
  readonly rpId?: string;
  readonly type?: string;
  readonly userPresent?: boolean;
  readonly userVerified?: boolean;
  readonly backedUp?: boolean;
  readonly counter?: number;
  readonly userHandle?: string;
  /** Members added to clientDataJSON. */
  readonly clientData?: Readonly<Record<string, unknown>>;
  /** The key in the attestation, where it is not the passkey's own. */
  readonly cose?: CoseKey;
  /** Id in the authenticator data, where it is not the passkey's own. */
  readonly innerId?: string;
  readonly attestation?: Map<string, unknown>;
}

const FLAGS = { userPresent: 1, userVerified: 4, backupEligible: 8, backedUp: 16, attested: 64 };

export function makePasskey(name: KeyName = 'ES256', idBytes = 32): Passkey {
  const pair =
    name === 'EdDSA'
      ? generateKeyPairSync('ed25519')
      : name === 'ES256'
        ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
        : generateKeyPairSync('rsa', { modulusLength: 2048 });
  const jwk = pair.publicKey.export({ format: 'jwk' });
  const bytes = (part: unknown) => new Uint8Array(Buffer.from(String(part), 'base64url'));
  const cose: Record<KeyName, () => [number, number | Uint8Array][]> = {
    EdDSA: () => [
      [1, 1],
      [3, -8],
      [-1, 6],
      [-2, bytes(jwk.x)],
    ],
    ES256: () => [
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, bytes(jwk.x)],
      [-3, bytes(jwk.y)],
    ],
    RS256: () => [
      [1, 3],
      [3, -257],
      [-1, bytes(jwk.n)],
      [-2, bytes(jwk.e)],
    ],
  };
  return { id: base64url(randomBytes(idBytes)), secret: pair.privateKey, cose: new Map(cose[name]()), name };
}

/** Returns the result of `navigator.credentials.create`, as JSON. */
export function create(passkey: Passkey, making: Making): RegistrationJson {
  const id = Buffer.from(making.innerId ?? passkey.id, 'base64url');
  const length = Buffer.alloc(2);
  length.writeUInt16BE(id.length);
  const credential = [Buffer.alloc(16), length, id, isoCBOR.encode(making.cose ?? passkey.cose)];
  const authData = Buffer.concat([authenticatorData(making, FLAGS.attested), ...credential]);
  const attestation: Map<string, unknown> =
    making.attestation ??
    new Map<string, unknown>([
      ['fmt', 'none'],
      ['attStmt', new Map()],
      ['authData', new Uint8Array(authData)],
    ]);
  return {
    id: passkey.id,
    rawId: passkey.id,
    type: 'public-key',
    response: {
      clientDataJSON: base64url(clientData('webauthn.create', making)),
      attestationObject: base64url(isoCBOR.encode(attestation as Parameters<typeof isoCBOR.encode>[0])),
      transports: ['internal', 'carrier-pigeon'],
    },
  };
}

/** Returns the result of `navigator.credentials.get`, as JSON. */
export function get(passkey: Passkey, making: Making): AuthenticationJson {
  const authData = authenticatorData(making, 0);
  const data = clientData('webauthn.get', making);
  const signed = Buffer.concat([authData, createHash('sha256').update(data).digest()]);
  const signature = sign(passkey.name === 'EdDSA' ? null : 'sha256', signed, passkey.secret);
  return {
    id: passkey.id,
    rawId: passkey.id,
    type: 'public-key',
    response: {
      clientDataJSON: base64url(data),
      authenticatorData: base64url(authData),
      signature: base64url(signature),
      ...(making.userHandle === undefined ? {} : { userHandle: making.userHandle }),
    },
  };
}

function authenticatorData(making: Making, extraFlags: number): Buffer {
  const {
    rpId = 'localhost',
    userPresent = true,
    userVerified = true,
    backedUp = false,
    counter = 1,
  } = making;
  const flags =
    extraFlags |
    (userPresent ? FLAGS.userPresent : 0) |
    (userVerified ? FLAGS.userVerified : 0) |
    (backedUp ? FLAGS.backupEligible | FLAGS.backedUp : 0);
  const tail = Buffer.alloc(5);
  tail.writeUInt8(flags);
  tail.writeUInt32BE(counter, 1);
  return Buffer.concat([createHash('sha256').update(rpId).digest(), tail]);
}

function clientData(type: string, making: Making): Buffer {
  const { challenge, origin, clientData: more } = making;
  return Buffer.from(
    JSON.stringify({ type: making.type ?? type, challenge, origin, crossOrigin: false, ...more }),
  );
}

export function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}
