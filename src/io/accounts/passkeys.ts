/**
 * Passkeys and hardware keys on the wire: schemas and strict parsing of both credential objects, and the options for
 * `navigator.credentials`. Names and shapes are those of WebAuthn Level 3, section 5.1.
 */

import type { PasskeyOffer } from '../../actors/accounts/user-passkeys.ts';
import type { Assertion } from '../../actors/accounts/verification.ts';
import type { Challenge } from '../../domain/challenges.ts';
import { GatewayError } from '../../domain/errors.ts';
import { decodeBase64url } from '../../domain/ids.ts';
import { CREDENTIAL_ALGORITHMS, hasFlag, KeyFlag, type UserKey } from '../../domain/keys.ts';
import { array, literal, named, nullable, object, optional, type Static, text } from '../../domain/schema.ts';
import type { Site } from '../../domain/site.ts';
import type { Ceremony } from '../../workers/fido2.ts';

/** Credential ids have at most 1,023 bytes (WebAuthn Level 3, section 4). */
const CREDENTIAL_ID_BYTES_MAX = 1_023;
const ATTESTATION_BYTES_MAX = 16 * 1024;
/** Browsers send about 200 bytes; origins have up to 2,000. */
const CLIENT_DATA_BYTES_MAX = 4 * 1024;
/** 37 bytes, and extensions that were not requested. */
const AUTHENTICATOR_DATA_BYTES_MAX = 4 * 1024;
/** An RSA-4096 signature has 512 bytes. */
const SIGNATURE_BYTES_MAX = 1_024;
/** `user.id` has at most 64 bytes (WebAuthn, section 5.4.3). */
const HANDLE_BYTES_MAX = 64;

/** WebAuthn, section 5.8.4. Other values are accepted and not stored. */
const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'];
const CREDENTIAL_PARAMETERS = CREDENTIAL_ALGORITHMS.map((alg) => ({ alg, type: 'public-key' }));

const credentialId = base64urlText(CREDENTIAL_ID_BYTES_MAX);

/** RegistrationResponseJSON. Members that are not verified are ignored. */
export const attestationSchema = named(
  'Attestation',
  object({
    id: credentialId,
    rawId: credentialId,
    type: literal('public-key'),
    response: object({
      clientDataJSON: base64urlText(CLIENT_DATA_BYTES_MAX),
      attestationObject: base64urlText(ATTESTATION_BYTES_MAX),
      transports: optional(
        nullable(array(text({ maxLength: 64, examples: ['internal'] }), { maxItems: 16 })),
      ),
    }),
  }),
);

/** AuthenticationResponseJSON. */
export const assertionSchema = named(
  'Assertion',
  object({
    id: credentialId,
    rawId: credentialId,
    type: literal('public-key'),
    response: object({
      clientDataJSON: base64urlText(CLIENT_DATA_BYTES_MAX),
      authenticatorData: base64urlText(AUTHENTICATOR_DATA_BYTES_MAX),
      signature: base64urlText(SIGNATURE_BYTES_MAX),
      /** Safari sends an empty one where the authenticator named no user. */
      userHandle: optional(nullable(base64urlText(HANDLE_BYTES_MAX, 0))),
    }),
  }),
);

