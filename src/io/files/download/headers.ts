/**
 * Headers of a file: type, disposition, name and validators. The uploader chooses name and bytes, so nothing of a file
 * may run on the gateway's origin.
 */
import { toHttpDate } from '../../../domain/files/http-dates.ts';
import { type DigestMembers, digestMembers, reprDigest } from '../../../domain/files/repr-digest.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { HeaderList } from '../../http/table/route.ts';
import type { ChatFile } from '../../modules/chat-files.ts';

const REPR_DIGEST = 'Repr-Digest';
const UNKNOWN_TYPE = 'application/octet-stream';
/** Types by extension. All others are downloaded as bytes. */
const TYPES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  avif: 'image/avif',
  bmp: 'image/bmp',
  ico: 'image/x-icon',
  svg: 'image/svg+xml',
  mp3: 'audio/mpeg',
  m4a: 'audio/mp4',
  aac: 'audio/aac',
  ogg: 'audio/ogg',
  oga: 'audio/ogg',
  opus: 'audio/ogg',
  wav: 'audio/wav',
  flac: 'audio/flac',
  weba: 'audio/webm',
  mp4: 'video/mp4',
  m4v: 'video/mp4',
  webm: 'video/webm',
  ogv: 'video/ogg',
  mov: 'video/quicktime',
  pdf: 'application/pdf',
  txt: 'text/plain; charset=utf-8',
  log: 'text/plain; charset=utf-8',
};
/** Types that a browser may show inline. SVG may contain scripts. */
const SHOWN = /^(?:image\/(?!svg)|audio\/|video\/|application\/pdf$|text\/plain(?:;|$))/;
/** Characters of a name in the header: the longest that an upload may have; the module's may be longer. */
const NAME_CHARACTERS_MAX = 255;
/** Control characters, lone surrogates, line separators, direction marks and path separators. */
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069/\\]/gu;

/** The module's content type, else the one of the extension. */
export function contentTypeOf({ name, contentType }: Pick<ChatFile, 'name' | 'contentType'>): string {
  if (contentType !== undefined) return contentType;
  const extension = /\.([A-Za-z0-9]{1,8})$/.exec(name)?.[1]?.toLowerCase() ?? '';
  return Object.hasOwn(TYPES, extension) ? (TYPES[extension] ?? UNKNOWN_TYPE) : UNKNOWN_TYPE;
}

/** Content-Disposition of RFC 6266, the name in both forms where ASCII does not suffice (RFC 8187). */
function dispositionOf(name: string, contentType: string): string {
  const kind = SHOWN.test(contentType) ? 'inline' : 'attachment';
  const safe = [...name.replace(UNSAFE, '_')].slice(0, NAME_CHARACTERS_MAX).join('');
  if (safe === '') return kind;
  // Some browsers decode a percent sign in the plain form, and a backslash escapes what follows.
  const plain = safe.replace(/[^\x20-\x7e]|["%\\]/gu, '_');
  const quoted = `${kind}; filename="${plain}"`;
  return plain === safe ? quoted : `${quoted}; filename*=UTF-8''${encodeName(safe)}`;
}

/** RFC 8187 `value-chars`: encodes the characters that encodeURIComponent leaves and the RFC does not allow. */
function encodeName(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Strong and immutable: the bytes of a file id never change (spec 4.7). */
export function etagOf({ fileId, crc32, sizeBytes }: ChatFile): string {
  return `"${fileId}-${crc32}-${sizeBytes}"`;
}

/** uWebSockets.js makes `Date` once a second, and `Last-Modified` may never be later (RFC 9110 8.8.2.1). */
const DATE_AGE_MS = 2 * SECOND_MS;

/** Headers of a file, made once while the file cache keeps it: small ranges arrive by hundreds. */
interface Presentation {
  readonly etag: string;
  /** `Last-Modified`; dates of conditions are compared with it. */
  readonly modifiedMs: number;
  readonly contentType: string;
  /** Validators on every successful answer and on 416. */
  readonly validators: HeaderList;
  /** Headers beside the validators, on answers with a body, and on HEAD. `part`: a part, which takes no ranges. */
  readonly content: { readonly file: HeaderList; readonly part: HeaderList };
  readonly digests: DigestMembers;
}

const presentations = new WeakMap<ChatFile, Presentation>();

export function presentationOf(file: ChatFile): Presentation {
  const known = presentations.get(file);
  if (known !== undefined) return known;
  const contentType = contentTypeOf(file);
  const etag = etagOf(file);
  const modifiedMs = file.sentMs - DATE_AGE_MS;
  const validators: HeaderList = [
    ['ETag', etag],
    ['Last-Modified', toHttpDate(modifiedMs)],
  ];
  const contentWith = (acceptRanges: string): HeaderList => [
    ...validators,
    ['Accept-Ranges', acceptRanges],
    ['Content-Disposition', dispositionOf(file.name, contentType)],
    ['Content-Security-Policy', 'sandbox'],
  ];
  const digests = digestMembers(file);
  // A part is a resource of its own, whose digest is not known.
  const content = {
    file: [...contentWith('bytes'), ...digestFields(digests, undefined)],
    part: contentWith('none'),
  };
  const presentation: Presentation = { etag, modifiedMs, contentType, validators, content, digests };
  presentations.set(file, presentation);
  return presentation;
}

/** The headers of a whole file with the digests that its client asked for. */
export function contentHeaders({ content, digests }: Presentation, wanted: string | undefined): HeaderList {
  if (wanted === undefined) return content.file;
  return [...content.file.filter(([name]) => name !== REPR_DIGEST), ...digestFields(digests, wanted)];
}

function digestFields(digests: DigestMembers, wanted: string | undefined): HeaderList {
  const value = reprDigest(digests, wanted);
  return value === undefined ? [] : [[REPR_DIGEST, value]];
}
