/**
 * Files that the gateway serves from memory: pages, scripts, styles. Read once at start, compressed once in the
 * background, answered without the limiter (spec 8.1 rule 6).
 */
import { createHash } from 'node:crypto';
import { extname } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { type AnyRoute, defineRoute, type HeaderList, Reply } from '../http/route.ts';

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
};
/** Pictures and fonts are compressed already. */
const COMPRESSED = new Set(['.png', '.ico', '.woff2']);
/** Below this a compressed form costs more in fields than it saves. */
const COMPRESS_BYTES_MIN = 512;
/** Of 11: the last two steps take ten times as long for 3 % (1.7 MB of script: 0.4 s against 4 s). */
const BROTLI_QUALITY = 9;

/**
 * Nothing but this origin's own scripts, styles and pictures (auth.md "Admin panel"). The pages use no inline script or
 * style, so markup that gets into them as text could not run even if it were not escaped.
 */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

export interface CachedFile {
  /** The path it is served under, beginning with `/`. */
  readonly path: string;
  readonly bytes: Buffer;
  /** The address names this very content: it may be kept for a year without asking. */
  readonly immutable: boolean;
  /** Served to the addresses of `Admin.allow` alone. */
  readonly adminOnly?: true;
}

interface Stored {
  readonly file: CachedFile;
  readonly contentType: string;
  readonly etag: string;
  brotli: Buffer | undefined;
  gzip: Buffer | undefined;
}

export class FileCache {
  readonly routes: readonly AnyRoute[];
  readonly #stored: readonly Stored[];

  /** `policy`: what pages are sent as `Content-Security-Policy`; '' for none. */
  constructor(files: readonly CachedFile[], policy: string = PAGE_POLICY) {
    this.#stored = files.map((file) => ({
      file,
      contentType: TYPES[extname(file.path) || '.html'] ?? 'application/octet-stream',
      etag: `"${createHash('sha256').update(file.bytes).digest('base64url').slice(0, 22)}"`,
      brotli: undefined,
      gzip: undefined,
    }));
    this.routes = this.#stored.map((stored) => routeOf(stored, policy));
  }

  /** Makes the compressed forms, one file after the other. Until one is there the plain bytes are served. */
  async compress(): Promise<void> {
    for (const stored of this.#stored) {
      const { bytes, path } = stored.file;
      if (bytes.length < COMPRESS_BYTES_MIN || COMPRESSED.has(extname(path))) continue;
      const options = {
        params: {
          [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
          [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
        },
      };
      stored.brotli = await promisify(brotliCompress)(bytes, options);
      stored.gzip = await promisify(gzip)(bytes, { level: 9 });
    }
  }
}

function routeOf(stored: Stored, policy: string): AnyRoute {
  const { file } = stored;
  const isPage = stored.contentType.startsWith('text/html');
  const common: [string, string][] = [
    ['ETag', stored.etag],
    ['Vary', 'Accept-Encoding'],
    ['Cache-Control', file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache'],
    ['Referrer-Policy', 'no-referrer'],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
  ];
  if (isPage && policy !== '') {
    common.push(['Content-Security-Policy', policy], ['X-Frame-Options', 'DENY']);
    common.push(['Cross-Origin-Opener-Policy', 'same-origin']);
  }
  return defineRoute({
    method: 'GET',
    path: file.path,
    summary: 'A file of the pages',
    group: 'files of the pages',
    auth: 'none',
    limits: ['NoRateLimit'],
    isFile: true,
    ...(file.adminOnly === true ? { adminAddresses: true as const } : {}),
    errors: [],
    handle: ({ header }) => answer(stored, common, header('accept-encoding'), header('if-none-match')),
  });
}

/** The smallest form that the client takes. Conditions first (RFC 9110 13.1.2): the tag names the content, not its form. */
function answer(
  stored: Stored,
  common: HeaderList,
  encodings: string | undefined,
  known: string | undefined,
): Reply {
  if (known !== undefined && isKnown(known, stored.etag)) return new Reply(304, null, undefined, common);
  const accepted = encodings ?? '';
  if (stored.brotli !== undefined && accepts(accepted, 'br')) {
    return new Reply(200, stored.brotli, stored.contentType, [...common, ['Content-Encoding', 'br']]);
  }
  if (stored.gzip !== undefined && accepts(accepted, 'gzip')) {
    return new Reply(200, stored.gzip, stored.contentType, [...common, ['Content-Encoding', 'gzip']]);
  }
  return new Reply(200, stored.file.bytes, stored.contentType, common);
}

function isKnown(condition: string, etag: string): boolean {
  return condition.split(',').some((part) => {
    const tag = part.trim();
    return tag === '*' || tag === etag || tag === `W/${etag}`;
  });
}

/** RFC 9110 12.5.3; a coding with `q=0` is refused. */
function accepts(field: string, coding: string): boolean {
  return field.split(',').some((part) => {
    const [name = '', ...parameters] = part.trim().toLowerCase().split(';');
    return (
      name.trim() === coding && !parameters.some((parameter) => /^\s*q\s*=\s*0(?:\.0*)?\s*$/.test(parameter))
    );
  });
}
