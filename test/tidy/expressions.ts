/** Regular expressions that may take more than linear time: those that can go back over a run of the text. */
import { parse } from 'acorn';
import { analyse } from 'scslre';
import type { Sources } from './sources.ts';

interface SyntaxNode {
  readonly type: string;
  readonly [member: string]: unknown;
}

/** Reasons why an expression is refused, with the better form. */
const REASONS = {
  Move: 'begins anew at every character of a run: anchor it, or scan from the end (withoutTrailing)',
  Trade: 'can share out a run between two parts in many ways: let the parts exclude each other',
  Self: 'can split a run in many ways: no quantifier inside a quantified group',
} as const;

/** Faults of the compiled sources: literals, and the patterns of schemas. */
export function expressionFaults(sources: Sources): string[] {
  return [...sources].flatMap(([path, text]) =>
    expressionsOf(text).flatMap(({ source, flags }) => {
      const { reports } = analyse({ source, flags });
      return [...new Set(reports.map(({ type }) => type))].map(
        (type) => `${path}: /${source}/${flags} ${REASONS[type]}`,
      );
    }),
  );
}

interface Expression {
  readonly source: string;
  readonly flags: string;
}

function expressionsOf(text: string): Expression[] {
  const found: Expression[] = [];
  visit(parse(text, { ecmaVersion: 'latest', sourceType: 'module' }) as unknown as SyntaxNode, (node) => {
    const { regex } = node;
    if (regex !== undefined && isNode(regex))
      found.push({ source: String(regex['pattern']), flags: String(regex['flags']) });
    const schemaPattern = patternOf(node);
    if (schemaPattern !== undefined) found.push({ source: schemaPattern, flags: 'u' });
  });
  return found;
}

/** The text of a member `pattern: '…'`. */
function patternOf({ type, key, value }: SyntaxNode): string | undefined {
  if (type !== 'Property' || !isNode(key) || !isNode(value) || key['name'] !== 'pattern') return undefined;
  return typeof value['value'] === 'string' ? value['value'] : undefined;
}

function visit(node: unknown, see: (node: SyntaxNode) => void): void {
  if (Array.isArray(node)) for (const each of node) visit(each, see);
  if (!isNode(node)) return;
  if (typeof node.type === 'string') see(node);
  for (const member of Object.values(node)) visit(member, see);
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
