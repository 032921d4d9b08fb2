/**
 * Removes what the compiler made of files that are gone: a suite would run their tests. A whole build anew would take
 * the files from under a gateway that runs from this checkout.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const FOLDERS = ['src', 'kit', 'test', 'bench', 'tools', 'packages'];
/** By the ending of what is made of them. */
const SOURCES: Readonly<Record<string, string>> = { js: 'ts', cjs: 'cts', mjs: 'mts' };

/** Compiled files of a checkout whose source is gone, and their source maps; whole paths. */
export function staleFiles(root: string): string[] {
  const built = (folder: string) => join(root, 'build', folder);
  return FOLDERS.filter((folder) => existsSync(built(folder))).flatMap((folder) =>
    readdirSync(built(folder), { recursive: true, encoding: 'utf8' })
      .filter((path) => {
        const [, source, ending = ''] = /^(.+)\.([cm]?js)(?:\.map)?$/.exec(path) ?? [];
        return source !== undefined && !existsSync(join(root, folder, `${source}.${SOURCES[ending]}`));
      })
      .map((path) => join(built(folder), path)),
  );
}

if (import.meta.filename === process.argv[1])
  for (const path of staleFiles(fileURLToPath(new URL('../../../', import.meta.url)))) rmSync(path);
