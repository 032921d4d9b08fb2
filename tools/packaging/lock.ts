/** package-lock.json as Node resolves packages: for what is printed of dependencies, the bill of materials and advisories. */
import { readFileSync } from 'node:fs';

export interface LockEntry {
  /** Absent where the folder has the name of the package. */
  readonly name?: string;
  readonly version?: string;
  readonly license?: string;
  /** Text that npm writes: the algorithm and the digest in base64 (W3C Subresource Integrity). */
  readonly integrity?: string;
  /** A folder of this repository in place of a package of the registry. */
  readonly link?: boolean;
  readonly resolved?: string;
  readonly optional?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/** By the path of their folder; `''` is the project itself. */
export type LockedPackages = Readonly<Record<string, LockEntry>>;

export function readLock(): LockedPackages {
  return (JSON.parse(readFileSync('package-lock.json', 'utf8')) as { packages: LockedPackages }).packages;
}

/** The folder of a package that `from` asks for: the nearest node_modules first. */
export function locate(from: string, name: string, packages: LockedPackages): string | undefined {
  for (let base = from; ; base = base.slice(0, Math.max(0, base.lastIndexOf('node_modules/') - 1))) {
    const path = `${base === '' ? '' : `${base}/`}node_modules/${name}`;
    if (packages[path] !== undefined) return path;
    if (base === '') return undefined;
  }
}

/** The folders that a package asks for itself. */
export function neededBy(path: string, packages: LockedPackages): string[] {
  const { dependencies = {}, optionalDependencies = {} } = packages[path] ?? {};
  return Object.keys({ ...dependencies, ...optionalDependencies })
    .map((name) => locate(path, name, packages))
    .filter((folder) => folder !== undefined);
}

/** These folders and all that they need, except what `isTaken` leaves out. */
export function closureOf(
  paths: readonly string[],
  packages: LockedPackages,
  isTaken: (path: string) => boolean = () => true,
): string[] {
  const found = new Set<string>();
  const open = [...paths];
  for (let path = open.pop(); path !== undefined; path = open.pop()) {
    if (found.has(path) || !isTaken(path)) continue;
    found.add(path);
    open.push(...neededBy(path, packages));
  }
  return [...found];
}

/** The name of the package in this folder, also where the folder has another. */
export function nameOf(path: string, packages: LockedPackages): string {
  return packages[path]?.name ?? path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}
