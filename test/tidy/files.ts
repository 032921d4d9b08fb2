/** Bounds of a file: its length, its header comment, forbidden code, depth of its properties; files in a folder. */
import { dirname } from 'node:path';
import type { Sources } from './sources.ts';

/** Code that others run, not that of tests and tools. */
const SHIPPED = /^(src|packages)\//;

/** Lines of a file of src or of a package, and of everything that a folder holds. */
export const LINES_MAX = 400;
export const FOLDER_FILES_MAX = 30;
const HEADER_LINES_MAX = 3;

const FORBIDDEN: readonly { rule: string; pattern: RegExp; except: RegExp }[] = [
  { rule: 'no default export', pattern: /^export default /m, except: /^$/ },
  { rule: 'no console', pattern: /\bconsole\./, except: /^(bench|tools)\// },
  {
    rule: 'no process.env outside the configuration',
    pattern: /\bprocess\.env\b/,
    except:
      /^(src\/config\/load\.ts|src\/main\.cts|packages\/\w+\/src\/main\.ts|test\/|bench\/|kit\/|tools\/)/,
  },
  {
    rule: 'no skipped or lone tests',
    pattern: /\b(t|tap|test)\.(skip|only)\(|\b(skip|only|todo): (true|'|"|`)/,
    except: /^$/,
  },
  {
    rule: 'programs are waited for in kit/run-sync.ts alone, which bounds them',
    pattern: /\b(spawnSync|execFileSync|execSync)\b/,
    except: /^kit\/run-sync\.ts$/,
  },
  { rule: 'no switched-off check', pattern: /@ts-(ignore|nocheck)|biome-ignore/, except: /^$/ },
  {
    rule: 'no expected compile error but in type tests',
    pattern: /@ts-(expect-error)/,
    except: /^test\/actors\/runtime\/protocol\.test\.ts$/,
  },
  { rule: 'no unfinished place', pattern: /\b(TODO|FIXME|XXX)\b/, except: /^$/ },
  { rule: 'no empty catch', pattern: /catch\s*(\([^)]*\))?\s*\{\s*\}/, except: /^$/ },
];

export function lengthFaults(sources: Sources): string[] {
  const long = [...sources].filter(([path]) => SHIPPED.test(path));
  return long
    .map(([path, source]) => ({ path, lines: source.trimEnd().split('\n').length }))
    .filter(({ lines }) => lines > LINES_MAX)
    .map(({ path, lines }) => `${path}: ${lines} lines, at most ${LINES_MAX}`);
}

/** Every file of src or of a package has a header comment, and no header is longer than three lines of text. */
export function headerFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    const header = /^(?:#![^\n]*\n)?\/\*\*([\s\S]*?)\*\//.exec(source)?.[1];
    if (header === undefined) {
      if (SHIPPED.test(path)) faults.push(`${path}: starts without a comment that says what it owns`);
    } else if (header.trim().split('\n').length > HEADER_LINES_MAX)
      faults.push(`${path}: the header comment has more than ${HEADER_LINES_MAX} lines`);
  }
  return faults;
}

export function forbiddenFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    for (const { rule, pattern, except } of FORBIDDEN) {
      if (!except.test(path) && !path.startsWith('test/tidy') && pattern.test(source))
        faults.push(`${path}: ${rule}`);
    }
  }
  return faults;
}

/** The number of runs of a property is the affair of test/support/depth.ts. */
export function depthFaults(sources: Sources): string[] {
  const faults: string[] = [];
  for (const [path, source] of sources) {
    if (!path.startsWith('test/') || /^test\/(support\/depth|tidy)/.test(path)) continue;
    const count = (pattern: RegExp) => source.match(pattern)?.length ?? 0;
    if (/\bnumRuns\b/.test(source)) faults.push(`${path}: sets numRuns`);
    else if (count(/\bfc\.assert\(/g) > count(/\bruns\(/g)) faults.push(`${path}: a property without runs()`);
  }
  return faults;
}

/** `paths`: every file of the project. */
export function folderFaults(paths: Iterable<string>): string[] {
  const counts = new Map<string, number>();
  for (const path of paths) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([folder, count]) => count > FOLDER_FILES_MAX && folder !== 'docs/decisions')
    .map(([folder, count]) => `${folder}: ${count} files, at most ${FOLDER_FILES_MAX}`);
}
