/**
 * Subsets of the catalog: named ones of the configuration (`McpProfiles`, at `/mcp/p/NAME`) and those that a client asks for
 * (`/mcp?tools=wallet,market_*`). The same functions decide what is listed and what may be called.
 */
import { array, compileSchema, type Fault, object, optional, text } from '../../domain/schema.ts';
import type { RouteContext } from '../http/table/route.ts';
import { isObject, pointer } from './input-schema.ts';
import { within } from './tool.ts';

/** Entries of one list. Further ones of a client's list match nothing. */
const PATTERNS_MAX = 100;
/** Characters of `instructions`. Clients put them in front of each conversation. */
const INSTRUCTIONS_MAX = 600;
const PROFILE_NAME = '^[a-z][a-z0-9-]{0,31}$';
const PROFILE_NAME_FORM = new RegExp(PROFILE_NAME);

/** The parameter of addresses of profiles, for their descriptions. */
export const PROFILE_PARAMS = {
  profile: text({
    description: 'Name of a profile of `McpProfiles`',
    pattern: PROFILE_NAME,
    form: 'a name',
    examples: ['shop'],
  }),
};

export interface Subset {
  hasTool(name: string): boolean;
  hasResource(uri: string): boolean;
}

/** A row of `McpProfiles`. Without `tools` or `resources` the profile has all of them. */
export interface ProfileRow {
  readonly tools?: readonly string[];
  readonly resources?: readonly string[];
  readonly title?: string;
  readonly instructions?: string;
}

const line = (maxLength: number) =>
  text({ minLength: 1, maxLength, pattern: '^[^\\p{Cc}]*$', form: 'one line without control characters' });
const patterns = (maxLength: number) =>
  optional(array(line(maxLength), { minItems: 1, maxItems: PATTERNS_MAX }));
const profileShape = compileSchema(
  object(
    {
      tools: patterns(64),
      resources: patterns(2048),
      title: optional(line(64)),
      instructions: optional(text({ minLength: 1, maxLength: INSTRUCTIONS_MAX })),
    },
    { additionalProperties: false },
  ),
);

/** Prefixes of the names of tools, and of the URIs of resources, that other MCP servers may list later. */
export interface LaterNames {
  readonly tools: readonly string[];
  readonly resources: readonly string[];
}

/** Faults of all profiles, an entry that matches nothing included, with paths that begin with `/McpProfiles`. */
export function profileFaults(
  rows: unknown,
  tools: Iterable<string>,
  resources: Iterable<string>,
  later: LaterNames,
): Fault[] {
  if (rows === undefined) return [];
  if (!isObject(rows)) return [{ path: '/McpProfiles', message: 'must be an object' }];
  const names = { tools: [...tools], resources: [...resources] };
  return Object.entries(rows).flatMap(([name, row]) => {
    const faults = profileShape.faults(row);
    if (!PROFILE_NAME_FORM.test(name))
      faults.push({
        path: '',
        message: 'the name must be a lower-case letter, then up to 31 of a to z, 0 to 9 and "-"',
      });
    if (faults.length === 0) faults.push(...unmatched(row as ProfileRow, names, later));
    return faults.map((fault) => within(`/McpProfiles/${pointer(name)}`, fault));
  });
}

function unmatched(
  row: ProfileRow,
  names: { readonly tools: readonly string[]; readonly resources: readonly string[] },
  later: LaterNames,
): Fault[] {
  return (['tools', 'resources'] as const).flatMap((kind) =>
    (row[kind] ?? []).flatMap((pattern, index) => {
      const isFound =
        names[kind].some((name) => matches(pattern, name, kind === 'tools')) ||
        later[kind].some((prefix) => mayMatch(pattern, prefix));
      return isFound ? [] : [{ path: `/${kind}/${index}`, message: `matches none of the ${kind}` }];
    }),
  );
}

/** Could the pattern match a name that begins so? */
function mayMatch(pattern: string, prefix: string): boolean {
  const [first = ''] = pattern.includes('*') ? pattern.split('*') : [`${pattern}_`];
  return pattern.startsWith(prefix) || prefix.startsWith(first);
}

export function profileSubset({ tools, resources }: ProfileRow): Subset {
  return {
    hasTool: (name) => tools === undefined || tools.some((each) => matches(each, name, true)),
    hasResource: (uri) => resources === undefined || resources.some((each) => matches(each, uri, false)),
  };
}

/** The tools that the query of a request asks for; undefined: all. It has no effect on resources, and none at /connect. */
export function askedTools({ search, rawPath }: RouteContext): ((name: string) => boolean) | undefined {
  if (search === '' || !search.includes('tools=') || !rawPath.startsWith('/mcp')) return undefined;
  const lists = new URLSearchParams(search).getAll('tools');
  if (lists.length === 0) return undefined;
  const asked = lists
    .flatMap((list) => list.split(',', PATTERNS_MAX))
    .slice(0, PATTERNS_MAX)
    .map((each) => each.trim())
    .filter((each) => each !== '');
  return (name) => asked.some((each) => matches(each, name, true));
}

/** A name, a pattern with `*` for any text, or where `words` is true a word that stands for `word_*`. */
export function matches(pattern: string, name: string, words: boolean): boolean {
  if (!pattern.includes('*')) return name === pattern || (words && name.startsWith(`${pattern}_`));
  const parts = pattern.split('*');
  const first = parts[0] ?? '';
  const last = parts.at(-1) ?? '';
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last))
    return false;
  const end = name.length - last.length;
  let from = first.length;
  for (const part of parts.slice(1, -1)) {
    const at = name.indexOf(part, from);
    if (at < 0 || at + part.length > end) return false;
    from = at + part.length;
  }
  return true;
}
