/**
 * Effect of a delivery attempt on an application's webhook: the events that follow from its outcome, and the
 * notices to the owner (spec 6.2).
 */

import { backoffMs } from '../../domain/webhooks/backoff.ts';
import {
  afterRejection,
  afterSuccess,
  classify,
  extended,
  type FailureRun,
  isHopeless,
} from '../../domain/webhooks/outcome.ts';
import {
  type AttemptRecord,
  type AttemptResult,
  type DisabledReason,
  type OpenDelivery,
  PARKED_KEEP_MS,
  PARKED_MAX,
  REJECTIONS_MAX,
  type WebhookNotice,
} from '../../domain/webhooks/types.ts';
import type { Turn } from '../runtime/actor.ts';
import type { AppState } from './app-state.ts';
import type { DeliveryEvent } from './delivery-events.ts';
import type { DeliveryState } from './delivery-state.ts';

interface AttemptDecision {
  readonly events: readonly DeliveryEvent[];
  readonly outcome: AttemptRecord['outcome'];
}

/** `reopened`: it may have been sent before with an outcome that nothing knows. */
type JudgedAttempt = AttemptResult & { readonly reopened: boolean };

export function judge(
  state: AppState,
  open: OpenDelivery,
  result: JudgedAttempt,
  behind: boolean,
  turn: Turn,
): AttemptDecision {
  const { delivery } = state;
  const { nowMs } = turn;
  const outcome = classify(result);
  const length = open.sequences.length;
  if (outcome === 'delivered') {
    const live = open.source === 'live';
    const search = live
      ? afterSuccess(delivery, length, state.maxBatch)
      : { suspects: delivery.suspects, limit: delivery.limit };
    const cursor = live ? { tick: open.lastTick, sequence: lastOf(open) } : null;
    return { events: [{ type: 'delivered', utcMs: nowMs, cursor, behind, search }], outcome: 'delivered' };
  }
  const failures = extended(delivery.failures, nowMs);
  if (outcome === 'gone') {
    return { events: [failed(delivery, failures, turn, {}), disabled('gone', nowMs)], outcome: 'failed' };
  }
  if (outcome === 'rejected') {
    if (open.source === 'resend')
      return { events: [{ type: 'resendRefused', failures }], outcome: length > 1 ? 'split' : 'failed' };
    if (length > 1)
      return {
        events: [failed(delivery, failures, turn, { search: afterRejection(length) })],
        outcome: 'split',
      };
    if (delivery.rejections + 1 >= REJECTIONS_MAX) return park(state, open, result, failures, turn);
  }
  return wait(delivery, open, result, failures, turn, outcome === 'rejected');
}

/**
 * Repeats the delivery later. If the receiver was not reached and nothing was sent, the next delivery is one event
 * that probes it. Events that may have been sent keep their id, by which the receiver finds repeats.
 */
function wait(
  delivery: DeliveryState,
  open: OpenDelivery,
  result: JudgedAttempt,
  failures: FailureRun,
  turn: Turn,
  rejected: boolean,
): AttemptDecision {
  const step = delivery.step + 1;
  const chance = new DataView(turn.randomBytes(4).slice().buffer).getUint32(0) / 2 ** 32;
  const retryAtMs = turn.nowMs + backoffMs(step, chance, result.retryAfterMs);
  const neverSent = !result.sent && !result.reopened && open.attempts === 0;
  const recut = neverSent && open.source === 'live' && open.sequences.length > 1;
  const search = recut ? { suspects: delivery.suspects, limit: 1 } : null;
  const rejections = delivery.rejections + (rejected ? 1 : 0);
  const events: DeliveryEvent[] = [failed(delivery, failures, turn, { step, retryAtMs, search, rejections })];
  if (isHopeless(delivery.failures, turn.nowMs)) events.push(disabled('failing', turn.nowMs));
  return { events, outcome: 'failed' };
}

function park(
  state: AppState,
  open: OpenDelivery,
  { status }: AttemptResult,
  failures: FailureRun,
  turn: Turn,
): AttemptDecision {
  const { nowMs } = turn;
  const dropBeforeMs = nowMs - PARKED_KEEP_MS;
  if (state.delivery.parked.filter(({ utcMs }) => utcMs >= dropBeforeMs).length >= PARKED_MAX) {
    return {
      events: [failed(state.delivery, failures, turn, {}), disabled('parked', nowMs)],
      outcome: 'failed',
    };
  }
  const { lastTick: tick, webhookId } = open;
  const sequence = lastOf(open);
  return {
    events: [
      {
        type: 'eventParked',
        event: { sequence, tick, webhookId, utcMs: nowMs, status },
        cursor: { tick, sequence },
        failures,
        limit: state.maxBatch,
        dropBeforeMs,
      },
    ],
    outcome: 'parked',
  };
}

type Failed = Extract<DeliveryEvent, { type: 'deliveryFailed' }>;

function failed(
  { step, rejections }: DeliveryState,
  failures: FailureRun,
  { nowMs }: Turn,
  rest: Partial<Pick<Failed, 'step' | 'rejections' | 'retryAtMs' | 'search'>>,
): Failed {
  return {
    type: 'deliveryFailed',
    utcMs: nowMs,
    failures,
    step,
    rejections,
    retryAtMs: null,
    search: null,
    ...rest,
  };
}

function disabled(reason: DisabledReason, utcMs: number): DeliveryEvent {
  return { type: 'webhookDisabled', reason, utcMs };
}

function lastOf({ sequences }: OpenDelivery): number {
  const last = sequences.at(-1);
  if (last === undefined) throw new Error('a delivery without events');
  return last;
}

/** Returns the notices to the owner about an attempt: changes of the state and parked events, not every failure. */
export function noticesOf(
  state: AppState,
  after: DeliveryState,
  { webhookId, lastTick }: OpenDelivery,
  { status, failure }: AttemptResult,
): WebhookNotice[] {
  const { delivery } = state;
  const about = { appId: state.id, name: state.name };
  const { ownerId } = state;
  const notices: WebhookNotice[] = [];
  if (after.parked.length > 0 && after.parked.at(-1) !== delivery.parked.at(-1) && after.rejections === 0) {
    const last = after.parked.at(-1);
    if (last?.webhookId === webhookId)
      notices.push({
        type: 'WebhookEventParked',
        ownerId,
        data: { ...about, tick: lastTick, webhookId, status },
      });
  }
  if (after.state === delivery.state) return notices;
  if (after.state === 'failing') {
    const retryUtcMs = after.retryAtMs;
    notices.push({ type: 'WebhookFailing', ownerId, data: { ...about, status, failure, retryUtcMs } });
  } else if (after.state === 'disabled') {
    notices.push({
      type: 'WebhookDisabled',
      ownerId,
      data: { ...about, reason: after.reason, status, failure },
    });
  } else notices.push({ type: 'WebhookRecovered', ownerId, data: about });
  return notices;
}
