/**
 * Reads the definitions of tools that another MCP server lists. A tool that would break a client, the argument check or a
 * reader's eye is left out and named; the others are served.
 */
import type { McpServerConfiguration } from '../../../domain/config/mcp-servers.ts';
import { DEFAULT_TOOL_ACCESS } from '../../../domain/config/mcp-servers.ts';
import { sortedJson } from '../../../domain/raw-json.ts';
import { INVISIBLE_CHARACTERS } from '../../../domain/schema.ts';
import type { YieldToLoop } from '../batch.ts';
import { isObject, type JsonObject } from '../input-schema.ts';
import { matches } from '../subsets.ts';
import { type ToolAnnotations, type ToolRow, toolFaults } from '../tool.ts';
import type { UpstreamServer, UpstreamTool } from './types.ts';

/** Tools of one server. */
export const TOOLS_MAX = 512;
/** Characters of the schemas of one tool. */
const SCHEMA_MAX = 64 * 1024;
/** Characters of all that is approved of one tool. */
const DEFINITION_MAX = 128 * 1024;
const NESTING_MAX = 64;
/** Names that every host takes. */
export const UPSTREAM_NAME = /^[A-Za-z0-9_-]{1,64}$/;
const NAME_SHOWN_MAX = 64;
/** Definitions that are checked in one event-loop tick: compiling a schema takes about a millisecond. */
const SLICE = 4;
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const;
/** Line ends and tabs are layout of a description. */
const UNSEEN = new RegExp(
  `[${INVISIBLE_CHARACTERS}\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f-\\u009f]`,
  'u',
);
const EMOJI_JOINED = /\p{Extended_Pictographic}[\ufe0f\u200d]/gu;

/** A tool that is not served, with the reason for its operator. */
export interface LeftOut {
  readonly name: string;
  readonly reason: string;
}

export interface ReadTools {
  readonly tools: readonly UpstreamTool[];
  readonly leftOut: readonly LeftOut[];
}

export async function readTools(
  server: UpstreamServer,
  configuration: McpServerConfiguration,
  definitions: readonly unknown[],
  yieldToLoop: YieldToLoop,
): Promise<ReadTools> {
  const tools = new Map<string, UpstreamTool>();
  const leftOut: LeftOut[] = [];
  for (const [index, definition] of definitions.slice(0, TOOLS_MAX).entries()) {
    if (index > 0 && index % SLICE === 0) await yieldToLoop();
    const ownName = isObject(definition) && typeof definition['name'] === 'string' ? definition['name'] : '';
    if (!isAllowed(configuration, ownName)) continue;
    const read = readTool(server, configuration, ownName, definition);
    const reason = typeof read === 'string' ? read : tools.has(read.name) ? 'is listed twice' : undefined;
    if (reason !== undefined) leftOut.push({ name: shownName(ownName), reason });
    else if (typeof read !== 'string') tools.set(read.name, read);
  }
  if (definitions.length > TOOLS_MAX)
    leftOut.push({ name: `+${definitions.length - TOOLS_MAX}`, reason: `more than ${TOOLS_MAX} tools` });
  return { tools: [...tools.values()], leftOut };
}

/** The tool, or why it is left out. */
function readTool(
  server: UpstreamServer,
  { prefix, rows }: McpServerConfiguration,
  ownName: string,
  definition: unknown,
): UpstreamTool | string {
  const name = prefix + ownName;
  if (!isObject(definition) || ownName === '') return 'has no name';
  if (!UPSTREAM_NAME.test(name) || ownName === '__proto__')
    return `"${shownName(name)}" is no name of at most 64 letters, digits, "_" and "-"`;
  if (isDeeper(approvedPart(definition), NESTING_MAX)) return 'is nested too deep';
  const { inputSchema, outputSchema } = definition;
  const unseen = unseenIn(Object.values(approvedPart(definition)));
  if (unseen !== undefined) return `has the invisible character ${unseen}`;
  const schemaCharacters = JSON.stringify([inputSchema, outputSchema]).length;
  if (schemaCharacters > SCHEMA_MAX) return `has schemas of more than ${SCHEMA_MAX} characters`;
  const row = rowOf(
    server.name,
    ownName,
    definition,
    Object.hasOwn(rows, ownName) ? (rows[ownName] ?? DEFAULT_TOOL_ACCESS) : DEFAULT_TOOL_ACCESS,
  );
  const [fault] = toolFaults(name, row);
  if (fault !== undefined) return `${fault.path} ${fault.message}`.trim();
  const text = sortedJson(approvedPart(definition));
  if (text.length > DEFINITION_MAX) return `has a definition of more than ${DEFINITION_MAX} characters`;
  return { server, ownName, name, row, text };
}

/** Returns the members of a tool that a model or an admin reads. Other members, such as icons, change nothing. */
function approvedPart(definition: JsonObject): JsonObject {
  const { name, title, description, inputSchema, outputSchema, annotations } = definition;
  return { name, title, description, inputSchema, outputSchema, annotations };
}

function rowOf(server: string, ownName: string, definition: JsonObject, access: Partial<ToolRow>): ToolRow {
  const { description, inputSchema, outputSchema } = definition;
  const annotations = isObject(definition['annotations']) ? definition['annotations'] : {};
  const title = definition['title'] ?? annotations['title'];
  const said = typeof description === 'string' && description.trim() !== '' ? description : undefined;
  return {
    ...access,
    endpoint: `mcp:${server}/${ownName}`,
    method: 'POST',
    description: said ?? `${ownName} of ${server}`,
    // Checked by `toolFaults`, as every row of another origin.
    inputSchema: withoutNullDefaults(inputSchema) as JsonObject,
    ...(outputSchema === undefined ? {} : { outputSchema: withoutNullDefaults(outputSchema) as JsonObject }),
    ...(typeof title === 'string' ? { title } : {}),
    annotations: hintsOf(annotations),
  };
}

function hintsOf(annotations: JsonObject): ToolAnnotations {
  const given = HINTS.filter((hint) => typeof annotations[hint] === 'boolean');
  return Object.fromEntries(given.map((hint) => [hint, annotations[hint]]));
}

/** `"default": null` says what its absence says, and official clients reject a list with null in it. */
function withoutNullDefaults(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNullDefaults);
  if (!isObject(value)) return value;
  const kept = Object.entries(value).filter(([key, item]) => key !== 'default' || item !== null);
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutNullDefaults(item)]));
}

function isAllowed({ allow }: McpServerConfiguration, name: string): boolean {
  return allow === undefined || allow.some((pattern) => matches(pattern, name, false));
}

export function isDeeper(value: unknown, max: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return max === 0 || Object.values(value).some((item) => isDeeper(item, max - 1));
}

/** Names the first character of any text that a reader would not see: it could hide an order to a model. */
export function unseenIn(values: readonly unknown[]): string | undefined {
  const shown = textsOf(values, NESTING_MAX + 1);
  const found = UNSEEN.exec(shown.join('\n').replace(EMOJI_JOINED, ''));
  const code = found?.[0].codePointAt(0);
  return code === undefined ? undefined : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
}

function textsOf(value: unknown, depth: number): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth === 0) return [];
  return Object.entries(value).flatMap(([key, item]) => [key, ...textsOf(item, depth - 1)]);
}

export function shownName(name: string): string {
  return JSON.stringify(name.slice(0, NAME_SHOWN_MAX)).slice(1, -1);
}
