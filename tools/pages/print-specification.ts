/** Prints the tables of docs/specification.md whose rows the program has: routes, errors, settings, tools; their number in README.md. */
import { readFileSync } from 'node:fs';
import { ERRORS, type ErrorRow } from '../../src/domain/error-table.ts';
import type { SettingRow } from '../../src/domain/settings/definitions.ts';
import { SETTINGS } from '../../src/domain/settings/settings.ts';
import type { AnyRoute } from '../../src/io/http/table/route.ts';
import { TOOL_GROUPS } from '../../src/io/mcp/tools/built-in.ts';
import { internalRouteTable, routeTable } from '../../test/support/route-table.ts';

export const SPECIFICATION_FILE = 'docs/specification.md';
const ANONYMOUS_PREFIX = 'chat_anon_';

interface Table {
  readonly section: string;
  readonly head: string;
  readonly rows: readonly string[];
}

const errors = Object.entries<ErrorRow>(ERRORS);
const settings = Object.entries<SettingRow>(SETTINGS);
const { default: windowSeconds } = SETTINGS.RateLimitWindowSeconds;

function cells(...values: readonly (string | number)[]): string {
  return `| ${values.join(' | ')} |`.replaceAll('|  |', '| |').replaceAll('|  |', '| |');
}

/** In 7.1 an error of the contract names the section that says more. */
function conditionOf({ spec }: ErrorRow, section: '7.1' | '7.2' | '7.3' | '7.4'): string | undefined {
  if (typeof spec === 'string') return section === '7.1' ? spec : undefined;
  return spec[section] ?? (section === '7.1' ? Object.keys(spec)[0] : undefined);
}

/** Positive codes upwards, then those of JSON-RPC downwards. */
function byCode([, one]: [string, ErrorRow], [, other]: [string, ErrorRow]): number {
  if (one.code > 0 !== other.code > 0) return one.code > 0 ? -1 : 1;
  return Math.abs(one.code) - Math.abs(other.code);
}

function errorTable(
  section: '7.1' | '7.2' | '7.3' | '7.4',
  head: string,
  list: readonly [string, ErrorRow][],
  cellsOf: (name: string, row: ErrorRow) => readonly (string | number)[],
): Table {
  const rows = list.flatMap(([name, row]) => {
    const condition = conditionOf(row, section);
    return condition === undefined ? [] : [cells(...cellsOf(name, row), condition)];
  });
  return { section, head, rows };
}

function scopeRow(name: string, row: SettingRow): string[] {
  if (row.spec?.section !== '8.1') return [];
  const { scope, key } = row.spec;
  const [rate, quota] =
    name === 'RateLimitWindowSeconds'
      ? ['', `${row.default} seconds by default`]
      : [row.default, Number(row.default) * windowSeconds];
  return [cells(scope, key, rate, quota, `${name} (${row.id})`)];
}

function fileSettingRow(name: string, { spec, default: standard }: SettingRow): string[] {
  return spec?.section === '8.3' ? [cells(name, standard === '' ? 'empty' : standard, spec.effect)] : [];
}

function toolRow([group, tools]: readonly [string, object]): string {
  const names = Object.keys(tools);
  const isAnonymous = names.every((name) => name.startsWith(ANONYMOUS_PREFIX));
  return cells(group, isAnonymous ? `all tools named \`${ANONYMOUS_PREFIX}*\`` : names.join(', '));
}

const COOKIE = 'cookie';
const CALLERS: Readonly<Record<AnyRoute['auth'], string>> = {
  none: '',
  optional: `(${COOKIE})`,
  session: COOKIE,
  eitherOptional: '(bearer or cookie)',
  either: 'bearer or cookie',
  admin: 'role',
};

/** Parameters in the braces of OpenAPI. */
function routeRow({ method, path, auth, summary, spec }: AnyRoute): string {
  const shown = path.replaceAll(/:(\w+)/g, '{$1}');
  return cells(`${method} \`${shown}\``, CALLERS[auth], summary, spec ?? '');
}

function tables(): Table[] {
  const byStatus = errors.toSorted(([, one], [, other]) => one.status - other.status);
  return [
    {
      section: '4',
      head: '| Route | Caller | Purpose | Section |',
      rows: [...routeTable(), ...internalRouteTable()].map(routeRow),
    },
    { section: '2.4', head: '| Group | Tool names |', rows: Object.entries(TOOL_GROUPS).map(toolRow) },
    errorTable(
      '7.1',
      '| Code | HTTP | Message | Name | Condition |',
      errors.toSorted(byCode),
      (name, { code, status, message }) => [code, status, message, name],
    ),
    errorTable('7.2', '| HTTP | message | Condition |', byStatus, (_, { status, message }) => [
      status,
      message,
    ]),
    errorTable('7.3', '| Code | Meaning |', errors, (_, { code }) => [code]),
    errorTable('7.4', '| Code | Constant | Condition |', errors, (name, { code }) => [code, name]),
    {
      section: '8.1',
      head: `| Scope | Key | Default RPS | Default quota per ${windowSeconds} s window | Setting (id) |`,
      rows: settings.flatMap(([name, row]) => scopeRow(name, row)),
    },
    {
      section: '8.3',
      head: '| Setting | Default | Effect |',
      rows: settings.flatMap(([name, row]) => fileSettingRow(name, row)),
    },
  ];
}

/** `text` with the rows of `table` in place of those that it has. The table is found by its first column's names. */
function withTable(text: string, { section, head, rows }: Table): string {
  const lines = text.split('\n');
  const title = section.includes('.') ? `### ${section} ` : `## ${section}. `;
  const heading = lines.findIndex((line) => line.startsWith(title));
  const [first] = head.split(/(?<=\w) \|/);
  const at = lines.findIndex(
    (line, index) => index > heading && line.replace(/^> /, '').startsWith(`${first} |`),
  );
  const next = lines.findIndex((line, index) => index > heading && line.startsWith('##'));
  if (heading < 0 || at < 0 || (next >= 0 && at > next))
    throw new Error(`${SPECIFICATION_FILE}: section ${section} has no table “${head}”`);
  const quote = lines[at]?.startsWith('> ') === true ? '> ' : '';
  const behind = lines.findIndex((line, index) => index > at && !line.startsWith(`${quote}|`));
  const printed = [head, lines[at + 1]?.slice(quote.length) ?? '', ...rows].map((line) => quote + line);
  return [...lines.slice(0, at), ...printed, ...lines.slice(behind)].join('\n');
}

export function readmePage(): string {
  const tools = Object.values(TOOL_GROUPS).flatMap((group) => Object.keys(group));
  return readFileSync('README.md', 'utf8').replace(/\d+(?= tools are built in)/, String(tools.length));
}

export function specificationPage(): string {
  return tables().reduce(withTable, readFileSync(SPECIFICATION_FILE, 'utf8'));
}
