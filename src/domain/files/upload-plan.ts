/**
 * Header fields of a v2 upload: whole file, part by `Range` (spec 4.7) or by draft-ietf-httpbis-resumable-upload
 * (interop version 8), and digests to check (RFC 9530). Pure. Unreadable fields are refused: a guessed offset would
 * damage the file.
 */

const INTEROP_VERSION = '8';

export interface Digests {
  /** 32 bytes. */
  readonly sha256?: Buffer;
  /** Unsigned. */
  readonly crc32?: number;
}

export interface UploadPlan {
  /** Position in the file at which the body begins. */
  readonly offsetBytes: number;
  /** The offset has to be the end of what is kept (`Upload-Offset`). */
  readonly appends: boolean;
  /** The bytes stay when the body breaks off. */
  readonly keeps: boolean;
  /** Bytes that the body has to have, where the request says so. */
  readonly bodyBytes: number | undefined;
  /** Bytes of the whole file, where the request says so. */
  readonly totalBytes: number | undefined;
  /** `always`: the file ends with this body. `atSize`: when it has the size that was declared. `never`: more will come. */
  readonly completes: 'always' | 'atSize' | 'never';
  /** The answer speaks of resumable uploads. */
  readonly resumable: boolean;
  /** Digests of the body, and those of the whole file. */
  readonly contentDigests: Digests;
  readonly fileDigests: Digests;
}

type UploadPlanResult =
  | { readonly ok: true; readonly plan: UploadPlan }
  /** Names the field that cannot be read. */
  | { readonly ok: false; readonly fault: string };

/** Lower-case name to value; undefined for a field that was not sent. */
type FieldReader = (name: string) => string | undefined;

const WHOLE = {
  offsetBytes: 0,
  appends: false,
  keeps: false,
  bodyBytes: undefined,
  totalBytes: undefined,
  completes: 'always',
  resumable: false,
} as const;

/** Fields that decide what is written where: one that comes twice is refused. */
export const UPLOAD_FIELDS = [
  'range',
  'upload-offset',
  'upload-complete',
  'upload-length',
  'upload-draft-interop-version',
  'content-digest',
  'repr-digest',
] as const;

/**
 * Says why a body is not the plain bytes of a file, naming the header; undefined when it is. A form would be stored
 * with its boundaries. Any other content type describes the file itself.
 */
export function bodyFormFault(field: FieldReader, repeated: ReadonlySet<string>): string | undefined {
  if (repeated.has('content-type')) return 'content-type: sent twice';
  return /^\s*multipart\/form-data\s*(?:;|$)/i.test(field('content-type') ?? '')
    ? 'content-type: expected the bytes of the file, not a form'
    : undefined;
}

export function readUploadPlan(field: FieldReader): UploadPlanResult {
  const contentDigests = readDigests(field('content-digest'));
  if (contentDigests === undefined) return fault('Content-Digest');
  const fileDigests = readDigests(field('repr-digest'));
  if (fileDigests === undefined) return fault('Repr-Digest');
  const extent = readExtent(field);
  return typeof extent === 'string'
    ? fault(extent)
    : { ok: true, plan: { ...extent, contentDigests, fileDigests } };
}

type Extent = Omit<UploadPlan, 'contentDigests' | 'fileDigests'>;

/** A text names the field that cannot be read. */
function readExtent(field: FieldReader): Extent | string {
  const range = field('range');
  const complete = field('upload-complete');
  const offset = field('upload-offset');
  const version = field('upload-draft-interop-version') ?? INTEROP_VERSION;
  if (complete === undefined && offset === undefined) return range === undefined ? WHOLE : readPiece(range);
  if (range !== undefined) return 'Range beside Upload-Complete';
  // Clients of other versions may send a whole file so; a piece of it they would count differently.
  if (version.trim() !== INTEROP_VERSION)
    return complete === '?1' && offset === undefined ? WHOLE : 'Upload-Draft-Interop-Version';
  if (complete !== '?1' && complete !== '?0') return 'Upload-Complete';
  const offsetBytes = offset === undefined ? 0 : readCount(offset);
  if (offsetBytes === undefined) return 'Upload-Offset';
  const length = field('upload-length');
  const totalBytes = length === undefined ? undefined : readCount(length);
  if (length !== undefined && (totalBytes === undefined || totalBytes < offsetBytes)) return 'Upload-Length';
  return {
    offsetBytes,
    appends: offset !== undefined,
    keeps: true,
    bodyBytes: complete === '?1' && totalBytes !== undefined ? totalBytes - offsetBytes : undefined,
    totalBytes,
    completes: complete === '?1' ? 'always' : 'never',
    resumable: true,
  };
}

/** `bytes=a-b`, `bytes=a-`, both with `/total` behind where the uploader knows it. */
function readPiece(range: string): Extent | string {
  const parts = /^bytes=([0-9]{1,16})-([0-9]{0,16})(?:\/([0-9]{1,16}|\*))?$/i.exec(range.trim());
  if (parts === null) return 'Range';
  const [, first = '', last = '', total = '*'] = parts;
  const offsetBytes = Number(first);
  const endBytes = last === '' ? undefined : Number(last) + 1;
  const totalBytes = total === '*' ? undefined : Number(total);
  if (endBytes !== undefined && (endBytes <= offsetBytes || (totalBytes ?? endBytes) < endBytes))
    return 'Range';
  if (totalBytes !== undefined && totalBytes <= offsetBytes) return 'Range';
  if ([offsetBytes, endBytes ?? 0, totalBytes ?? 0].some((each) => !Number.isSafeInteger(each)))
    return 'Range';
  return {
    offsetBytes,
    appends: false,
    keeps: true,
    bodyBytes: endBytes === undefined ? undefined : endBytes - offsetBytes,
    totalBytes,
    completes: 'atSize',
    resumable: false,
  };
}

/** An integer of RFC 8941 that counts bytes. */
function readCount(text: string): number | undefined {
  return /^[0-9]{1,15}$/.test(text.trim()) ? Number(text) : undefined;
}

/**
 * A dictionary of byte sequences (RFC 9530 2): `sha-256=:<base64>:, crc32=:<base64 of 4 bytes, big-endian>:`. Other
 * algorithms are left out; undefined when it cannot be read or a known one has the wrong length.
 */
function readDigests(value: string | undefined): Digests | undefined {
  if (value === undefined) return {};
  const digests: { sha256?: Buffer; crc32?: number } = {};
  for (const member of value.split(',')) {
    const parts = /^[\t ]*([a-z*][a-z0-9_.*-]{0,31})=:([A-Za-z0-9+/]{0,256}={0,2}):[\t ]*$/.exec(member);
    if (parts === null) return undefined;
    const [, algorithm, base64 = ''] = parts;
    const bytes = Buffer.from(base64, 'base64');
    if (algorithm === 'sha-256') {
      if (bytes.length !== 32) return undefined;
      digests.sha256 = bytes;
    } else if (algorithm === 'crc32') {
      if (bytes.length !== 4) return undefined;
      digests.crc32 = bytes.readUInt32BE();
    }
  }
  return digests;
}

function fault(field: string): UploadPlanResult {
  return { ok: false, fault: field };
}
