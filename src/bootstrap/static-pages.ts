/** Selects the pages: the built-in ones, or the folder of `StaticPath` at `/`. */
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Configuration } from '../domain/config/configuration.ts';
import type { AnyRoute } from '../io/http/table/route.ts';
import type { Services } from '../io/http/table/services.ts';
import { connectorRoutes } from '../io/web/connector.ts';
import { type CachedFile, FileCache } from '../io/web/file-cache.ts';
import { createNotFound } from '../io/web/not-found.ts';
import { builtInFiles, FolderError, folderFiles, type VendorFile } from '../io/web/page-tree.ts';
import { FolderUnusable } from './data-directory.ts';

/** Path from build/src to src/web. */
const WEB_FOLDER = resolve(dirname(fileURLToPath(import.meta.url)), '../../../src/web');

/** Path from build/src to build/connector. */
const CONNECTOR_FOLDER = resolve(dirname(fileURLToPath(import.meta.url)), '../../connector');

/** Library files for browsers: the served name, a module that resolves, and the file beside it. */
const VENDOR = [
  { name: 'preact.js', near: 'htm/preact', file: 'standalone.module.js' },
  { name: 'uplot.js', near: 'uplot', file: 'uPlot.iife.min.js' },
  { name: 'uplot.css', near: 'uplot', file: 'uPlot.min.css' },
  { name: 'swagger-ui.js', near: 'swagger-ui-dist/swagger-ui-bundle.js', file: 'swagger-ui-bundle.js' },
  { name: 'swagger-ui.css', near: 'swagger-ui-dist/swagger-ui-bundle.js', file: 'swagger-ui.css' },
] as const;

export interface Pages {
  readonly routes: readonly AnyRoute[];
  readonly notFound: Services['notFound'];
}

/** Reads all pages. Files must not hide the routes of `api`. Throws `FolderUnusable` for an unusable `StaticPath`. */
export function openPages({ staticPath }: Configuration, api: readonly AnyRoute[]): Pages {
  const { files, notFound: page } = builtInFiles(WEB_FOLDER, vendorFiles(), {
    homePage: staticPath === undefined,
  });
  const builtIn = [...new FileCache(files).routes, ...connectorRoutes(CONNECTOR_FOLDER)];
  const notFound = createNotFound(page);
  if (staticPath === undefined) return { routes: builtIn, notFound };
  const taken = new Set([...api, ...builtIn].map(({ path }) => path));
  // Custom pages have their own content security policy, in a meta element.
  const own = new FileCache(readFolder(staticPath, taken), '');
  return { routes: [...builtIn, ...own.routes], notFound };
}

function readFolder(path: string, taken: ReadonlySet<string>): CachedFile[] {
  try {
    return folderFiles(path, taken);
  } catch (error) {
    if (!(error instanceof FolderError) && !isSystemError(error)) throw error;
    throw new FolderUnusable(error.message, 'StaticPath');
  }
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'syscall' in error;
}

function vendorFiles(): VendorFile[] {
  const { resolve: find } = createRequire(import.meta.url);
  return VENDOR.map(({ name, near, file }) => ({ name, file: join(dirname(find(near)), file) }));
}
