/** The check of a call's arguments before anything goes out. */
import { lossyNumberPath } from '../../domain/raw-json.ts';
import type { ToolEntry } from './catalog.ts';
import { argumentFaults, type JsonObject } from './input-schema.ts';
import { paramSpan, type RpcRequest } from './rpc.ts';

/** Only a number this long can lose digits; without one the exact check is skipped. */
const LONG_NUMBER = /[0-9.]{16}|[0-9][eE][+-]?[0-9]{3}/;

/** The fault of the arguments, with its field: a violation of the schema, or a number that JSON would round. */
export function faultOf(entry: ToolEntry, values: JsonObject, request: RpcRequest): string | undefined {
  const fault = argumentFaults(entry.arguments, values);
  if (fault !== undefined || !LONG_NUMBER.test(request.text)) return fault;
  const span = paramSpan(request, 'arguments');
  const path = span === undefined ? undefined : lossyNumberPath(request.text, span);
  return path === undefined
    ? undefined
    : `${path} has more digits than a JSON number keeps: send it as a string`;
}
