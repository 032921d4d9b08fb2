/** The JSON Schema of the configuration file for editors: what `print-schema` prints. */
import { configurationSchema } from '../domain/config/file.ts';
import type { SettingRow } from '../domain/settings/definitions.ts';
import { SETTING_NAMES, SETTINGS } from '../domain/settings/settings.ts';

interface Node {
  readonly type?: string;
  readonly description?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly enum?: readonly string[];
  readonly properties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly additionalProperties?: boolean | Node;
  readonly patternProperties?: Readonly<Record<string, Node>>;
}

/** A text of the file may name a variable of the environment or a file instead. */
const FROM_ELSEWHERE: Node = { type: 'string', pattern: '^(env:.+|file:/[^/].*)$' };

/** Its properties are the keys of the file; beside them `$schema`, which editors read. */
export function printedSchema(): object {
  const { properties, ...rest } = withVariables(configurationSchema as Node) as {
    properties: Record<string, Node>;
  };
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'Configuration of Gatehouse',
    ...rest,
    properties: {
      $schema: { type: 'string', description: 'Address or path of this schema.' },
      ...properties,
      Settings: settings(),
    },
  };
}

/** The same schema, in which each text may also be `env:NAME` or `file:/PATH`. */
function withVariables(node: Node): Node {
  const mapped = <T extends Readonly<Record<string, Node>> | undefined>(nodes: T) =>
    nodes && Object.fromEntries(Object.entries(nodes).map(([key, child]) => [key, withVariables(child)]));
  const { properties, patternProperties, items, anyOf, additionalProperties, ...rest } = node;
  const whole = {
    ...rest,
    ...(properties && { properties: mapped(properties) }),
    ...(patternProperties && { patternProperties: mapped(patternProperties) }),
    ...(items && { items: withVariables(items) }),
    ...(anyOf && { anyOf: anyOf.map(withVariables) }),
    ...(additionalProperties !== undefined && {
      additionalProperties:
        typeof additionalProperties === 'boolean'
          ? additionalProperties
          : withVariables(additionalProperties),
    }),
  } as Node;
  const isBounded = node.pattern !== undefined || node.enum !== undefined || (node.minLength ?? 0) > 0;
  if (node.type !== 'string' || !isBounded) return whole;
  const { description, ...bounds } = whole;
  return { ...(description === undefined ? {} : { description }), anyOf: [bounds, FROM_ELSEWHERE] };
}

/**
 * Schema of the settings by the settings registry: the schema of the file takes any value, and names are checked one by
 * one.
 */
function settings(): object {
  const rows = SETTING_NAMES.map((name) => {
    const row: SettingRow = SETTINGS[name];
    const common = { title: row.title, description: row.summary, default: row.default };
    if (row.type === 'number')
      return [name, { ...common, type: 'integer', minimum: row.min, maximum: row.max }];
    return [
      name,
      row.type === 'flag' ? { ...common, enum: [0, 1, true, false] } : { ...common, type: 'string' },
    ];
  });
  return {
    type: 'object',
    description: 'First values of runtime settings, by name.',
    additionalProperties: false,
    properties: Object.fromEntries(rows),
  };
}
