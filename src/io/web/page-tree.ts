/**
 * Lists the files of the built-in pages and of the `StaticPath` folder for the file cache. Scripts and styles are served
 * under a common hash, so that they can be cached permanently.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, sep } from 'node:path';
import type { CachedFile } from './file-cache.ts';

/** Placeholder in a page for the base path of scripts and styles. */
const ASSETS = '{{assets}}';
const FOLDER_FILES_MAX = 2_000;
const FOLDER_BYTES_MAX = 64 * 1024 * 1024;

const ADMIN_PAGES = [
  'Setup',
  'Recovery',
  'Dashboard',
  'Settings',
  'Users',
  'Account',
  'UserKeys',
  'Apps',
  'Uploads',
  'Events',
  'LoginLog',
  'Audit',
  'Actors',
  'Modules',
  'Tools',
  'Nodes',
  'Health',
] as const;

/** The paths of each page. */
const PAGES: Readonly<Record<string, readonly string[]>> = {
  'home/index.html': ['/'],
  'admin/index.html': ['/ProxyAdmin', '/ProxyAdmin/', ...ADMIN_PAGES.map((name) => `/ProxyAdmin/${name}`)],
  'connect/index.html': ['/connect/authorize'],
  'docs/index.html': ['/docs/swagger', '/docs/swagger/'],
};

/** Served at no path of its own. */
const NOT_FOUND = 'not-found/index.html';

/** A file of a library and its name below the assets. */
export interface VendorFile {
  readonly name: string;
  /** Path on disk. */
  readonly file: string;
}

/** The folder cannot be served. */
export class FolderError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'FolderError';
  }
}

interface BuiltIn {
  readonly files: readonly CachedFile[];
  /** The page of an address that no route has. */
  readonly notFound: Buffer;
}

/** The built-in pages from the folder that holds them. `homePage` false: `/` is served by other files. */
export function builtInFiles(
  folder: string,
  vendor: readonly VendorFile[],
  { homePage }: { homePage: boolean },
): BuiltIn {
  const own = listFiles(folder).map((name) => ({ name, bytes: readFileSync(join(folder, name)) }));
  const foreign = vendor.map(({ name, file }) => ({ name: `vendor/${name}`, bytes: readFileSync(file) }));
  const assets = [...own.filter(({ name }) => extname(name) !== '.html'), ...foreign];
  const hash = createHash('sha256');
  for (const { name, bytes } of assets) hash.update(name).update('\0').update(bytes).update('\0');
  const base = `/web/${hash.digest('hex').slice(0, 16)}`;
  const files: CachedFile[] = assets.map(({ name, bytes }) => ({
    path: `${base}/${name}`,
    bytes,
    immutable: true,
  }));
  let notFound: Buffer | undefined;
  for (const { name, bytes } of own) {
    const page = Buffer.from(bytes.toString('utf8').replaceAll(ASSETS, base));
    if (name === NOT_FOUND) notFound = page;
    for (const path of PAGES[name] ?? []) {
      if (path === '/' && !homePage) continue;
      const admin = path.startsWith('/ProxyAdmin');
      files.push({ path, bytes: page, immutable: false, ...(admin ? { adminOnly: true as const } : {}) });
    }
  }
  if (notFound === undefined) throw new FolderError(`has no ${NOT_FOUND}`);
  return { files, notFound };
}

/** A folder unchanged: `index.html` at `/`, other files at their names. Throws `FolderError`. */
export function folderFiles(folder: string, taken: ReadonlySet<string>): CachedFile[] {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new FolderError('is not a folder');
  const names = listFiles(folder);
  if (names.length > FOLDER_FILES_MAX) throw new FolderError(`holds more than ${FOLDER_FILES_MAX} files`);
  let sizeBytes = 0;
  return names.map((name) => {
    const path = name === 'index.html' ? '/' : `/${name.split('/').map(encodeURIComponent).join('/')}`;
    if (taken.has(path)) throw new FolderError(`${path} is served by the gateway itself`);
    sizeBytes += statSync(join(folder, name)).size;
    if (sizeBytes > FOLDER_BYTES_MAX) throw new FolderError(`holds more than ${FOLDER_BYTES_MAX} bytes`);
    return { path, bytes: readFileSync(join(folder, name)), immutable: false };
  });
}

/** Sorted relative paths with `/`. Symbolic links and hidden files are left out. */
function listFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) =>
      join(entry.parentPath ?? entry.path, entry.name)
        .slice(folder.length)
        .split(sep),
    )
    .map((parts) => parts.filter((part) => part !== ''))
    .filter((parts) => !parts.some((part) => part.startsWith('.')))
    .map((parts) => parts.join('/'))
    .sort();
}
