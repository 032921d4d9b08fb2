/** Conditions that hold whatever comes in. One that does not is a bug of the gateway, and ends what it was found in. */
export class BrokenInvariant extends Error {
  override readonly name = 'BrokenInvariant';
}

/** Throws `BrokenInvariant`. `rule`: the sentence that does not hold; a constant, so that the check allocates nothing. */
export function invariant(holds: boolean, rule: string): asserts holds {
  if (!holds) throw new BrokenInvariant(rule);
}
