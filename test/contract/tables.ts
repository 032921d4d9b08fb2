/** Tools and defaults of settings as the tables of docs/specification.md, sections 2.4, 8.1 and 8.3, say them. */
import { specification } from './specification.ts';

export interface ScopeLimit {
  /** The row of the setting, as a check cites it. */
  readonly row: string;
  readonly rps: number;
  /** Requests in a window. */
  readonly quota: number;
}

const WINDOW = 'RateLimitWindowSeconds';

function sentencesOf(id: string): string[] {
  return specification().flatMap((section) =>
    section.id === id ? section.sentences.map(({ text }) => text) : [],
  );
}

const cellsOf = (row: string) => row.split('|').map((cell) => cell.trim());

/** Rows of 8.1 by setting: scope, key, rps, quota, setting with its id. */
const scopes = new Map(
  sentencesOf('8.1').flatMap((row) => {
    const [, name, id] = /\| (\w+) \((\d+)\)$/.exec(row) ?? [];
    return name === undefined ? [] : [[name, { row, id: Number(id), cells: cellsOf(row) }] as const];
  }),
);

/** Rows of 8.3 by setting: setting, default, effect. */
const files = new Map(
  sentencesOf('8.3').flatMap((row) => {
    const [name = '', value] = cellsOf(row);
    return value === undefined || !/^\w+$/.test(name) ? [] : [[name, value] as const];
  }),
);

/** Names of tools by group. The anonymous tools of chats have a pattern instead of names, and are left out. */
export const TOOL_GROUPS: ReadonlyMap<string, string> = new Map(
  sentencesOf('2.4').flatMap((row) => {
    const [group = '', names = ''] = cellsOf(row);
    return names.split(', ').every((name) => /^[a-z0-9_]+$/.test(name)) && names.includes('_')
      ? [[group, names] as const]
      : [];
  }),
);

function known<Value>(value: Value | undefined, name: string): Value {
  if (value === undefined) throw new Error(`no table of section 8 has ${name}`);
  return value;
}

export function scopeLimit(name: string): ScopeLimit {
  const { row, cells } = known(scopes.get(name), name);
  return { row, rps: Number(cells[2]), quota: Number(cells[3]) };
}

export const WINDOW_SECONDS = Number.parseInt(known(scopes.get(WINDOW), WINDOW).cells[3] ?? '', 10);

/** Name and default of a setting of 8.3, as a check cites the beginning of its row. */
export function fileSetting(name: string): string {
  return `${name} | ${known(files.get(name), name)}`;
}

/** Numbers and texts by the names of all settings of section 8. */
export function sectionDefaults(): ReadonlyMap<string, number | string> {
  const valueIn = (cell: string) => (cell === 'empty' ? '' : Number(cell));
  return new Map([
    ...[...scopes.keys()].map((name) => [name, defaultOf(name)] as const),
    ...[...files].map(([name, cell]) => [name, valueIn(cell)] as const),
  ]);
}

function defaultOf(name: string): number {
  return name === WINDOW ? WINDOW_SECONDS : scopeLimit(name).rps;
}

/** Ids by the names of the settings of 8.1. */
export function scopeIds(): ReadonlyMap<string, number> {
  return new Map([...scopes].map(([name, { id }]) => [name, id]));
}
