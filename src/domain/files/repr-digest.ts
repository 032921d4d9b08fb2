/** Digests of a whole file for its downloads, and the choice of the client among them (RFC 9530 3 and 4). */

/** Digests of all bytes of a file. */
interface FileDigests {
  /** Unsigned. */
  readonly crc32: number;
  /** 32 bytes; undefined where it is not known. */
  readonly sha256: Buffer | undefined;
}

/** Algorithms as uploads name them, with members of `Repr-Digest`. */
export type DigestMembers = Readonly<Record<string, string>>;

const ALGORITHM = /^[a-z*][a-z0-9_.*-]{0,31}$/;
/** 0 refuses an algorithm, 10 prefers it most. */
const PREFERENCE = /^(?:[0-9]|10)$/;

export function digestMembers({ crc32, sha256 }: FileDigests): DigestMembers {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32);
  return {
    ...(sha256 === undefined ? {} : { 'sha-256': member('sha-256', sha256) }),
    crc32: member('crc32', bytes),
  };
}

/** Value of `Repr-Digest` for this `Want-Repr-Digest`; undefined where it accepts none. One that cannot be read asks for none. */
export function reprDigest(members: DigestMembers, wanted: string | undefined): string | undefined {
  const preferences = wanted === undefined ? undefined : readPreferences(wanted);
  if (preferences === undefined) return Object.values(members).join(', ');
  const accepted = Object.keys(members).filter((algorithm) => (preferences.get(algorithm) ?? 0) > 0);
  accepted.sort((a, b) => (preferences.get(b) ?? 0) - (preferences.get(a) ?? 0));
  return accepted.length === 0 ? undefined : accepted.map((algorithm) => members[algorithm]).join(', ');
}

/** A dictionary of integers (RFC 8941 3.2); the last member of a name counts. Undefined when it cannot be read. */
function readPreferences(value: string): ReadonlyMap<string, number> | undefined {
  const preferences = new Map<string, number>();
  for (const text of value.split(',')) {
    const [name = '', preference = '', ...rest] = text.trim().split('=');
    if (rest.length > 0 || !ALGORITHM.test(name) || !PREFERENCE.test(preference)) return undefined;
    preferences.set(name, Number(preference));
  }
  return preferences;
}

function member(algorithm: string, bytes: Buffer): string {
  return `${algorithm}=:${bytes.toString('base64')}:`;
}
