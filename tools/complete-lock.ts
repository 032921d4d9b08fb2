/**
 * Adds the platform packages of uWebSockets.js that `npm install` leaves out of package-lock.json when a mirror cannot
 * resolve them, so that `npm ci` accepts the lock. Lists entries without `integrity`. Run after a change of dependencies:
 * `npm run build && node build/tools/complete-lock.js`.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** The packages whose optional platform packages must all stand in the lock, by their folder in node_modules. */
const OWNERS = ['uWebSockets.js'];

/**
 * Locked packages that the registry in use does not serve: their entries cannot name an `integrity`, and `npm ci` takes
 * none of them, as each is optional and for another platform than the tested one. By exact name; every other has one.
 */
const UNSERVED: ReadonlySet<string> = new Set([
  '@uwsjs/darwin-arm64-18',
  '@uwsjs/darwin-arm64-20',
  '@uwsjs/darwin-arm64-22',
  '@uwsjs/darwin-arm64-23',
  '@uwsjs/darwin-x64-18',
  '@uwsjs/darwin-x64-20',
  '@uwsjs/darwin-x64-22',
  '@uwsjs/darwin-x64-23',
  '@uwsjs/linux-arm-18',
  '@uwsjs/linux-arm-20',
  '@uwsjs/linux-arm-22',
  '@uwsjs/linux-arm-23',
  '@uwsjs/linux-arm64-18',
  '@uwsjs/linux-arm64-20',
  '@uwsjs/linux-arm64-22',
  '@uwsjs/linux-arm64-23',
  '@uwsjs/win32-x64-18',
  '@uwsjs/win32-x64-20',
  '@uwsjs/win32-x64-22',
  '@uwsjs/win32-x64-23',
]);
/** What npm writes: the algorithm and the digest in base64 (W3C Subresource Integrity). */
const INTEGRITY = /^sha512-[A-Za-z0-9+/]{86}==$/;

const ENGINES: Record<string, string> = {
  '18': '^18.0.0',
  '20': '^20.0.0',
  '22': '^22.0.0',
  '23': '^23.0.0',
};

interface LockEntry {
  version?: string;
  integrity?: string;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  engines?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
}

interface LockFile {
  packages: Record<string, LockEntry>;
}

/** Names of the optional dependencies of `OWNERS` that the lock does not hold, with their pinned versions. */
export function missingFromLock(packages: Record<string, LockEntry>): Record<string, string> {
  const missing: Record<string, string> = {};
  for (const owner of OWNERS) {
    const wanted = packages[`node_modules/${owner}`]?.optionalDependencies ?? {};
    for (const [name, version] of Object.entries(wanted)) {
      if (packages[`node_modules/${name}`] === undefined) missing[name] = version;
    }
  }
  return missing;
}

/**
 * Paths of entries without a sound `integrity` that `UNSERVED` does not name, and of those that it names although they
 * have one or are not optional.
 */
export function withoutIntegrity(packages: Record<string, LockEntry>): string[] {
  const isFault = ([path, entry]: [string, LockEntry]): boolean => {
    if (!UNSERVED.has(path.replace(/^.*node_modules\//, ''))) return !INTEGRITY.test(entry.integrity ?? '');
    return entry.integrity !== undefined || entry.optional !== true;
  };
  return Object.entries(packages)
    .filter(([path]) => path !== '')
    .filter(isFault)
    .map(([path]) => path);
}

/** `@uwsjs/linux-x64-20` names its system, processor and Node major: nothing else is known of a package we cannot see. */
function platformEntry(name: string, version: string): LockEntry {
  const [os = '', cpu = '', major = ''] = name.replace(/^.*\//, '').split('-');
  const node = ENGINES[major];
  return {
    version,
    cpu: [cpu],
    ...(node === undefined ? {} : { engines: { node } }),
    optional: true,
    os: [os],
  };
}

function completeLock(file: string): number {
  const lock = JSON.parse(readFileSync(file, 'utf8')) as LockFile;
  const missing = missingFromLock(lock.packages);
  for (const [name, version] of Object.entries(missing)) {
    lock.packages[`node_modules/${name}`] = platformEntry(name, version);
  }
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
