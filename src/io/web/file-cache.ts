/** Serves pages, scripts and styles from memory, exempt from rate limits (spec 8.1 rule 6). */
import { extname } from 'node:path';
import { type AnyRoute, defineRoute, type HeaderList } from '../http/table/route.ts';
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
  '.tgz': 'application/gzip',
};
/** Pictures, fonts and packages are compressed already. */
const COMPRESSED = new Set(['.png', '.ico', '.woff2', '.tgz']);

/**
 * Allows this origin's own scripts, styles and pictures only. The pages use no inline script or style, so injected markup
 * cannot run.
 */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

const FILE_FIELDS: HeaderList = [
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
];

/** Header fields of a page under this `Content-Security-Policy`. */
export function pageFields(policy: string): HeaderList {
  return [
    ...FILE_FIELDS,
    ['Content-Security-Policy', policy],
    ['X-Frame-Options', 'DENY'],
    ['Cross-Origin-Opener-Policy', 'same-origin'],
  ];
}

export interface CachedFile {
  /** The path it is served at, with a leading `/`. */
  readonly path: string;
  readonly bytes: Buffer;
  /** The path contains a hash of the content, so it may be cached for a year. */
  readonly immutable: boolean;
  /** Served to the addresses of `Admin.allow` only. */
  readonly adminOnly?: true;
}

export class FileCache {
  readonly routes: readonly AnyRoute[];

  /** `policy`: `Content-Security-Policy` of pages; '' for none. */
  constructor(files: readonly CachedFile[], policy: string = PAGE_POLICY) {
    this.routes = files.map((file) => routeOf(file, bodyOf(file, policy)));
  }
}

function bodyOf(file: CachedFile, policy: string): CachedBody {
  const contentType = TYPES[extname(file.path) || '.html'] ?? 'application/octet-stream';
  const isPage = contentType.startsWith('text/html') && policy !== '';
  const fields: HeaderList = [
    ['Cache-Control', file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache'],
    ...(isPage ? pageFields(policy) : FILE_FIELDS),
  ];
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
