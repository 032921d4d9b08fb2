/** Slow checks of keys, done in the worker pool between two turns, and the form in which the next turn gets their results. */
import type { ErrorName } from '../../domain/errors.ts';
import type { UserKey } from '../../domain/keys.ts';
import type { AuthenticationTask, EnrolledCredential, RegistrationTask } from '../../workers/fido2.ts';
import type { Ports } from '../runtime/ports.ts';

export interface Proof {
  readonly message: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
}

/** A browser's answer to a challenge of registration. */
export type Attestation = RegistrationTask;

/** A browser's answer to a challenge of login; what is known of the credential is the account's. */
export type Assertion = Omit<
  AuthenticationTask,
  'ownerHandle' | 'cosePublicKey' | 'userVerificationRequired'
>;

/** Use of a credential, from a valid assertion. */
export interface CredentialUse {
  readonly backedUp: boolean;
  readonly counter: number;
}

/** Undefined: all is well. */
export interface Finding {
  readonly refuse: ErrorName;
  readonly detail?: string;
}

/** Did the holder of the key (32 bytes) sign the message? */
export async function verifyProof(
  ports: Ports,
  publicKey: Uint8Array,
  { message, signature }: Proof,
): Promise<Finding | undefined> {
  const result = await ports.workers.run('verifyEd25519', { publicKey, message, signature });
  if (!result.ok) return { refuse: result.error };
  return result.value ? undefined : { refuse: 'InvalidSignature' };
}

/** May the key be enrolled, and, where a proof is given, does its holder have it? */
export async function verifyEnrollment(
  ports: Ports,
  publicKey: Uint8Array,
  proof: Proof | undefined,
): Promise<Finding | undefined> {
  const sound = await ports.workers.run('checkEd25519Key', { publicKey });
  if (!sound.ok) return { refuse: sound.error };
  if (!sound.value) return { refuse: 'InvalidInput', detail: 'publicKey is not a usable Ed25519 key' };
  return proof === undefined ? undefined : verifyProof(ports, publicKey, proof);
}

/** Is the ceremony good, and may its key be enrolled? */
export async function verifyAttestation(
  ports: Ports,
  attestation: Attestation,
): Promise<EnrolledCredential | Finding> {
  const result = await ports.workers.run('verifyRegistration', attestation);
  if (!result.ok) return { refuse: result.error };
  switch (result.value.result) {
    case 'good':
      return result.value.credential;
    case 'bad':
      return { refuse: 'InvalidSignature' };
    case 'unsound':
      return { refuse: 'InvalidInput', detail: 'credential: its key may not be enrolled' };
  }
}

/** Is the ceremony good, by this credential of the owner of `handle`? */
export async function verifyAssertion(
  ports: Ports,
  assertion: Assertion,
  key: UserKey,
  handle: string,
): Promise<CredentialUse | Finding> {
  if (key.fido2PublicKey === undefined) return { refuse: 'InvalidSignature' };
  const result = await ports.workers.run('verifyAuthentication', {
    ...assertion,
    ownerHandle: handle,
    cosePublicKey: key.fido2PublicKey,
    userVerificationRequired: key.userVerified === true,
  });
  if (!result.ok) return { refuse: result.error };
  return result.value.result === 'good' ? result.value : { refuse: 'InvalidSignature' };
}

export function isFinding(value: object | undefined): value is Finding {
  return value !== undefined && 'refuse' in value;
}
