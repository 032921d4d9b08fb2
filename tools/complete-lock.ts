/**
 * Completes package-lock.json. Platform packages of uWebSockets.js that a registry mirror cannot resolve are left
 * out of the lock by `npm install`, and `npm ci` then refuses the lock (EUSAGE). This adds an entry for each one
 * that is named as an optional dependency and missing. Run it after every change of dependencies.
 *
 *     npm run build && node build/tools/complete-lock.js
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** The packages whose optional platform packages must all stand in the lock, by their folder in node_modules. */
const OWNERS = ['uWebSockets.js'];

const ENGINES: Record<string, string> = {
  '18': '^18.0.0',
  '20': '^20.0.0',
  '22': '^22.0.0',
  '23': '^23.0.0',
};

interface LockEntry {
  version?: string;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
  engines?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
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
  const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, LockEntry> };
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
}
