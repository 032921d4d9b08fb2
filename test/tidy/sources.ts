/** The texts that the rules of tidy read, and the imports in them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export type Sources = ReadonlyMap<string, string>;

/** Folders that hold nothing of the project's own. */
const SKIPPED =
  /^(node_modules|build|packages\/\w+\/dist|data|\.git|\.tap|test\/vectors)(\/|$)|(^|\/)node_modules(\/|$)/;

/** The paths of all files below a folder, from the root of the project. */
export function listFiles(folder: string): string[] {
  const paths: string[] = [];
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (SKIPPED.test(path)) continue;
    if (entry.isDirectory()) paths.push(...listFiles(path));
    else if (entry.isFile()) paths.push(path);
  }
  return paths;
}

/** The compiled program, which has the syntax that parsers of JavaScript read. */
export function listCompiled(): string[] {
  const paths = readdirSync('build/src', { recursive: true, encoding: 'utf8' });
  return paths.map((path) => join('build/src', path));
}

/** The texts of the files whose path fits. */
export function readFiles(paths: readonly string[], pattern: RegExp): Sources {
  const fitting = paths.filter((path) => pattern.test(path));
  return new Map(fitting.map((path) => [path, readFileSync(path, 'utf8')]));
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

const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*(?:\n\s*\/\/[^\n]*)*/g;

/** The comments with their marks; lines of `//` that follow each other are one comment. */
export function commentsOf(source: string): { text: string; index: number }[] {
  return [...source.matchAll(COMMENT)].map(({ 0: text, index }) => ({ text, index }));
}

/** The number of the line, from one, that holds the character at `index`. */
export function lineOf(source: string, index: number): number {
  let line = 1;
  for (let at = source.indexOf('\n'); at !== -1 && at < index; at = source.indexOf('\n', at + 1)) line += 1;
  return line;
}
