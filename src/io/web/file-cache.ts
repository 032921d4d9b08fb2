/**
 * Files that the gateway serves from memory: pages, scripts, styles. Read once at start, compressed once in the
 * background, answered without the limiter (spec 8.1 rule 6).
 */
import { extname } from 'node:path';
import { type AnyRoute, defineRoute } from '../http/route.ts';
import { CachedBody } from './cached-body.ts';

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

export class FileCache {
  readonly routes: readonly AnyRoute[];

  /** `policy`: what pages are sent as `Content-Security-Policy`; '' for none. */
  constructor(files: readonly CachedFile[], policy: string = PAGE_POLICY) {
    this.routes = files.map((file) => routeOf(file, bodyOf(file, policy)));
  }
}

function bodyOf(file: CachedFile, policy: string): CachedBody {
  const contentType = TYPES[extname(file.path) || '.html'] ?? 'application/octet-stream';
  const fields: [string, string][] = [
    ['Cache-Control', file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache'],
    ['Referrer-Policy', 'no-referrer'],
    ['Cross-Origin-Resource-Policy', 'same-origin'],
  ];
  if (contentType.startsWith('text/html') && policy !== '') {
    fields.push(['Content-Security-Policy', policy], ['X-Frame-Options', 'DENY']);
    fields.push(['Cross-Origin-Opener-Policy', 'same-origin']);
  }
  return new CachedBody(file.bytes, contentType, fields, !COMPRESSED.has(extname(file.path)));
}

function routeOf(file: CachedFile, body: CachedBody): AnyRoute {
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
    handle: ({ header }) => body.reply(header),
  });
}
