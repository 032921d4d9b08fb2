/** Names: no exported type or class twice in src, and nothing that is exported or stored in a file without a use. */
import { join } from 'node:path';
import { importsOf, type Sources } from './sources.ts';

const TYPE = /^export (?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm;
const EXPORT =
  /^export (?:declare )?(?:abstract |async )?(?:interface|type|class|enum|const|let|function\*?) (\w+)/gm;
/** Started by path, by a worker or by a command of package.json, so that no import names them. */
const STARTED =
  /^(src\/main\.cts|src\/workers\/tasks\.ts|src\/sandbox\/worker\.ts|src\/cli\/end-limit\.ts|src\/bootstrap\/journal-process\.ts|test\/|bench\/|tools\/)/;

export function nameFaults(sources: Sources): string[] {
  const owners = new Map<string, string>();
  const faults: string[] = [];
  for (const [path, source] of sources) {
    if (!path.startsWith('src/')) continue;
    for (const [, name = ''] of source.matchAll(TYPE)) {
      const other = owners.get(name);
      if (other === undefined) owners.set(name, path);
      else if (other !== path) faults.push(`${path}: ${name} is also exported by ${other}`);
    }
  }
  return faults;
}

/** Files of src that nothing imports, and exports of src that no other file names. */
export function unusedFaults(sources: Sources): string[] {
  const imported = new Set<string>();
  const users = new Map<string, Set<string>>();
  for (const [path, source] of sources) {
    for (const { specifier } of importsOf(source))
      if (specifier.startsWith('.')) imported.add(join(path, '..', specifier));
    for (const word of new Set(source.match(/\b[A-Za-z_]\w*\b/g))) {
      const paths = users.get(word) ?? new Set();
      users.set(word, paths.add(path));
    }
  }
  const faults: string[] = [];
  for (const [path, source] of sources) {
    if (!path.startsWith('src/') || STARTED.test(path)) continue;
    // A declaration file describes a package.
    if (path.endsWith('.d.ts')) continue;
    if (!imported.has(path)) faults.push(`${path}: no file imports it`);
    for (const [, name = ''] of source.matchAll(EXPORT))
      if (users.get(name)?.size === 1) faults.push(`${path}: no other file uses ${name}`);
  }
  return faults;
}
