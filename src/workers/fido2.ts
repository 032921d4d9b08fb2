/**
 * WebAuthn: verification of registrations and authentications. The only importer of @simplewebauthn/server. Adds the rules
 * that the library lacks; its error messages contain challenges and are never passed on.
 */
import { createPublicKey } from 'node:crypto';
import { CREDENTIAL_ALGORITHMS } from '../domain/keys.ts';
import { checkEd25519Key } from './ed25519.ts';
import { withThreadCrypto } from './thread-crypto.ts';

/** An RSA key of 4,096 bits in COSE has about 530. */
const COSE_KEY_BYTES_MAX = 1_024;
const RSA_BITS_MIN = 2_048;
const RSA_BITS_MAX = 4_096;
/** Verification takes time in proportion to the exponent's length; authenticators use 65,537. */
const RSA_EXPONENT_BYTES_MAX = 4;
/** Formats with trust anchors in the library. It would fetch revocation lists for them over the network. */
const ANCHORED_FORMATS = ['android-key', 'android-safetynet', 'apple'] as const;

/** Values that a browser's answer must refer to. */
export interface Ceremony {
  /** base64url, as it was issued. */
  readonly challenge: string;
  readonly rpId: string;
  readonly origins: readonly string[];
}

/** The parts of RegistrationResponseJSON that are verified; all in base64url. */
export interface RegistrationTask extends Ceremony {
  readonly credentialId: string;
  readonly clientDataJSON: string;
  readonly attestationObject: string;
}

export interface EnrolledCredential {
  /** COSE key in CBOR. */
  readonly cosePublicKey: Uint8Array;
  readonly userVerified: boolean;
  readonly backedUp: boolean;
  readonly counter: number;
}

/** `unsound`: the ceremony is valid, but its key may not be enrolled. */
export type RegistrationResult =
  | { readonly result: 'good'; readonly credential: EnrolledCredential }
  | { readonly result: 'bad' | 'unsound' };

/** The parts of AuthenticationResponseJSON that are verified, in base64url, and the stored credential. */
export interface AuthenticationTask extends Ceremony {
  readonly credentialId: string;
  readonly clientDataJSON: string;
  readonly authenticatorData: string;
  readonly signature: string;
  /** User handle as sent; undefined when the authenticator named no user. */
  readonly userHandle: string | undefined;
  /** `user.id` of the owner. */
  readonly ownerHandle: string;
  readonly cosePublicKey: Uint8Array;
  readonly userVerificationRequired: boolean;
}

export type AuthenticationResult =
  | { readonly result: 'good'; readonly backedUp: boolean; readonly counter: number }
  | { readonly result: 'bad' };

const BAD = { result: 'bad' } as const;

type Library = typeof import('@simplewebauthn/server');
type Helpers = typeof import('@simplewebauthn/server/helpers');

let loaded: Promise<readonly [Library, Helpers]> | undefined;
let noteLoading: (isLoading: boolean) => void = () => undefined;

/** Called when the library begins to load, and when it is loaded. */
export function onLoading(note: (isLoading: boolean) => void): void {
  noteLoading = note;
}

async function loadOnce(): Promise<readonly [Library, Helpers]> {
  noteLoading(true);
  try {
    const library = await import('@simplewebauthn/server');
    const helpers = await import('@simplewebauthn/server/helpers');
    for (const identifier of ANCHORED_FORMATS)
      library.SettingsService.setRootCertificates({ identifier, certificates: [] });
    // It reads the global at its first use, and keeps what it found.
    await withThreadCrypto(() => helpers.isoCrypto.getRandomValues(new Uint8Array(1)));
    return [library, helpers];
  } finally {
    noteLoading(false);
  }
}

/** Loaded by the first ceremony of a thread: it takes 28 MB and 100 ms, and agents never need it. */
function load(): Promise<readonly [Library, Helpers]> {
  loaded ??= loadOnce();
  return loaded;
}

/** Every input of a client has a result; only a bug throws. */
export async function verifyRegistration(task: RegistrationTask): Promise<RegistrationResult> {
  const [library, helpers] = await load();
  return badUnlessCompleted(async (): Promise<RegistrationResult> => {
    if (isCrossOrigin(task.clientDataJSON)) return BAD;
    const { credentialId: id, clientDataJSON, attestationObject } = task;
    const answer = await library.verifyRegistrationResponse({
      response: {
        id,
        rawId: id,
        type: 'public-key',
        response: { clientDataJSON, attestationObject },
        clientExtensionResults: {},
      },
      ...expectations(task),
      requireUserVerification: false,
      // The library's own list changes with the runtime.
      supportedAlgorithmIDs: [...CREDENTIAL_ALGORITHMS],
    });
    if (!answer.verified) return BAD;
    const { credential, userVerified, credentialBackedUp } = answer.registrationInfo;
    // The library does not compare the id of the request with the one in the attestation.
    if (credential.id !== id) return BAD;
    const { publicKey, counter } = credential;
    if (!isSound(publicKey, helpers.decodeCredentialPublicKey(publicKey))) return { result: 'unsound' };
    const cosePublicKey = Uint8Array.from(publicKey);
    return {
      result: 'good',
      credential: { cosePublicKey, userVerified, backedUp: credentialBackedUp, counter },
    };
  });
}

