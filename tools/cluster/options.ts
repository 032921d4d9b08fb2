/** Options of `npm run cluster`. */
import { parseArgs } from 'node:util';

const NODES = { default: 3, min: 2, max: 8 };
const PORT = { default: 8080, min: 1, max: 65_535 };

export interface Options {
  readonly nodes: number;
  readonly port: number;
}

/** Undefined for a wrong option. */
export function readOptions(args: readonly string[]): Options | undefined {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { nodes: { type: 'string' }, port: { type: 'string' } },
    });
    const nodes = Number(values.nodes ?? NODES.default);
    const port = Number(values.port ?? PORT.default);
    const isBetween = (value: number, { min, max }: { min: number; max: number }) =>
      Number.isInteger(value) && value >= min && value <= max;
    return isBetween(nodes, NODES) && isBetween(port, PORT) ? { nodes, port } : undefined;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
