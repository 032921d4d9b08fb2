/**
 * How a file presents itself: its type, whether a browser may show it, its name, its validators. Whoever uploads picks
 * the name and the bytes, so nothing of it may run on the gateway's origin.
 */
import { toHttpDate } from '../../../domain/files/http-dates.ts';
import { SECOND_MS } from '../../../domain/time.ts';
import type { HeaderList } from '../../http/route.ts';
import type { ChatFile } from '../../modules/chat-files.ts';

const UNKNOWN_TYPE = 'application/octet-stream';
/** Types by extension. What is not here downloads as bytes. */
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
/** What a browser may show in place: nothing that holds scripts, so no SVG. */
const SHOWN = /^(?:image\/(?!svg)|audio\/|video\/|application\/pdf$|text\/plain(?:;|$))/;
/** Of a name in the header: the longest that the upload admits, should the module's be longer. */
const NAME_CHARACTERS_MAX = 255;
/** Characters that are none by themselves, end a line, turn the text around, or lead into another folder. */
const UNSAFE = /[\p{Cc}\p{Cs}\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069/\\]/gu;

/** The module's word on the type, else what the extension says. */
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

/** RFC 8187 `value-chars`: four characters that encodeURIComponent leaves stand for themselves only when encoded. */
function encodeName(name: string): string {
  return encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Strong and immutable: the bytes of a file id never change (files.md "Downloads"). */
export function etagOf({ fileId, crc32, sizeBytes }: ChatFile): string {
  return `"${fileId}-${crc32}-${sizeBytes}"`;
}

/** uWebSockets.js makes `Date` once a second, and `Last-Modified` may never be later (RFC 9110 8.8.2.1). */
const DATE_AGE_MS = 2 * SECOND_MS;

/** What its answers say of a file, made once for as long as the file cache keeps it: small ranges come by hundreds. */
interface Presentation {
  readonly etag: string;
  /** What `Last-Modified` says, and what dates in conditions are compared with. */
  readonly modifiedMs: number;
  readonly contentType: string;
  /** On every answer about the file that is no refusal, and on 416. */
  readonly validators: HeaderList;
  /** Those and more, on answers that carry its bytes, or would to GET. `part`: of a part that takes no ranges. */
  readonly content: { readonly file: HeaderList; readonly part: HeaderList };
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
  const content = { file: contentWith('bytes'), part: contentWith('none') };
  const presentation: Presentation = { etag, modifiedMs, contentType, validators, content };
  presentations.set(file, presentation);
  return presentation;
}
