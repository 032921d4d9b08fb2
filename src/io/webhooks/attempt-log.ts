/**
 * Writes one log line for each webhook attempt. A line holds the receiver's host, never the path or query of its URL,
 * a key, a signature or a body. Lines are ASCII and shorter than 4 KiB, as those of requests are.
 */
import { type Clock, toIso } from '../../domain/time.ts';
import { classify } from '../../domain/webhooks/outcome.ts';
import type { AttemptResult, DeliverySource, WebhookState } from '../../domain/webhooks/types.ts';
import type { LineSink } from '../observability/log.ts';
import { type LogFieldsOf, TRAFFIC_LINES } from '../observability/log-lines.ts';
import { escapedToAscii } from '../observability/pretty.ts';
import type { RequestLogMode } from '../observability/request-log.ts';

/** The attempt that a line is written about. */
export interface LoggedAttempt {
  readonly appId: string;
  readonly webhookId: string;
  readonly source: DeliverySource;
  /** Counted from 1 for each webhook id. */
  readonly attempt: number;
  /** Ids of the first and the last event, `<epoch>-<sequence>` as in the event stream; absent for a test. */
  readonly eventIds: readonly [first: string, last: string] | undefined;
  readonly events: number;
  /** `host:port` of the receiver. */
  readonly host: string;
  readonly result: Pick<AttemptResult, 'status' | 'failure' | 'elapsedMs'>;
  /** State of the webhook after the attempt; undefined when the result could not be stored. */
  readonly state: WebhookState | undefined;
  /** Unix milliseconds of the next try; null when none is planned. */
  readonly retryAtMs: number | null;
}

export type AttemptLog = (attempt: LoggedAttempt) => void;

const ID_CHARACTERS_MAX = 128;
/** A host name has at most 253 characters (RFC 1035 2.3.4). */
const HOST_CHARACTERS_MAX = 260;
/** Undefined when nothing is to be written. `errors`: attempts that did not deliver. */
export function createAttemptLog(
  mode: RequestLogMode,
  sink: Pick<LineSink, 'write'>,
  clock: Clock,
): AttemptLog | undefined {
  if (mode === 'off') return undefined;
  return (attempt) => {
    if (mode === 'errors' && classify(attempt.result) === 'delivered') return;
    sink.write(attemptLine(attempt, toIso(clock())));
  };
}

/** The line with its line feed. `time` is ISO 8601 in UTC. */
export function attemptLine(attempt: LoggedAttempt, time: string): string {
  const { result, eventIds, retryAtMs, state } = attempt;
  const outcome = classify(result);
  const fields: LogFieldsOf<typeof TRAFFIC_LINES.webhookAttempt> = {
    appId: bounded(attempt.appId, ID_CHARACTERS_MAX),
    webhookId: bounded(attempt.webhookId, ID_CHARACTERS_MAX),
    source: attempt.source,
    attempt: attempt.attempt,
    events: attempt.events,
    firstEventId: eventIds && bounded(eventIds[0], ID_CHARACTERS_MAX),
    lastEventId: eventIds && bounded(eventIds[1], ID_CHARACTERS_MAX),
    host: bounded(attempt.host, HOST_CHARACTERS_MAX),
    outcome,
    status: result.status ?? undefined,
    failure: result.failure ?? undefined,
    durationMs: result.elapsedMs,
    state,
    nextTry: retryAtMs === null ? undefined : toIso(retryAtMs),
  };
  const level = outcome === 'delivered' ? 'info' : 'warn';
  const { message: msg } = TRAFFIC_LINES.webhookAttempt;
  return `${escapedToAscii(JSON.stringify({ level, time, msg, ...fields }))}\n`;
}

function bounded(value: string, charactersMax: number): string {
  return value.length > charactersMax ? `${value.slice(0, charactersMax)}...` : value;
}
