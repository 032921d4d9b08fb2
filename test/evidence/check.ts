/**
 * `npm run evidence`, after a whole `npm test`: every route, error, setting and row of a page was met by a test, and no route answered with an
 * error that it does not declare. Reads what the suites wrote down (recorder.cts, observe.ts).
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ERRORS } from '../../src/domain/errors.ts';
import { SETTINGS } from '../../src/domain/settings/settings.ts';
import { impliedErrors } from '../../src/io/http/openapi/answers.ts';
import type { AnyRoute } from '../../src/io/http/table/route.ts';
import { SUITES } from '../suites/runner/table.ts';
import { internalRouteTable, routeTable } from '../support/route-table.ts';
import { pageRows } from './rows.ts';
import { allTags, type Tag } from './tags.ts';

const FOLDER = fileURLToPath(new URL('../../met', import.meta.url));

interface Answer {
  readonly route: string;
  readonly status: number;
  readonly error: string;
}

export interface Met {
  /** Suites that ran to their end. */
  readonly suites: ReadonlySet<string>;
  readonly answers: readonly Answer[];
  readonly settings: ReadonlySet<string>;
  /** Files that the run left out: rows that no other file covers are not judged. */
  readonly left: ReadonlySet<string>;
  /** Titles of passed tests by file, each behind those of the tests around it. */
  readonly passed: ReadonlyMap<string, readonly string[]>;
}

/** `lines`: JSON lists, whose first value says what the others are. */
export function readMet(lines: readonly string[]): Met {
  const suites = new Set<string>();
  const settings = new Set<string>();
  const left = new Set<string>();
  const answers: Answer[] = [];
  const passed = new Map<string, string[]>();
  for (const line of lines) {
    const [kind, first = '', ...rest] = JSON.parse(line) as string[];
    if (kind === 'end') suites.add(first);
    else if (kind === 'setting') settings.add(first);
    else if (kind === 'left') left.add(first);
    else if (kind === 'answer') answers.push({ route: first, status: Number(rest[0]), error: rest[1] ?? '' });
    else if (kind === 'passed') passed.set(first, [...(passed.get(first) ?? []), rest.join(' > ')]);
  }
  return { suites, answers, settings, left, passed };
}

function nameOf({ method, path }: AnyRoute): string {
  return `${method} ${path}`;
}

/** Errors that a route answered and does not declare. HEAD has the answers of its GET. */
export function undeclared(met: Met, routes: readonly AnyRoute[]): string[] {
  const byName = new Map(routes.map((route) => [nameOf(route), route]));
  const faults = met.answers.flatMap(({ route: name, status, error }) => {
    const route = byName.get(name) ?? byName.get(name.replace(/^HEAD /, 'GET '));
    if (route === undefined || error === '' || status < 400) return [];
    const declared: readonly string[] = [...impliedErrors(route), ...(route.errors ?? [])];
    return declared.includes(error) || route.docs?.answers?.[status] !== undefined
      ? []
      : [`${name}: answers ${status} ${error}, which it does not declare`];
  });
  return [...new Set(faults)].sort();
}

/** Is there a passed test of the tag's file with its title? */
function hasPassed({ passed }: Met, { file, title }: Tag): boolean {
  return (passed.get(file) ?? []).some((titles) => {
    let at = 0;
    return title.every((part) => {
      const found = titles.indexOf(part, at);
      at = found + part.length;
      return found >= 0;
    });
  });
}

export interface Expected {
  readonly routes: readonly AnyRoute[];
  readonly errors: readonly string[];
  readonly settings: readonly string[];
  readonly rows: ReadonlyMap<string, string>;
  readonly tags: readonly Tag[];
}

/** Returns the expected items that no test met. A route is met by an answer that is no error, unless it offers none. */
export function unmet(met: Met, { routes, errors, settings, rows, tags }: Expected): string[] {
  const served = new Set(
    met.answers.filter(({ status }) => status > 0 && status < 400).map(({ route }) => route),
  );
  const reached = new Set(met.answers.map(({ route }) => route));
  const answered = new Set(met.answers.map(({ error }) => error));
  const covered = new Set(tags.filter((tag) => hasPassed(met, tag)).flatMap(({ ids }) => ids));
  const tagged = new Set(tags.flatMap(({ ids }) => ids));
  const judged = new Set(tags.filter(({ file }) => !met.left.has(file)).flatMap(({ ids }) => ids));
  return [
    ...routes
      .filter((route) => !(route.notOffered === true ? reached : served).has(nameOf(route)))
      .map((route) => `${nameOf(route)}: no test saw it succeed`),
    ...errors.filter((error) => !answered.has(error)).map((error) => `${error}: no test saw it answered`),
    ...settings
      .filter((setting) => !met.settings.has(setting))
      .map((setting) => `${setting}: no test gave it another value than its default`),
    ...[...rows]
      .filter(([id]) => !covered.has(id) && (judged.has(id) || !tagged.has(id)))
      .map(([id, text]) => `${id}: ${text}: no test that covers it has passed`),
  ];
}

function expected(): Expected {
  return {
    routes: [...routeTable(), ...internalRouteTable()],
    errors: Object.keys(ERRORS),
    settings: Object.keys(SETTINGS),
    rows: pageRows().rows,
    tags: allTags().tags,
  };
}

/** Faults, and suites without a record: while there are some, what nothing met is not known. */
function judge(met: Met): { readonly faults: string[]; readonly missing: string[] } {
  const missing = Object.keys(SUITES).filter((name) => !met.suites.has(name));
  const all = expected();
  return {
    faults: [...undeclared(met, all.routes), ...(missing.length > 0 ? [] : unmet(met, all))],
    missing,
  };
}

function recordedLines(): string[] {
  const names = existsSync(FOLDER) ? readdirSync(FOLDER) : [];
  const texts = names.map((name) => readFileSync(join(FOLDER, name), 'utf8'));
  return texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
}

if (process.argv[1]?.endsWith('check.js')) {
  const { faults, missing } = judge(readMet(recordedLines()));
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  if (missing.length > 0)
    process.stderr.write(`evidence: not complete without the suites ${missing.join(', ')}\n`);
  const isGate = process.env['GATEHOUSE_TEST_REQUIRE'] === 'all';
  if (faults.length > 0 || (isGate && missing.length > 0)) process.exitCode = 1;
}
