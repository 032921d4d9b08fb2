/**
 * Custom tools and resources of a configuration file, faulty or not: they stand at its top level or, as spec 2.5 writes
 * it, under `Config`.
 */
import type { Fault } from './schema.ts';

const SECTIONS = ['McpTools', 'McpResources'] as const;
type Section = (typeof SECTIONS)[number];
type Rows = Readonly<Record<string, unknown>>;
/** The part of a file that holds such rows. */
interface RowSections {
  readonly McpTools?: unknown;
  readonly McpResources?: unknown;
  readonly Config?: unknown;
}

/** Rows of both sections by name; undefined where the file has none. A section that is no object counts as none. */
export function customRows(file: RowSections, section: Section): Rows | undefined {
  const inside = rowsIn(file.Config)?.[section];
  const sections = [rowsIn(file[section]), rowsIn(inside)].filter((rows) => rows !== undefined);
  return sections.length === 0 ? undefined : Object.fromEntries(sections.flatMap(Object.entries));
}

/** Names that are in both sections: which of the two rows counts would be a guess. JSON pointers (RFC 6901). */
export function doubledRows(file: RowSections): Fault[] {
  const config = rowsIn(file.Config);
  return SECTIONS.flatMap((section) => {
    const outside = rowsIn(file[section]);
    return Object.keys(rowsIn(config?.[section]) ?? {})
      .filter((name) => outside !== undefined && Object.hasOwn(outside, name))
      .map((name) => ({ path: `/Config/${section}/${step(name)}`, message: `is in ${section} too` }));
  });
}

/** Position of a row of `customRows` in the file, for the pointer of a fault that begins with its section. */
export function pointerInFile(file: RowSections, pointer: string): string {
  const [, section = '', name = ''] = pointer.split('/');
  const found = SECTIONS.find((one) => one === section);
  if (found === undefined) return pointer;
  const inside = rowsIn(rowsIn(file.Config)?.[found]) ?? {};
  return Object.keys(inside).some((key) => step(key) === name) ? `/Config${pointer}` : pointer;
}

function rowsIn(value: unknown): Rows | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Rows) : undefined;
}

function step(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
