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
import { type GuardedClient, NotConnected, openGuardedClient } from './guarded-client.ts';
import { type DeliveryKeys, deliveryHeaders } from './signature.ts';
import { BlockedAddress, type Resolve, Unresolved } from './ssrf-guard.ts';

/** For connect, TLS, headers and body together (spec 6.2 rule 6). */
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
  /** Of a sampled delivery: the parent of the attempt. */
  readonly span?: TraceSpan | undefined;
}

export interface WebhookSender {
  send(delivery: OutgoingDelivery): Promise<AttemptResult>;
  close(): Promise<void>;
}

interface SenderOptions {
  readonly rules: () => WebhookRules;
  readonly resolve: Resolve;
  readonly clock: Clock;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly deadlineMs?: number;
}

type Answer = Pick<AttemptResult, 'status' | 'retryAfterMs' | 'answer'>;

export function createWebhookSender(options: SenderOptions): WebhookSender {
  const { rules, clock, elapsed, deadlineMs = DEADLINE_MS } = options;
  // Opened with the first delivery, so that a start does not wait for undici.
  let opened: Promise<GuardedClient> | undefined;
  const attempt = async (
    { agent, request }: GuardedClient,
    delivery: OutgoingDelivery,
    signal: AbortSignal,
  ): Promise<Answer> => {
    const decision = judgeWebhookUrl(delivery.url, rules());
    // The only check of an IP literal: no look-up happens for one.
    if (!decision.ok) throw new NotConnected(new BlockedAddress());
    const { webhookId, apiKeys, resent } = delivery;
    const body = Buffer.from(delivery.body);
    const content = { webhookId, timestamp: Math.floor(clock() / 1000), body };
    const headers = deliveryHeaders(apiKeys, content, resent);
    const answer = await request(decision.url, { dispatcher: agent, method: 'POST', headers, body, signal });
    const retryAfter = answer.headers['retry-after'];
    const readable = answer.headers['content-encoding'] === undefined;
    const bytes = await firstBytes(answer.body);
    return {
      status: answer.statusCode,
      retryAfterMs: readRetryAfter(typeof retryAfter === 'string' ? retryAfter : undefined, clock()),
      answer: readable ? bytes.toString('utf8').slice(0, ANSWER_KEPT_MAX) : '',
    };
  };
  const send = async (delivery: OutgoingDelivery): Promise<AttemptResult> => {
    opened ??= openGuardedClient({ ...options, deadlineMs, connections: CONNECTIONS_PER_ORIGIN });
    // Loading the client does not count towards the deadline.
    const client = await opened;
    const startMs = elapsed();
    const deadline = new AbortController();
    const timer = setTimeout(() => deadline.abort(), deadlineMs);
    const took = () => Math.round(elapsed() - startMs);
    try {
      const answer = await attempt(client, delivery, deadline.signal);
      return { ...answer, failure: null, sent: true, elapsedMs: took() };
    } catch (error) {
      const { failure, sent } = deadline.signal.aborted
        ? { failure: 'timed_out' as const, sent: true }
        : failureOf(error);
      return { status: null, failure, sent, retryAfterMs: null, elapsedMs: took(), answer: '' };
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
    async close() {
      await (await opened)?.agent.destroy();
    },
  };
}

function endAttempt(span: TraceSpan, { status, failure }: AttemptResult): void {
  if (status === null) span.end(failure ?? undefined);
  else endAnswered(span, status);
}

/** Leaving the loop destroys the connection, so no more bytes are read. */
async function firstBytes(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    sizeBytes += chunk.length;
    if (sizeBytes >= ANSWER_READ_MAX_BYTES) break;
  }
  return Buffer.concat(chunks);
}

/** Only the class is kept: an error message may reveal a resolved address. */
function failureOf(error: unknown): { failure: FailureClass; sent: boolean } {
  if (!(error instanceof NotConnected)) return { failure: 'broken', sent: true };
  const { cause } = error;
  if (cause instanceof BlockedAddress) return { failure: 'blocked_address', sent: false };
  return { failure: cause instanceof Unresolved ? 'unresolved' : 'unreachable', sent: false };
}
