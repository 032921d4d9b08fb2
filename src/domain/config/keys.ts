/** Reads the schema of the configuration file by the path of a key. */
import { configurationSchema } from './file.ts';

interface Node {
  readonly properties?: Readonly<Record<string, Node>>;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
  readonly writeOnly?: boolean;
}

/** Keys that the object at a path may have; none where any are allowed. */
export function keysBelow(path: readonly string[]): readonly string[] {
  let node: Node | undefined = configurationSchema as Node;
  for (const step of path) node = node?.properties?.[step] ?? Object.values(node?.patternProperties ?? {})[0];
  return Object.keys(node?.properties ?? {});
}

/** Paths of all secrets; `*`: each key of an object, or each place of a list. */
export const SECRET_PATHS: readonly string[] = secretsBelow(configurationSchema as Node, []);

function secretsBelow(node: Node, path: readonly string[]): string[] {
  const { properties = {}, patternProperties = {}, items, anyOf = [], writeOnly } = node;
  const each = [...Object.values(patternProperties), ...(items === undefined ? [] : [items])];
  return [
    ...(writeOnly === true ? [path.join('.')] : []),
    ...Object.entries(properties).flatMap(([key, child]) => secretsBelow(child, [...path, key])),
    ...each.flatMap((child) => secretsBelow(child, [...path, '*'])),
    ...anyOf.flatMap((child) => secretsBelow(child, path)),
  ];
}
