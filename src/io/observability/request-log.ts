/**
 * The log line of a request: caller, route, time and result. Secrets of a caller never reach it: no query, body, cookie
 * or bearer. Where the path itself is a secret, only the pattern of the route is written.
 */
import { type ErrorName, errorRow } from '../../domain/errors.ts';
import { toIso } from '../../domain/time.ts';
import type { FinishedRequest } from '../http/exchange/finished.ts';
import type { LineSink } from './log.ts';
import { TRAFFIC_LINES } from './log-lines.ts';
import { escapedToAscii } from './pretty.ts';

/** Selects the requests that leave a line: all, those that were answered 400 or more or not at all, none. */
export type RequestLogMode = 'all' | 'errors' | 'off';

/** Characters of a value from outside; each may take six in the line, which stays below the sink's bound. */
const PATH_CHARACTERS_MAX = 256;
const AGENT_CHARACTERS_MAX = 192;
const METHOD_CHARACTERS_MAX = 16;
const SHORT_CHARACTERS_MAX = 64;

/** Printable ASCII that JSON does not escape. */
const PLAIN = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const { message: MESSAGE } = TRAFFIC_LINES.request;

const SERVER_ERROR = 500;
const CLIENT_ERROR = 400;

interface RequestLogOptions {
  readonly requests: RequestLogMode;
  /** Part of a route's requests that leave a line when they succeed; all of them unless given. */
  readonly sample?: Readonly<Record<string, number>>;
  /** Random number from 0 to 1, exclusive. */
  readonly random?: () => number;
}

/** Returns the function that logs a finished request; undefined when nothing is to be written. */
export function createRequestLog(
  { requests: mode, sample = {}, random = Math.random }: RequestLogOptions,
  sink: Pick<LineSink, 'write'>,
): ((record: FinishedRequest) => void) | undefined {
  if (mode === 'off') return undefined;
  const parts = new Map(Object.entries(sample));
  const isLeftOut = ({ route }: FinishedRequest): boolean => {
    const part = parts.get(route);
    return part !== undefined && random() >= part;
  };
  return (record) => {
    if ((mode === 'errors' || isLeftOut(record)) && !isRefused(record)) return;
    sink.write(requestLine(record));
  };
}

/**
 * Parts of the last line, which most requests of a moment have in common: copied instead of checked and escaped again
 * (docs/optimizations.md).
 */
const last = {
  head: { time: '', method: '', route: '', path: '', status: -1, error: undefined as ErrorName | undefined },
  headText: '',
  client: { responseBytes: -1, clientAddress: '', userAgent: '' },
  clientText: '',
};

/** The line with its line feed: ASCII alone, at most 4 KiB, whatever was sent. */
export function requestLine(record: FinishedRequest): string {
  const time = toIso(record.finishedMs);
  const { userId, clientRequestId, traceparent } = record;
  const user = userId === undefined ? '' : `,"userId":${shown(userId, SHORT_CHARACTERS_MAX)}`;
  // The id is not escaped: its own pattern is narrower.
  const line = `${headOf(record, time)}${rounded(record.durationMs)}${clientOf(record)}${user},"requestId":"${record.requestId}"`;
  if (clientRequestId === undefined && traceparent === undefined) return `${line}}\n`;
  const clientId =
    clientRequestId === undefined ? '' : `,"clientRequestId":${shown(clientRequestId, SHORT_CHARACTERS_MAX)}`;
  const trace = traceparent === undefined ? '' : `,"traceparent":${shown(traceparent, SHORT_CHARACTERS_MAX)}`;
  return `${line}${clientId}${trace}}\n`;
}

/** Writes the line from the beginning to the duration, which differs in every line. */
function headOf({ method, route, path, status, error }: FinishedRequest, time: string): string {
  const { head } = last;
  const isSame = head.time === time && head.route === route && head.path === path && head.method === method;
  if (isSame && head.status === status && head.error === error) return last.headText;
  last.head = { time, method, route, path, status, error };
  const level = isFailure(status, error) ? 'error' : 'info';
  const routeText = shown(route, PATH_CHARACTERS_MAX);
  // A path without parameters is its route.
  const pathText = path === route ? routeText : shown(path, PATH_CHARACTERS_MAX);
  const errorText = error === undefined ? '' : `,"error":"${error}"`;
  last.headText = `{"level":"${level}","time":"${time}","msg":"${MESSAGE}","method":${shown(method, METHOD_CHARACTERS_MAX)},"route":${routeText},"path":${pathText},"status":${status}${errorText},"durationMs":`;
  return last.headText;
}

/** Writes the line between the duration and the user. */
function clientOf({ responseBytes, clientAddress, userAgent }: FinishedRequest): string {
  const { client } = last;
  const isSame = client.responseBytes === responseBytes && client.clientAddress === clientAddress;
  if (isSame && client.userAgent === userAgent) return last.clientText;
  last.client = { responseBytes, clientAddress, userAgent };
  last.clientText = `,"responseBytes":${responseBytes},"clientAddress":${shown(clientAddress, SHORT_CHARACTERS_MAX)},"userAgent":${shown(userAgent, AGENT_CHARACTERS_MAX)}`;
  return last.clientText;
}

function isRefused({ status, error }: FinishedRequest): boolean {
  return status === 0 || status >= CLIENT_ERROR || error !== undefined;
}

/** A fault on this side, whatever the frame of the answer (JSON-RPC answers with 200). */
function isFailure(status: number, error: ErrorName | undefined): boolean {
  return status >= SERVER_ERROR || (error !== undefined && errorRow(error).status >= SERVER_ERROR);
}

/** JSON text of a value from outside, cut and escaped. */
function shown(value: string, charactersMax: number): string {
  const text = value.length > charactersMax ? `${value.slice(0, charactersMax)}...` : value;
  if (PLAIN.test(text)) return `"${text}"`;
  return escapedToAscii(JSON.stringify(text));
}

/** `.000` to `.999` without zeros at the end: a number with a fraction is dear to make a text of. */
const THOUSANDTHS = Array.from({ length: 1_000 }, (_, index) => String(index / 1_000).slice(1));

/** Rounds to the microsecond; a number that JSON can hold. */
function rounded(milliseconds: number): string {
  const microseconds = Math.round(milliseconds * 1_000);
  const whole = Math.floor(microseconds / 1_000);
  const rest = THOUSANDTHS[microseconds - whole * 1_000];
  // Too large for microseconds, or negative.
  return rest === undefined || whole < 0 ? String(microseconds / 1_000) : `${whole}${rest}`;
}
