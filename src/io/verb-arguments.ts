/** Arguments of what other nodes may call. A leaf: a gateway without `Cluster` loads nothing of links for it. */

/** Throws TypeError for what no node of this version sends. */
export function textOf(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError(`expected a text, not ${typeof value}`);
  return value;
}

/** The same of a number. */
export function numberOf(value: unknown): number {
  if (typeof value !== 'number') throw new TypeError(`expected a number, not ${typeof value}`);
  return value;
}
