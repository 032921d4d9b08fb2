/** Citations of comments: the page, the heading, the decision, the section or the file exists in the repository. */
import { commentsOf, lineOf, type Sources } from './sources.ts';

const PAGE = /(?<![\w./-])([\w./-]+\.md)(#[\w-]+)?/g;
const FILE =
  /(?<![\w./-])(?:src|kit|test(?!\/vectors)|bench|tools|docs|examples)\/[\w./-]*\.(?:ts|cts|js|json|yml)\b/g;
const DECISION = /\bdecisions?[\s*/]+(\d{4}(?:(?:,|[\s*/]+and)[\s*/]+\d{4})*)/gi;
const SECTION = /\bspec(?:ification)?[\s*/]+(\d+(?:\.\d+)?)\b/gi;

/** Texts of tests that are no comments of their own file: planted violations. */
const EXEMPT = /^test\/(tidy|docs\/links)/;

/** `pages`: the texts that a citation may name, `paths`: all files. Faults as `path:line: cites …`. */
export function citationFaults(sources: Sources, pages: Sources, paths: Iterable<string>): string[] {
  const known = knownTargets(pages, paths);
  const faults: string[] = [];
  for (const [path, source] of sources) {
    if (EXEMPT.test(path)) continue;
    for (const { text: comment, index } of commentsOf(source))
      for (const [citation, at] of citationsOf(comment))
        if (!known.has(citation))
          faults.push(
            `${path}:${lineOf(source, index + at)}: cites ${citation}, which is not in the repository`,
          );
  }
  return faults;
}

function citationsOf(comment: string): [string, number][] {
  const found: [string, number][] = [];
  for (const { 1: page = '', 2: heading = '', index } of comment.matchAll(PAGE))
    found.push([page + heading, index]);
  for (const { 0: file, index } of comment.matchAll(FILE)) found.push([file, index]);
  for (const { 1: numbers = '', index } of comment.matchAll(DECISION))
    for (const number of numbers.match(/\d{4}/g) ?? []) found.push([`decision ${number}`, index]);
  for (const { 1: section, index } of comment.matchAll(SECTION)) found.push([`spec ${section}`, index]);
  return found;
}

function knownTargets(pages: Sources, paths: Iterable<string>): ReadonlySet<string> {
  const known = new Set(paths);
  for (const [path, text] of pages) {
    const decision = /^docs\/decisions\/(\d{4})-/.exec(path)?.[1];
    if (decision !== undefined) known.add(`decision ${decision}`);
    for (const { 1: heading = '' } of text.matchAll(/^#+ (.+)$/gm)) known.add(`${path}#${anchorOf(heading)}`);
  }
  const specification = pages.get('docs/specification.md') ?? '';
  for (const { 1: section } of specification.matchAll(/^#+ (\d+(?:\.\d+)?)\b/gm))
    known.add(`spec ${section}`);
  return known;
}

/** The anchor that GitHub makes of a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');
}
