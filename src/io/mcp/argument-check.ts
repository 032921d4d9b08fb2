/** The checks of a call's arguments before anything goes out. */
import { NUMBER_MAX_CHARACTERS, type NumberFault, numberFault } from '../../domain/raw-json.ts';
import type { ToolEntry } from './catalog.ts';
import { argumentFaults, type JsonObject } from './input-schema.ts';
import { paramSpan, type RpcRequest } from './rpc.ts';

/** JSON values of one call's arguments, lists and objects included: all that follows costs time for each of them. */
const VALUES_MAX = 5_000;
/** Only a number this long can lose digits; without one the exact check is skipped. */
const LONG_NUMBER = /[0-9.]{16}|[0-9][eE][+-]?[0-9]{3}/;
const NUMBER_FAULTS: Readonly<Record<NumberFault['kind'], string>> = {
  lossy: 'has more digits than a JSON number keeps: send it as a string',
  long: `is a number of more than ${NUMBER_MAX_CHARACTERS} characters: send it as a string`,
};

/** The fault of arguments with more than `VALUES_MAX` values. It is found before any other check reads them. */
export function sizeFaultOf(values: JsonObject): string | undefined {
  return valuesLeft(values, VALUES_MAX) < 0 ? `arguments have more than ${VALUES_MAX} values` : undefined;
}

/** The fault of the arguments, with its field: a violation of the schema, or a number that JSON would round. */
export function faultOf(entry: ToolEntry, values: JsonObject, request: RpcRequest): string | undefined {
  const fault = argumentFaults(entry.arguments, values);
  if (fault !== undefined) return fault;
  const { text, span: whole } = request;
  // Only the message itself is searched, or each message of a batch would cost the length of the batch.
  const own = whole.end - whole.start === text.length ? text : text.slice(whole.start, whole.end);
  if (!LONG_NUMBER.test(own)) return undefined;
  const span = paramSpan(request, 'arguments');
  const found = span === undefined ? undefined : numberFault(text, span);
  return found === undefined ? undefined : `${found.path} ${NUMBER_FAULTS[found.kind]}`;
}

/**
 * Counts the values that may still come after those in `value`; negative once there are too many. JSON bounds the
 * depth.
 */
function valuesLeft(value: unknown, max: number): number {
  if (typeof value !== 'object' || value === null) return max;
  let left = max;
  for (const name in value) {
    left = valuesLeft((value as JsonObject)[name], left - 1);
    if (left < 0) return left;
  }
  return left;
}
