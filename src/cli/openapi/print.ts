/** Prints imported rows as a configuration file with comments, for review. */
import { isObject, type JsonObject } from '../../io/mcp/input-schema.ts';
import type { Documents } from './documents.ts';
import { type ApiOperation, serverOf } from './operations.ts';
import type { ImportedRow, LeftOutOperation } from './rows.ts';
import { oneLine } from './text.ts';

const COMMENT_MAX = 300;
/** Characters of a value in one line. */
const LINE_MAX = 100;

interface ImportedDocument {
  readonly documents: Documents;
  readonly source: string;
  readonly module: string;
  readonly version: string;
  readonly rows: readonly ImportedRow[];
  readonly leftOut: readonly LeftOutOperation[];
}

/** A file that `check-config` takes. */
export function printed(imported: ImportedDocument): string {
  const { documents, module, rows, leftOut } = imported;
  const url = serverOf(documents);
  const modules = [
    '  "Modules": {',
    ...(url === undefined ? ['    // The document names no address: write that of the service.'] : []),
    `    ${JSON.stringify(module)}: ${inline({ url: url ?? `https://${module}.example` })}`,
    '  },',
  ];
  const tools = rows.flatMap(({ operation, name, row, notes }, index) => [
    ...(index === 0 ? [] : ['']),
    comment(`    // ${titleOf(operation)}`),
    ...notes.map((note) => comment(`    // Without: ${note}.`)),
    `    ${JSON.stringify(name)}: ${indented(row, 4)}${index === rows.length - 1 ? '' : ','}`,
  ]);
  const end =
    leftOut.length === 0
      ? []
      : [
          '',
          `// Left out, ${leftOut.length}:`,
          ...leftOut.map(({ operation, reason }) => comment(`// ${titleOf(operation)}: ${reason}`)),
        ];
  const lines = [...headOf(imported), '{', ...modules, '  "McpTools": {', ...tools, '  }', '}', ...end];
  return `${lines.join('\n')}\n`;
}

function headOf({ documents, source, version, rows, leftOut }: ImportedDocument): string[] {
  const { value } = documents.root;
  const info = isObject(value) && isObject(value['info']) ? value['info'] : {};
  const named = [info['title'], info['version']].filter((each) => typeof each === 'string').join(' ');
  const count = `${rows.length} of ${rows.length + leftOut.length} operations`;
  const security = securityOf(value);
  return [
    comment(
      `// ${count} of ${named === '' ? source : `${named} (${source})`}, imported by gatehouse ${version}.`,
    ),
    '// Review each row: who may call it (restricted, appScope), its texts, and what it changes.',
    ...(security.length === 0
      ? []
      : [comment(`// The service asks for ${security.join(', ')}; rows send no credentials of their own.`)]),
  ];
}

function securityOf(root: unknown): string[] {
  if (!isObject(root)) return [];
  const { components, securityDefinitions } = root;
  const schemes = isObject(components) ? components['securitySchemes'] : securityDefinitions;
  return Object.entries(isObject(schemes) ? schemes : {}).map(([name, scheme]) => {
    const { type, in: where } = isObject(scheme) ? scheme : ({} as JsonObject);
    return `${name} (${[type, where].filter((each) => typeof each === 'string').join(' in ')})`;
  });
}

function titleOf({ method, path, id, tags }: ApiOperation): string {
  const of = [id, ...tags.map((tag) => `#${tag}`)].filter((each) => each !== undefined);
  return `${method} ${path}${of.length === 0 ? '' : ` (${of.join(' ')})`}`;
}

/** Texts of the document end no comment: it is one line. */
function comment(text: string): string {
  const [indent = ''] = /^ */.exec(text) ?? [];
  return indent + oneLine(text, COMMENT_MAX);
}

function inline(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inline).join(', ')}]`;
  if (!isObject(value)) return JSON.stringify(value);
  const members = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${inline(item)}`);
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`;
}

function indented(value: unknown, depth: number): string {
  const line = inline(value);
  if (typeof value !== 'object' || value === null || line.length + depth <= LINE_MAX) return line;
  const space = ' '.repeat(depth + 2);
  const items = Array.isArray(value)
    ? value.map((item) => space + indented(item, depth + 2))
    : Object.entries(value).map(
        ([key, item]) => `${space}${JSON.stringify(key)}: ${indented(item, depth + 2)}`,
      );
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  return `${open}\n${items.join(',\n')}\n${' '.repeat(depth)}${close}`;
}
