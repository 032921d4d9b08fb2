/** User keys (spec 2.2): software Ed25519 keys and FIDO2 keys in one collection, distinguished by their flag bits. */

/** Flag bits by the names of spec 2.2; `NoBrowserLogin` is ours (issue 26), so that records without it stay as they are. */
export const KeyFlag = {
  PasswordKey: 1,
  UserKey: 2,
  Fido2Key: 4,
  McpAccess: 8,
  CardDav: 16,
  Deleted: 32,
  NoBrowserLogin: 64,
} as const;

/** COSE algorithms that authenticators are offered and may answer with, the preferred first. */
export const CREDENTIAL_ALGORITHMS: readonly number[] = [-8, -7, -257];

export type KeyType = 'PasswordKey' | 'UserKey' | 'FIDO2' | 'Unknown';

export interface UserKey {
  /** Tick, decimal. */
  readonly id: string;
  readonly ownerId: string;
  /** base64url: the Ed25519 key (32 bytes) of a software key, the credential id of a FIDO2 key. */
  readonly publicKey: string;
  /** FIDO2 only: the COSE public key in CBOR. */
  readonly fido2PublicKey?: Uint8Array;
  /** FIDO2 only: enrolled with user verification, which every login must then show too. */
  readonly userVerified?: boolean;
  /** FIDO2 only: the credential is synchronised to other devices, as of its last use. */
  readonly backedUp?: boolean;
  /** FIDO2 only: how browsers reach the authenticator. */
  readonly transports?: readonly string[];
  /** FIDO2 only: the highest counter reported. Nothing is refused by it: it feeds the login log. */
  readonly counterReported?: number;
  /** Reserved by spec 2.2 and never advanced: authenticators that sync report counters that go backwards. */
  readonly signatureCounter: 0;
  readonly flags: number;
  readonly createdMs: number;
  /** Registered with proof of possession; a claim by name only is unproven. */
  readonly proven: boolean;
  readonly name?: string;
  readonly lastUsedMs?: number;
}

export function hasFlag(flags: number, flag: number): boolean {
  return (flags & flag) !== 0;
}

export function withFlag(flags: number, flag: number, on: boolean): number {
  return on ? flags | flag : flags & ~flag;
}

/** keyType from the flag bits; `Unknown` when none of the three kinds is set. */
export function keyTypeOf(flags: number): KeyType {
  if (hasFlag(flags, KeyFlag.PasswordKey)) return 'PasswordKey';
  if (hasFlag(flags, KeyFlag.Fido2Key)) return 'FIDO2';
  if (hasFlag(flags, KeyFlag.UserKey)) return 'UserKey';
  return 'Unknown';
}
