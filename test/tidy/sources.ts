/** The texts that the rules of tidy read, and the imports in them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Sources = ReadonlyMap<string, string>;

/** Folders that hold nothing of the project's own. */
const SKIPPED = /^(node_modules|build|data|\.git|\.tap|test\/vectors)(\/|$)|(^|\/)node_modules(\/|$)/;

/** Every file below the folders whose name fits, by its path from the root of the project. */
export function read(folders: readonly string[], name: RegExp): Sources {
  const sources = new Map<string, string>();
  for (const folder of folders) readFolder(folder, name, sources);
  return sources;
}

function readFolder(folder: string, name: RegExp, sources: Map<string, string>): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (SKIPPED.test(path)) continue;
    if (entry.isDirectory()) readFolder(path, name, sources);
    else if (entry.isFile() && name.test(entry.name)) sources.set(path, readFileSync(path, 'utf8'));
  }
}

export interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
}

export function importsOf(source: string): Import[] {
  const found: Import[] = [];
  for (const match of source.matchAll(/^(?:import|export)\s+(type\s)?[^'";]*?from\s+'([^']+)'/gm)) {
    found.push({ specifier: match[2] ?? '', typeOnly: match[1] !== undefined });
  }
  for (const match of source.matchAll(/^import\s+'([^']+)'/gm))
    found.push({ specifier: match[1] ?? '', typeOnly: false });
  for (const match of source.matchAll(/\bimport\(\s*'([^']+)'\s*\)/g))
    found.push({ specifier: match[1] ?? '', typeOnly: false });
  return found;
}
