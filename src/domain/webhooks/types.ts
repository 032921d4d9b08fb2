/**
 * Webhook deliveries (spec 6.2), types shared by all layers: bounds, records of attempts, status of an application's
 * webhook. Types and constants only.
 */
import { DAY_MS } from '../time.ts';

/** Events of one delivery, and bytes of its body: one event may be longer and then goes alone. */
export const BATCH_EVENTS_MAX = 100;
export const BATCH_BYTES_MAX = 256 * 1024;
/** Attempts at a single event that the receiver refuses; then it is parked. */
export const REJECTIONS_MAX = 5;
/** Parked events of one application; with one more its webhook is disabled, so that none is lost from the list. */
export const PARKED_MAX = 500;
/** A parked event that is older leaves the list: the event log has long let it go. */
export const PARKED_KEEP_MS = 30 * DAY_MS;
/** Resends that one application may have under way. */
export const RESENDS_MAX = 4;
/** Reach of a resend by time, and events in it. */
export const RESEND_SPAN_MAX_MS = 14 * DAY_MS;
export const RESEND_EVENTS_MAX = 10_000;
/** Attempts that the delivery log keeps, at least, and for how long. */
export const LOG_ATTEMPTS_MAX = 1_000;
export const LOG_KEEP_MS = 7 * DAY_MS;
/** Characters of a receiver's answer that are kept. */
export const ANSWER_KEPT_MAX = 1_024;

export type WebhookState = 'active' | 'failing' | 'disabled';
/**
 * The reason why a webhook is disabled: the receiver said 410; nothing but failures for days; too many events that it
 * refused.
 */
export type DisabledReason = 'gone' | 'failing' | 'parked';

/** `resend` repeats what was delivered; `ping` is a test that changes nothing. */
export type DeliverySource = 'live' | 'resend' | 'ping';

/** A position in the event log; `tick` is that of the event there. */
export interface Cursor {
  readonly tick: string;
  readonly sequence: number;
}

/**
 * Outcome of an attempt. `status`: the receiver answered. The others had no answer: address not allowed, name or
 * connection failed, timeout, broken connection, invalid HTTP.
 */
export type FailureClass = 'blocked_address' | 'unresolved' | 'unreachable' | 'timed_out' | 'broken';

export interface AttemptResult {
  /** HTTP status; null when there was no answer. */
  readonly status: number | null;
  readonly failure: FailureClass | null;
  /** False only when nothing of the request can have reached the receiver. */
  readonly sent: boolean;
  /** Waiting time that the receiver asked for, in milliseconds; null when it did not. */
  readonly retryAfterMs: number | null;
  readonly elapsedMs: number;
  /** The beginning of the answer, at most `ANSWER_KEPT_MAX` characters. */
  readonly answer: string;
  /** Absent where nothing was sent, and in attempts of versions that did not keep it. */
  readonly signed?: SentSignature;
}

/** The headers of a request that its receiver verifies it by, as they were sent: no secret is among them. */
interface SentSignature {
  /** `webhook-timestamp`: whole seconds of the Unix clock. */
  readonly timestamp: number;
  /** `webhook-signature`: one `v1,…` for each key that signed. */
  readonly signature: string;
}

/** A delivery that is under way or waits to be tried again. Its bytes follow from its events. */
export interface OpenDelivery {
  readonly webhookId: string;
  readonly source: 'live' | 'resend';
  /** Positions in the event log, ascending. */
  readonly sequences: readonly number[];
  readonly firstTick: string;
  readonly lastTick: string;
  /** Id of the resend that it belongs to. */
  readonly resendId: string | null;
  readonly attempts: number;
}

/** One line of the delivery log. */
export interface AttemptRecord extends AttemptResult {
  readonly webhookId: string;
  readonly source: DeliverySource;
  readonly utcMs: number;
  readonly sequences: readonly number[];
  readonly firstTick: string;
  readonly lastTick: string;
  /** Counted from 1 for each webhook id. */
  readonly attempt: number;
  readonly outcome: 'delivered' | 'failed' | 'split' | 'parked' | 'dropped';
}

/** An event that the receiver refused again and again: passed over, listed, can be resent. */
export interface ParkedEvent {
  readonly sequence: number;
  readonly tick: string;
  readonly webhookId: string;
  readonly utcMs: number;
  readonly status: number | null;
}

/** A range of the log that is sent again, beside the cursor; `sequences`: those events alone. */
export interface Resend {
  readonly resendId: string;
  /** Position of the last event that was sent again. */
  readonly after: number;
  readonly until: number;
  readonly sequences: readonly number[] | null;
  /** Events of its next delivery at most: halved while a refused one is searched. */
  readonly limit: number;
  /** Events that it had when it was asked for. */
  readonly events: number;
}

/** State of a webhook as its owner sees it. */
export interface WebhookStatus {
  readonly state: WebhookState;
  readonly reason: DisabledReason | null;
  readonly sinceMs: number;
  /** The next attempt after a failure; null when none waits. */
  readonly retryAtMs: number | null;
  /** Failures since the last success. */
  readonly failures: number;
  readonly parked: readonly ParkedEvent[];
  readonly resends: readonly Resend[];
}

/** Sent to the owner's browsers; `AppApprovalChanged` to the webhook of its application too. */
export interface WebhookNotice {
  readonly type:
    | 'AppApprovalChanged'
    | 'WebhookFailing'
    | 'WebhookRecovered'
    | 'WebhookDisabled'
    | 'WebhookEventParked'
    | 'WebhookGap';
  readonly ownerId: string;
  readonly data: Readonly<Record<string, string | number | boolean | null>>;
}
