/**
 * Sends one delivery: one POST, one deadline for all phases, a bounded read of the answer. Never rejects. Follows no
 * redirect, uses no proxy from the environment and requests no content coding.
 */
import type { Clock } from '../../domain/time.ts';
import { readRetryAfter } from '../../domain/webhooks/backoff.ts';
import { judgeWebhookUrl, type WebhookRules } from '../../domain/webhooks/target.ts';
import { ANSWER_KEPT_MAX, type AttemptResult, type FailureClass } from '../../domain/webhooks/types.ts';
import { endAnswered, openModuleCall } from '../tracing/calls.ts';
import type { TraceSpan } from '../tracing/span.ts';
import { GuardedClient, type GuardedResult } from './guarded-client.ts';
import type { LeasedAttempt } from './lease.ts';
import { type DeliveryKeys, deliveryHeaders } from './signature.ts';
import type { Resolve } from './ssrf-guard.ts';

/** Time for connect, TLS, headers and body together (spec 6.2 rule 6). */
const DEADLINE_MS = 5_000;
/** Bytes read of an answer; then the connection is closed. */
const ANSWER_READ_MAX_BYTES = 16 * 1024;
/** Connections to one receiver: the bound on deliveries in flight to one host. */
const CONNECTIONS_PER_ORIGIN = 8;

export interface OutgoingDelivery {
  readonly url: string;
  readonly webhookId: string;
  readonly body: string;
  readonly apiKeys: DeliveryKeys;
  /** A resend that the owner requested. */
  readonly resent: boolean;
  /** Span of a sampled delivery: the parent of the attempt. */
  readonly span?: TraceSpan | undefined;
  /** The attempt ends with it, whatever the receiver says later. */
  readonly leased: Pick<LeasedAttempt, 'signal' | 'mayBegin'>;
}

export interface WebhookSender {
  send(delivery: OutgoingDelivery): Promise<AttemptResult>;
  close(): void;
}

interface SenderOptions {
  readonly rules: () => WebhookRules;
  readonly resolve: Resolve;
  readonly clock: Clock;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly deadlineMs?: number;
}

type Outcome = Omit<AttemptResult, 'elapsedMs'>;

export function createWebhookSender(options: SenderOptions): WebhookSender {
  const { rules, clock, elapsed, deadlineMs = DEADLINE_MS } = options;
  const client = new GuardedClient({ ...options, connections: CONNECTIONS_PER_ORIGIN });
  const attempt = async (delivery: OutgoingDelivery, signal: AbortSignal): Promise<Outcome> => {
    const decision = judgeWebhookUrl(delivery.url, rules());
    // The only check of an IP literal: no look-up happens for one.
    if (!decision.ok) return failed('blocked_address', false);
    const { webhookId, apiKeys, resent, body } = delivery;
    const content = { webhookId, timestamp: Math.floor(clock() / 1000), body: Buffer.from(body) };
    const headers = deliveryHeaders(apiKeys, content, resent);
    const { url } = decision;
    const answerMaxBytes = ANSWER_READ_MAX_BYTES;
    const { mayBegin } = delivery.leased;
    const outcome = outcomeOf(
      await client.request({ method: 'POST', url, headers, body, answerMaxBytes, signal, mayBegin }),
      clock(),
    );
    if (!outcome.sent) return outcome;
    return { ...outcome, signed: { timestamp: content.timestamp, signature: headers['webhook-signature'] } };
  };
  const send = async (delivery: OutgoingDelivery): Promise<AttemptResult> => {
    const startMs = elapsed();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), deadlineMs);
    delivery.leased.signal.addEventListener('abort', () => deadline.abort(), { once: true });
    try {
      const outcome = await attempt(delivery, deadline.signal);
      return { ...outcome, elapsedMs: Math.round(elapsed() - startMs) };
    } finally {
      clearTimeout(timer);
    }
  };
  return {
    async send(delivery) {
      const { span: parent, url } = delivery;
      if (parent === undefined) return send(delivery);
      // The path of a webhook may be a secret.
      const span = openModuleCall(parent, 'POST', new URL(url), undefined);
      const result = await send(delivery);
      if (span !== undefined) endAttempt(span, result);
      return result;
    },
    close: () => client.close(),
  };
}

function endAttempt(span: TraceSpan, { status, failure }: AttemptResult): void {
  if (status === null) span.end(failure ?? undefined);
  else endAnswered(span, status);
}

/** Only the class of a failure is kept: its reason may reveal a resolved address. */
function outcomeOf(result: GuardedResult, nowMs: number): Outcome {
  if (result.kind === 'aborted') return failed('timed_out', true);
  if (result.kind === 'broken') {
    const { reason, isSent } = result;
    if (isSent) return failed('broken', true);
    return failed(reason === 'blocked_address' || reason === 'unresolved' ? reason : 'unreachable', false);
  }
  const { status, headers, bytes } = result;
  const retryAfter = headers['retry-after'];
  const isReadable = headers['content-encoding'] === undefined;
  return {
    status,
    failure: null,
    sent: true,
    retryAfterMs: readRetryAfter(typeof retryAfter === 'string' ? retryAfter : undefined, nowMs),
    answer: isReadable ? bytes.toString('utf8').slice(0, ANSWER_KEPT_MAX) : '',
  };
}

function failed(failure: FailureClass, sent: boolean): Outcome {
  return { status: null, failure, sent, retryAfterMs: null, answer: '' };
}
