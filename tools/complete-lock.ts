/**
 * Adds the platform packages of uWebSockets.js that `npm install` leaves out of package-lock.json when a mirror cannot
 * resolve them, so that `npm ci` accepts the lock. Lists entries without `integrity`. Run after a change of dependencies:
 * `npm run build && node build/tools/complete-lock.js`.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** The packages whose optional platform packages must all stand in the lock, by their folder in node_modules. */
const OWNERS = ['uWebSockets.js', 'uWebSockets.js-next'];

/** Platforms of uWebSockets.js that the registry in use does not serve, with the Node lines that each has a build for. */
const UNSERVED_PLATFORMS: Readonly<Record<string, readonly number[]>> = {
  'darwin-arm64': [18, 20, 22, 23, 24, 26],
  'darwin-x64': [18, 20, 22, 23, 24, 26],
  'linux-arm': [18, 20, 22, 23],
  'linux-arm64': [18, 20, 22, 23, 24, 26],
  'win32-x64': [18, 20, 22, 23, 24, 26],
};
/**
 * Locked packages whose entries cannot name an `integrity`. `npm ci` takes none of them, as each is optional and for
 * another platform than the tested one. Every other entry has one.
 */
const UNSERVED: ReadonlySet<string> = new Set(
  Object.entries(UNSERVED_PLATFORMS).flatMap(([platform, lines]) =>
    lines.map((line) => `@uwsjs/${platform}-${line}`),
  ),
);
/** Text that npm writes: the algorithm and the digest in base64 (W3C Subresource Integrity). */
const INTEGRITY = /^sha512-[A-Za-z0-9+/]{86}==$/;

interface LockEntry {
  version?: string;
  integrity?: string;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  engines?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  link?: boolean;
  resolved?: string;
  hasInstallScript?: boolean;
}

interface LockFile {
  packages: Record<string, LockEntry>;
}

/** Paths of the optional dependencies of `OWNERS` that the lock does not hold, with their pinned versions. */
export function missingFromLock(packages: Record<string, LockEntry>): Record<string, string> {
  const missing: Record<string, string> = {};
  for (const owner of OWNERS) {
    const wanted = packages[`node_modules/${owner}`]?.optionalDependencies ?? {};
    for (const [name, version] of Object.entries(wanted)) {
      const shared = `node_modules/${name}`;
      const own = `node_modules/${owner}/${shared}`;
      if (packages[own]?.version === version || packages[shared]?.version === version) continue;
      // Two versions of one package: the second one is in the folder of its owner.
      missing[packages[shared] === undefined && missing[shared] === undefined ? shared : own] = version;
    }
  }
  return missing;
}

/**
 * Paths of entries without a sound `integrity` that `UNSERVED` does not name, and of those that it names although they
 * have one or are not optional. Folders of this repository have none.
 */
export function withoutIntegrity(packages: Record<string, LockEntry>): string[] {
  const isFault = ([path, entry]: [string, LockEntry]): boolean => {
    if (!UNSERVED.has(path.replace(/^.*node_modules\//, ''))) return !INTEGRITY.test(entry.integrity ?? '');
    return entry.integrity !== undefined || entry.optional !== true;
  };
  return Object.entries(packages)
    .filter(
      ([path, { link, resolved }]) => path.includes('node_modules/') && !(link === true && isOwn(resolved)),
    )
    .filter(isFault)
    .map(([path]) => path);
}

/** A folder of this repository that takes the place of a package. */
function isOwn(resolved: string | undefined): boolean {
  return resolved?.startsWith('packages/') === true;
}

/** `@uwsjs/linux-x64-20` names its system, processor and Node major: nothing else is known of a package we cannot see. */
function platformEntry(path: string, version: string): LockEntry {
  const [os = '', cpu = '', major = ''] = path.replace(/^.*\//, '').split('-');
  return {
    version,
    cpu: [cpu],
    optional: true,
    os: [os],
    engines: { node: `^${major}.0.0` },
  };
}

function completeLock(file: string): number {
  const lock = JSON.parse(readFileSync(file, 'utf8')) as LockFile;
  const missing = missingFromLock(lock.packages);
  for (const [path, version] of Object.entries(missing)) lock.packages[path] = platformEntry(path, version);
  const root = lock.packages[''] ?? {};
  const rest = Object.entries(lock.packages)
    .filter(([path]) => path !== '')
    .sort(([a], [b]) => a.localeCompare(b, 'en'));
  lock.packages = { '': root, ...Object.fromEntries(rest) };
  writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
  return Object.keys(missing).length;
}

if (process.argv[1]?.endsWith('complete-lock.js')) {
  const added = completeLock('package-lock.json');
  process.stdout.write(`package-lock.json: ${added} platform packages added\n`);
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as LockFile;
  const faults = withoutIntegrity(packages);
  // `npm view NAME@VERSION dist.integrity` says what the registry serves.
  for (const path of faults) process.stderr.write(`package-lock.json: ${path}: no integrity\n`);
  if (faults.length > 0) process.exitCode = 1;
}
