/** Tags of tests: the comment `covers S17 R4` above a test names the rows of pages that it shows. */
import { readdirSync, readFileSync } from 'node:fs';

export interface Tag {
  /** Path in the repository. */
  readonly file: string;
  readonly line: number;
  readonly ids: readonly string[];
  /** Texts between the values of the title, in order. */
  readonly title: readonly string[];
}

const COMMENT = /^\s*\/\/ covers ([SCPR]\d+(?: [SCPR]\d+)*)$/;
/** The first literal of a line: the title, alone or behind the call. */
const TITLE = /^(?:await )?(?:[\w.]+\()*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`((?:[^`\\]|\\.)*)`)/;

function titleOf(lines: readonly string[]): readonly string[] | undefined {
  const text = lines
    .map((line) => line.trim())
    .join('')
    .slice(0, 400);
  const [, single, double, template] = TITLE.exec(text) ?? [];
  const title = single ?? double ?? template;
  return title?.replaceAll(/\\(.)/g, '$1').split(/\$\{[^}]*\}/);
}

/** Tags of one file, and comments that are none or stand above no test. */
export function tagsOf(file: string, text: string): { readonly tags: Tag[]; readonly faults: string[] } {
  const lines = text.split('\n');
  const tags: Tag[] = [];
  const faults: string[] = [];
  for (const [at, line] of lines.entries()) {
    if (!/^\s*\/\/ covers\b/.test(line)) continue;
    const [, ids] = COMMENT.exec(line) ?? [];
    const title = titleOf(lines.slice(at + 1, at + 3));
    if (ids === undefined) faults.push(`${file}:${at + 1}: expected “// covers S1 R2”`);
    else if (title === undefined) faults.push(`${file}:${at + 1}: stands above no test`);
    else tags.push({ file, line: at + 1, ids: ids.split(' '), title });
  }
  return { tags, faults };
}

/** Reads the tags of all test files of this checkout. */
export function allTags(): { readonly tags: readonly Tag[]; readonly faults: readonly string[] } {
  const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .sort();
  const found = files.map((path) => tagsOf(`test/${path}`, readFileSync(`test/${path}`, 'utf8')));
  return { tags: found.flatMap(({ tags }) => tags), faults: found.flatMap(({ faults }) => faults) };
}

/** Rows without a tag, and tags without a row. */
export function tagFaults(rows: ReadonlyMap<string, string>, tags: readonly Tag[]): string[] {
  const covered = new Set(tags.flatMap(({ ids }) => ids));
  return [
    ...[...rows].filter(([id]) => !covered.has(id)).map(([id, text]) => `${id}: ${text}: no test covers it`),
    ...tags.flatMap(({ file, line, ids }) =>
      ids.filter((id) => !rows.has(id)).map((id) => `${file}:${line}: there is no row ${id}`),
    ),
  ];
}
