/**
 * Faults of a checked value in words that a reader of a form understands: a pattern is described by its meaning, and
 * a value that fits none of several schemas is one fault.
 */

/** One fault: `path` is a JSON pointer ('' for the value itself), `message` says what is expected there. */
export interface Fault {
  readonly path: string;
  readonly message: string;
}

/** The validator's report of one keyword that failed. `schemaPath` is a JSON pointer behind `#`. */
interface ValidationError {
  readonly keyword: string;
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly message: string;
  readonly params: object;
}

/** Message of a key that a closed object does not have. */
export const UNKNOWN_KEY = 'unknown key';
/** Allowed values that a message names. */
const ALLOWED_SHOWN_MAX = 20;
/** Characters of an example that a message shows. */
const EXAMPLE_SHOWN_MAX = 64;

/** Key for the words behind "must be" of a schema with a pattern. A symbol, so that it is printed nowhere. */
const FORM = Symbol('form');
/** Words behind "must be" for the formats of this program. */
const FORMATS: ReadonlyMap<unknown, string> = new Map([['int64', 'an id of up to 19 digits']]);

/** Part of a schema: `form` is what a text of its pattern is, for example `an id of up to 19 digits`. */
export function formOfPattern(form: string): object {
  return { [FORM]: form };
}

/** The faults of a value by the validator's errors. `schema`: what the value was judged by. */
export function faultsInWords(errors: readonly ValidationError[], schema: object): Fault[] {
  const named = errors.filter((error) => error.keyword !== 'additionalProperties');
  const faults = withOneFaultOfAUnion(named).flatMap((error) => faultsOf(error, schema));
  return faults.filter(
    (fault, index) =>
      faults.findIndex(({ path, message }) => path === fault.path && message === fault.message) === index,
  );
}

/**
 * Keeps of a union's errors those of the branch that the value's type chose, otherwise one that names the types. Inner
 * unions come before the outer ones, as the validator reports them.
 */
function withOneFaultOfAUnion(errors: readonly ValidationError[]): readonly ValidationError[] {
  let left = errors;
  for (const union of errors) {
    if (union.keyword !== 'anyOf' && union.keyword !== 'oneOf') continue;
    const branchStart = `${union.schemaPath}/${union.keyword}/`;
    const within = left.filter(({ schemaPath }) => schemaPath.startsWith(branchStart));
    const wrongType = within.filter(
      ({ keyword, instancePath }) => keyword === 'type' && instancePath === union.instancePath,
    );
    const branchOf = ({ schemaPath }: ValidationError) => schemaPath.slice(branchStart.length).split('/')[0];
    const refused = new Set(wrongType.map(branchOf));
    const chosen = within.filter((error) => !refused.has(branchOf(error)));
    const isOneBranch = new Set(chosen.map(branchOf)).size === 1;
    const said = isOneBranch ? chosen : [{ ...union, params: { types: wrongType.map(typeOf) } }];
    const gone = new Set([union, ...within]);
    left = left.flatMap((error) => (error === union ? said : gone.has(error) ? [] : [error]));
  }
  return left;
}

function typeOf({ params }: ValidationError): string {
  return String((params as { type?: unknown }).type);
}

/** Each missing property is reported at its own path. */
function faultsOf(error: ValidationError, schema: object): Fault[] {
  const { requiredProperties: missing } = error.params as { requiredProperties?: unknown };
  if (error.keyword !== 'required' || !Array.isArray(missing))
    return [{ path: error.instancePath, message: messageOf(error, schema) }];
  return missing.map((name) => ({ path: `${error.instancePath}/${String(name)}`, message: 'is required' }));
}

/** An unknown key of a closed object is reported at the key itself, by the keyword `boolean` (schema `false`). */
function messageOf({ keyword, params, message, schemaPath }: ValidationError, schema: object): string {
  const { allowedValues, format, types } = params as Record<string, unknown>;
  if (keyword === 'boolean') return UNKNOWN_KEY;
  if (keyword === 'enum' && Array.isArray(allowedValues))
    return `must be one of ${allowedValues.slice(0, ALLOWED_SHOWN_MAX).map(String).join(', ')}`;
  if (keyword === 'pattern' || keyword === 'format') return formMessage(format, at(schema, schemaPath));
  if (!Array.isArray(types)) return message;
  return types.length === 0 ? 'has none of the forms that are allowed' : `must be ${types.join(' or ')}`;
}

/** Describes the form by the words of the schema or the format, otherwise by the example that the schema gives. */
function formMessage(format: unknown, schema: unknown): string {
  const { [FORM]: form, examples } = (schema ?? {}) as { [FORM]?: string; examples?: unknown };
  const words = form ?? FORMATS.get(format);
  if (words !== undefined) return `must be ${words}`;
  const example: unknown = Array.isArray(examples) ? examples[0] : undefined;
  if (typeof example !== 'string' || example.length > EXAMPLE_SHOWN_MAX)
    return 'does not have the expected form';
  return `must have the form of ${example}`;
}

/** The part of a schema that a pointer names; undefined where references lead elsewhere. */
function at(schema: object, schemaPath: string): unknown {
  let part: unknown = schema;
  for (const step of schemaPath.split('/').slice(1)) {
    if (typeof part !== 'object' || part === null) return undefined;
    part = (part as Record<string, unknown>)[step.replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return part;
}
