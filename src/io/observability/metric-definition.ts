/** Types of the metric table: a metric's readings, labels and series follow from its definition. */

type MetricType = 'counter' | 'gauge' | 'histogram';

/** `values`: all that the label takes; null when another table has them (routes, tools, kinds of actors). */
export interface Label<Name extends string = string, Value extends string = string> {
  readonly name: Name;
  readonly values: readonly Value[] | null;
}

export interface MetricDefinition<Labels extends readonly Label[] = readonly Label[]> {
  readonly type: MetricType;
  /** Unit of the values. `seconds` and `bytes` are part of the name, too. */
  readonly unit: string;
  readonly help: string;
  readonly labels: Labels;
}

/** One number for each combination of labels, nested in the order of the labels. */
export type Reading<Labels extends readonly Label[]> = Labels extends readonly [
  Label<string, infer Value>,
  ...infer Rest extends readonly Label[],
]
  ? Readonly<Record<Value, Reading<Rest>>>
  : number;

export type ReadingsOf<Table extends Readonly<Record<string, MetricDefinition>>> = {
  readonly [Name in keyof Table]: Reading<Table[Name]['labels']>;
};

type ValueOf<L> = L extends Label<string, infer Value> ? Value : never;

/** The labels of one series by their names. */
export type LabelsOf<Definition extends MetricDefinition> = {
  readonly [L in Definition['labels'][number] as L['name']]: ValueOf<L>;
};

export function label<const Name extends string, const Value extends string>(
  name: Name,
  values: readonly Value[],
): Label<Name, Value> {
  return { name, values };
}

export function openLabel<const Name extends string>(name: Name): Label<Name> {
  return { name, values: null };
}

type Define<Type extends MetricType> = <const Labels extends readonly Label[]>(
  unit: string,
  help: string,
  ...labels: Labels
) => MetricDefinition<Labels> & { readonly type: Type };

export const counter: Define<'counter'> = (unit, help, ...labels) => ({
  type: 'counter',
  unit,
  help,
  labels,
});
export const gauge: Define<'gauge'> = (unit, help, ...labels) => ({ type: 'gauge', unit, help, labels });
export const histogram: Define<'histogram'> = (unit, help, ...labels) => ({
  type: 'histogram',
  unit,
  help,
  labels,
});
