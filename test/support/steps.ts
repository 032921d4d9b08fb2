/** Steps of the histories that model tests try: each has its name in `do`, and a weight. */
import fc from 'fast-check';

type Arbitraries<Fields> = { readonly [Key in keyof Fields]: fc.Arbitrary<Fields[Key]> };
type Named<Name extends string, Fields> = Name extends string ? { readonly do: Name } & Fields : never;

/** `name`: one, or several of one shape. `sometimes`: fields that a step may go without. */
export function step<const Name extends string, Always = object, Sometimes = object>(
  weight: number,
  name: Name | readonly Name[],
  always?: Arbitraries<Always>,
  sometimes?: Arbitraries<Sometimes>,
): { weight: number; arbitrary: fc.Arbitrary<Named<Name, Always & Partial<Sometimes>>> } {
  const required = { do: fc.constantFrom(...[name].flat()), ...always };
  const fields: Record<string, fc.Arbitrary<unknown>> = { ...required, ...sometimes };
  const arbitrary = fc.record(fields, { requiredKeys: Object.keys(required) });
  return { weight, arbitrary: arbitrary as fc.Arbitrary<never> };
}

export type StepOf<Steps> = Steps extends fc.Arbitrary<infer Step> ? Step : never;
