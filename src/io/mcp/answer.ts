/**
 * Answers of tool calls and resource reads: the backend's bytes as text, JSON-escaped and never parsed, so that numbers keep
 * every digit that the module wrote. `members` are further ones of a result, with a comma behind each.
 */
import { type ErrorName, errorRow } from '../../domain/errors.ts';
import { hasMoreValues, memberSpan } from '../../domain/raw-json.ts';

/**
 * True if the answer is a failure: a status of 400 or more, or a top-level `error` with an object (`"error": null` is
 * success).
 */
export function isErrorAnswer(status: number, text: string): boolean {
  if (status >= 400) return true;
  // Fast path of nearly every answer: without the word there is no such member, unless its name has escapes.
  if (!text.includes('"error"') && !text.includes('\\u')) return false;
  const error = memberSpan(text, 'error');
  return error !== undefined && text.charCodeAt(error.start) === 0x7b;
}

/** Turns the text of an answer into the JSON of a result. */
export interface ResultForm {
  readonly wrap: (text: string, isError: boolean, members: string, structured?: string) => string;
  /** `structuredContent` of an answer that is no failure; undefined when it has none. */
  readonly structure?: (text: string) => string | undefined;
}

/** Characters and JSON values of an answer with `structuredContent`: the text is parsed, and sent twice. */
const STRUCTURED_CHARACTERS_MAX = 1024 * 1024;
const STRUCTURED_VALUES_MAX = 20_000;

export function isTooLargeToParse(text: string): boolean {
  return text.length > STRUCTURED_CHARACTERS_MAX || hasMoreValues(text, STRUCTURED_VALUES_MAX);
}

/** JSON of the result of tools/call (spec 4.1). */
export function toolResult(text: string, isError: boolean, members = ''): string {
  return `{${members}"content":[{"type":"text","text":${JSON.stringify(text)}}]${isError ? ',"isError":true}' : '}'}`;
}

/** The same with `structuredContent`. The text stays as the module wrote it. */
function structuredResult(text: string, isError: boolean, members: string, structured?: string): string {
  const plain = toolResult(text, isError, members);
  return structured === undefined ? plain : `${plain.slice(0, -1)},"structuredContent":${structured}}`;
}

export const TOOL_RESULT: ResultForm = { wrap: toolResult };
export const STRUCTURED_RESULT: ResultForm = { wrap: structuredResult, structure: structuredText };

/** Strings and numbers of a JSON text. */
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/g;
/** Only an integer of so many digits can be beyond 2^53; one with more than 17 characters always is. */
const LONG_INTEGER = /^-?[0-9]{16,}$/;
const CERTAIN_CHARACTERS = 18;
const LONG_DIGITS = /[0-9]{16}/;
/** A JSON object whose integers beyond 2^53 are strings; undefined for any other text. */
function structuredText(text: string): string | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  const quoted = !LONG_DIGITS.test(text)
    ? text
    : text.replace(STRING_OR_NUMBER, (found) =>
        LONG_INTEGER.test(found) &&
        (found.length >= CERTAIN_CHARACTERS || !Number.isSafeInteger(Number(found)))
          ? `"${found}"`
          : found,
      );
  try {
    JSON.parse(quoted);
  } catch {
    return undefined;
  }
  return quoted;
}

/** JSON of the result of resources/read; every item carries its `uri`, which all official clients need. */
export function resourceResult(
  { uri, mimeType }: { readonly uri: string; readonly mimeType: string },
  text: string,
  isError: boolean,
  members = '',
): string {
  const item = `{"uri":${JSON.stringify(uri)},"mimeType":${JSON.stringify(mimeType)},"text":${JSON.stringify(text)}}`;
  return `{${members}"contents":[${item}]${isError ? ',"isError":true}' : '}'}`;
}

/** A text of the gateway itself: the REST envelope, whose `detail` says what to correct. */
export function errorText(error: ErrorName, detail?: string): string {
  const { code, message } = errorRow(error);
  return JSON.stringify({ error: detail === undefined ? { code, message } : { code, message, detail } });
}
