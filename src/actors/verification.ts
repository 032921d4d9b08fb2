/** Slow checks of keys, done in the worker pool between two turns. Owns how their results are told to the next turn. */
import type { ErrorName } from '../domain/errors.ts';
import type { Ports } from './runtime/ports.ts';

export interface Proof {
  readonly message: Uint8Array;
  /** 64 bytes. */
  readonly signature: Uint8Array;
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

/** May the key be enrolled (auth.md A1), and, where a proof is given, does its holder have it? */
export async function verifyEnrolment(
  ports: Ports,
  publicKey: Uint8Array,
  proof: Proof | undefined,
): Promise<Finding | undefined> {
  const sound = await ports.workers.run('checkEd25519Key', { publicKey });
  if (!sound.ok) return { refuse: sound.error };
  if (!sound.value) return { refuse: 'InvalidInput', detail: 'publicKey is not a usable Ed25519 key' };
  return proof === undefined ? undefined : verifyProof(ports, publicKey, proof);
}