const exampleParts = { id: 'AQIDBAUGBwg', rawId: 'AQIDBAUGBwg', type: 'public-key' } as const;
export const attestationExample: AttestationJson = {
  ...exampleParts,
  response: { clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0', attestationObject: 'o2NmbXRkbm9uZQ' },
};
export const assertionExample: AssertionJson = {
  ...exampleParts,
  response: {
    clientDataJSON: 'eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0',
    authenticatorData: 'SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2M',
    signature: 'MEUCIQDx',
  },
};

/** Body of login_options: ids that the client remembers, echoed without a look-up. */
export const credentialIdsSchema = array(credentialId, { maxItems: 10 });

export type AttestationJson = Static<typeof attestationSchema>;
export type AssertionJson = Static<typeof assertionSchema>;

/** Throws `InvalidInput` for an id that is not canonical base64url. */
export function checkCredentialIds(credentialIds: readonly string[] = []): void {
  if (credentialIds.some((id) => decodeBase64url(id) === undefined))
    throw new GatewayError('InvalidInput', 'credentialIds: not base64url');
}

/** Throws `InvalidInput` for what is not canonical base64url . Runs before the challenge is used up. */
export function checkAttestation(sent: AttestationJson): void {
  const { clientDataJSON, attestationObject } = sent.response;
  checkSpelling(sent, { clientDataJSON, attestationObject });
}

/** The same for a login. */
export function checkAssertion(sent: AssertionJson): void {
  const { clientDataJSON, authenticatorData, signature, userHandle } = sent.response;
  const handle = userHandle ? { userHandle } : {};
  checkSpelling(sent, { clientDataJSON, authenticatorData, signature, ...handle });
}

/** Returns the values that the answer to a challenge must have been signed for. */
export function ceremonyOf({ fido2 }: Site, { challenge }: Challenge): Ceremony {
  return { challenge, rpId: fido2.rpId, origins: fido2.origins };
}

/** Matches no answer. Used for a repeat, which gets its first reply without verification. */
export const NO_CEREMONY: Ceremony = { challenge: '', rpId: '', origins: [] };

export function readAttestation(ceremony: Ceremony, sent: AttestationJson): PasskeyOffer {
  const { clientDataJSON, attestationObject, transports } = sent.response;
  return {
    attestation: { credentialId: sent.id, clientDataJSON, attestationObject, ...ceremony },
    transports: TRANSPORTS.filter((each) => transports?.includes(each)),
  };
}

export function readAssertion(ceremony: Ceremony, sent: AssertionJson): Assertion {
  const { clientDataJSON, authenticatorData, signature, userHandle } = sent.response;
  return {
    credentialId: sent.id,
    clientDataJSON,
    authenticatorData,
    signature,
    userHandle: userHandle || undefined,
    ...ceremony,
  };
}

/** PublicKeyCredentialCreationOptionsJSON. `keys` are those of the account, if there is one. */
export function creationOptions(
  { fido2 }: Site,
  challenge: Challenge,
  timeoutMs: number,
  account: { readonly handle: string; readonly name: string | undefined; readonly keys: readonly UserKey[] },
) {
  const { handle, name, keys } = account;
  const passkeys = keys.filter((key) => hasFlag(key.flags, KeyFlag.Fido2Key));
  return {
    challenge: challenge.challenge,
    // `icon` is not in WebAuthn Level 2 and later; some authenticators show it, the others ignore it.
    rp: { name: fido2.rpName, id: fido2.rpId, ...(fido2.icon === '' ? {} : { icon: fido2.icon }) },
    user: { id: handle, name: name ?? fido2.rpName, displayName: name ?? '' },
    pubKeyCredParams: CREDENTIAL_PARAMETERS,
    timeout: timeoutMs,
    attestation: 'none',
    excludeCredentials: passkeys.map(({ publicKey, transports = [] }) => ({
      id: publicKey,
      type: 'public-key',
      ...(transports.length === 0 ? {} : { transports }),
    })),
    authenticatorSelection: {
      residentKey: 'preferred',
      userVerification: 'preferred',
      requireResidentKey: false,
    },
    extensions: { credProps: true },
    hints: [],
  };
}

/** PublicKeyCredentialRequestOptionsJSON. */
export function requestOptions(
  { fido2 }: Site,
  { challenge }: Challenge,
  timeoutMs: number,
  credentialIds: readonly string[] | undefined,
) {
  return {
    challenge,
    rpId: fido2.rpId,
    timeout: timeoutMs,
    userVerification: 'preferred',
    ...(credentialIds === undefined
      ? {}
      : { allowCredentials: credentialIds.map((id) => ({ id, type: 'public-key' })) }),
  };
}

function checkSpelling(
  sent: { readonly id: string; readonly rawId: string },
  parts: Record<string, string>,
): void {
  if (sent.rawId !== sent.id) throw new GatewayError('InvalidInput', 'credential: id and rawId differ');
  for (const [name, value] of Object.entries({ id: sent.id, ...parts })) {
    if (decodeBase64url(value) === undefined)
      throw new GatewayError('InvalidInput', `credential: ${name} is not base64url`);
  }
}

function base64urlText(bytesMax: number, minLength = 1) {
  const maxLength = Math.ceil((bytesMax * 4) / 3);
  const form = 'base64url without padding';
  return text({ minLength, maxLength, pattern: '^[A-Za-z0-9_-]*$', form, examples: ['AQIDBAUGBwg'] });
}
