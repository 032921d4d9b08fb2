/**
 * `node build/tools/packaging/print-sbom.js [FILE]` writes build/sbom.cdx.json: the bill of materials of a run (CycloneDX 1.6),
 * for `npm pack`. The same lock gives the same bytes. `npm sbom --omit dev` leaves out pg, which a package of tests needs too.
 */
import { writeFileSync } from 'node:fs';
import { closureOf, type LockEntry, type LockedPackages, nameOf, neededBy, readLock } from './lock.ts';

export const SBOM_FILE = 'build/sbom.cdx.json';

interface Component {
  readonly 'bom-ref': string;
  readonly type: 'application' | 'library';
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly scope: 'required' | 'optional';
  readonly purl: string;
  readonly hashes?: readonly { readonly alg: 'SHA-512'; readonly content: string }[];
  readonly licenses?: readonly (
    | { readonly license: { readonly id: string } }
    | { readonly expression: string }
  )[];
}

export interface Sbom {
  readonly $schema: string;
  readonly bomFormat: 'CycloneDX';
  readonly specVersion: '1.6';
  readonly version: 1;
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

/** `packages`: of the lock, the project itself included. */
export function sbomOf(packages: LockedPackages): Sbom {
  const paths = closureOf([''], packages);
  const components = new Map<string, Component>();
  const needs = new Map<string, Set<string>>();
  for (const path of paths) {
    const component = componentOf(path, packages);
    const ref = component['bom-ref'];
    // Two folders may hold the same version of a package: one component with what either needs.
    components.set(ref, component);
    const needed = needs.get(ref) ?? new Set();
    for (const each of neededBy(path, packages)) needed.add(purlOf(each, packages));
    needs.set(ref, needed);
  }
  const own = componentOf('', packages);
  components.delete(own['bom-ref']);
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: own },
    components: [...components.values()].sort((a, b) => order(a.purl, b.purl)),
    dependencies: [...needs]
      .sort(([a], [b]) => order(a, b))
      .map(([ref, dependsOn]) => ({ ref, dependsOn: [...dependsOn].sort(order) })),
  };
}

function componentOf(path: string, packages: LockedPackages): Component {
  const entry = packages[path] ?? {};
  const [, group, name = ''] = /^(?:(@[^/]+)\/)?(.+)$/.exec(nameOf(path, packages)) ?? [];
  const purl = purlOf(path, packages);
  return {
    'bom-ref': purl,
    type: path === '' ? 'application' : 'library',
    ...(group === undefined ? {} : { group }),
    name,
    version: versionOf(path, packages),
    scope: entry.optional === true ? 'optional' : 'required',
    purl,
    ...hashesOf(entry),
    ...licensesOf(entry),
  };
}

/** A folder in place of a package is not in the package that `npm pack` makes: what it replaces is installed there. */
function versionOf(path: string, packages: LockedPackages): string {
  const entry = packages[path];
  const version = entry?.version ?? packages[entry?.resolved ?? '']?.version;
  if (version === undefined) throw new Error(`package-lock.json: ${path} has no version`);
  return version;
}

/** Package URL (purl-spec, type npm). */
function purlOf(path: string, packages: LockedPackages): string {
  return `pkg:npm/${nameOf(path, packages).replace('@', '%40')}@${versionOf(path, packages)}`;
}

function hashesOf({ integrity }: LockEntry): Pick<Component, 'hashes'> {
  if (integrity === undefined) return {};
  const content = Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex');
  return { hashes: [{ alg: 'SHA-512', content }] };
}

/** An id of SPDX, or an expression of several. */
function licensesOf({ license }: LockEntry): Pick<Component, 'licenses'> {
  if (license === undefined) return {};
  return { licenses: [license.includes(' ') ? { expression: license } : { license: { id: license } }] };
}

function order(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

if (process.argv[1]?.endsWith('print-sbom.js'))
  writeFileSync(process.argv[2] ?? SBOM_FILE, `${JSON.stringify(sbomOf(readLock()), null, 2)}\n`);
