/**
 * Answers of tool calls and resource reads: the backend's bytes as text, JSON-escaped and never parsed, so that numbers keep
 * every digit that the module wrote.
 */
import { type ErrorName, errorRow } from '../../domain/errors.ts';
import { memberSpan } from '../../domain/raw-json.ts';

/**
 * Whether the answer is a failure: a status of 400 or more, or a top-level `error` with an object (`"error": null` is
 * success).
 */
export function isErrorAnswer(status: number, text: string): boolean {
  if (status >= 400) return true;
  // Fast path of nearly every answer: without the word there is no such member, unless its name has escapes.
  if (!text.includes('"error"') && !text.includes('\\u')) return false;
  const error = memberSpan(text, 'error');
  return error !== undefined && text.charCodeAt(error.start) === 0x7b;
}

/** JSON of the result of tools/call (spec 4.1). */
export function toolResult(text: string, isError: boolean): string {
  return `{"content":[{"type":"text","text":${JSON.stringify(text)}}]${isError ? ',"isError":true}' : '}'}`;
}

/** JSON of the result of resources/read; every item carries its `uri`, which all official clients need. */
export function resourceResult(uri: string, mimeType: string, text: string, isError: boolean): string {
  const item = `{"uri":${JSON.stringify(uri)},"mimeType":${JSON.stringify(mimeType)},"text":${JSON.stringify(text)}}`;
  return `{"contents":[${item}]${isError ? ',"isError":true}' : '}'}`;
}

/** A text of the gateway itself: the REST envelope, whose `detail` says what to correct. */
export function errorText(error: ErrorName, detail?: string): string {
  const { code, message } = errorRow(error);
  return JSON.stringify({ error: detail === undefined ? { code, message } : { code, message, detail } });
}