export async function verifyAuthentication(task: AuthenticationTask): Promise<AuthenticationResult> {
  const [library] = await load();
  return badUnlessCompleted(async (): Promise<AuthenticationResult> => {
    const { credentialId: id, clientDataJSON, authenticatorData, signature, userHandle } = task;
    if (isCrossOrigin(clientDataJSON)) return BAD;
    if (userHandle !== undefined && userHandle !== task.ownerHandle) return BAD;
    const { verified, authenticationInfo } = await library.verifyAuthenticationResponse({
      response: {
        id,
        rawId: id,
        type: 'public-key',
        response: { clientDataJSON, authenticatorData, signature },
        clientExtensionResults: {},
      },
      ...expectations(task),
      requireUserVerification: task.userVerificationRequired,
      // Counter 0: a counter that does not advance is no refusal.
      credential: { id, publicKey: Uint8Array.from(task.cosePublicKey), counter: 0 },
    });
    if (!verified) return BAD;
    const { credentialBackedUp: backedUp, newCounter: counter } = authenticationInfo;
    return { result: 'good', backedUp, counter };
  });
}

/** The library reports bad input by throwing errors of many kinds (CBOR, JSON, DER, WebCrypto). */
async function badUnlessCompleted<Result>(ceremony: () => Promise<Result>): Promise<Result | typeof BAD> {
  try {
    return await ceremony();
  } catch (error) {
    if (error instanceof Error) return BAD;
    throw error;
  }
}

function expectations({ challenge, rpId, origins }: Ceremony) {
  return { expectedChallenge: challenge, expectedOrigin: [...origins], expectedRPID: rpId };
}

/** From a frame of another site: the library accepts such a registration, and an authentication without topOrigin. */
function isCrossOrigin(clientDataJSON: string): boolean {
  const data: unknown = JSON.parse(Buffer.from(clientDataJSON, 'base64url').toString('utf8'));
  if (typeof data !== 'object' || data === null) return true;
  const { crossOrigin, topOrigin } = data as { crossOrigin?: unknown; topOrigin?: unknown };
  return (crossOrigin !== undefined && crossOrigin !== false) || topOrigin !== undefined;
}

/** True for a key that may be enrolled. Labels: RFC 9053 (kty 1, alg 3) and RFC 8230 (n −1, e −2). */
function isSound(bytes: Uint8Array, decoded: object): boolean {
  if (bytes.length > COSE_KEY_BYTES_MAX) return false;
  const key = decoded as ReadonlyMap<number, unknown>;
  const has = (type: number, curve?: number) =>
    key.get(1) === type && (curve === undefined || key.get(-1) === curve);
  switch (key.get(3)) {
    case -8:
      return has(1, 6) && checkEd25519Key({ publicKey: bytesOf(key.get(-2)) });
    case -7:
      return has(2, 1) && isOnP256(bytesOf(key.get(-2)), bytesOf(key.get(-3)));
    case -257:
      return has(3) && isSoundRsa(bytesOf(key.get(-1)), bytesOf(key.get(-2)));
    default:
      return false;
  }
}

function bytesOf(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : new Uint8Array();
}

function isOnP256(x: Uint8Array, y: Uint8Array): boolean {
  if (x.length !== 32 || y.length !== 32) return false;
  try {
    createPublicKey({ format: 'jwk', key: { kty: 'EC', crv: 'P-256', x: base64url(x), y: base64url(y) } });
    return true;
  } catch (error) {
    if (error instanceof Error) return false;
    throw error;
  }
}

function isSoundRsa(modulus: Uint8Array, exponent: Uint8Array): boolean {
  const bits = bitLength(modulus);
  if (bits < RSA_BITS_MIN || bits > RSA_BITS_MAX || exponent.length > RSA_EXPONENT_BYTES_MAX) return false;
  const isOdd = (number: Uint8Array) => ((number.at(-1) ?? 0) & 1) === 1;
  return isOdd(modulus) && isOdd(exponent) && bitLength(exponent) > 1;
}

/** Counts the bits of a big-endian number. */
function bitLength(number: Uint8Array): number {
  const first = number.findIndex((byte) => byte !== 0);
  if (first < 0) return 0;
  return (number.length - first) * 8 - (Math.clz32(number[first] ?? 0) - 24);
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64url');
}
