/** Commands of the owner for a webhook: repeat deliveries, enable a disabled webhook again. */
import type { AppView } from '../../domain/apps.ts';
import { BATCH_EVENTS_MAX, RESENDS_MAX, type Resend } from '../../domain/webhooks/types.ts';
import type { Origin } from '../change.ts';
import { type Outcome, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { appRecord } from './app-change.ts';
import { type AppEvent, type AppState, evolveApp, isDeliverable, shownApp } from './app-state.ts';
import type { DeliveryEvent } from './delivery-events.ts';

/** `sequences`, or all between two positions of the log. */
interface ResendEvents {
  readonly type: 'resendEvents';
  readonly userId: string;
  readonly after: number;
  readonly until: number;
  readonly sequences: readonly number[] | null;
  readonly events: number;
  readonly origin: Origin;
}

/** Enables the webhook at once: it continues from the cursor. */
interface EnableWebhook {
  readonly type: 'enableWebhook';
  readonly userId: string;
  /** Parked events leave the list: they were refused, and the owner has no use for them. */
  readonly dropParked: boolean;
  readonly origin: Origin;
}

export type WebhookCommand = ResendEvents | EnableWebhook;

/** Undefined where this account may change the webhook. */
function refusalOf(state: AppState, userId: string): Refusal | undefined {
  if (state.phase !== 'registered' || state.ownerId !== userId)
    return refuse('NotFound', 'no such application');
  if (isDeliverable(state)) return undefined;
  return refuse('WebhookDisabled', state.disabled ? 'the application is disabled' : 'it has no webhookUrl');
}

export function resendEvents(
  state: AppState,
  command: ResendEvents,
  turn: Turn,
): Outcome<AppEvent, Resend> | Refusal {
  const refusal = refusalOf(state, command.userId);
  if (refusal !== undefined) return refusal;
  const { after, until, sequences, events, origin } = command;
  if (state.delivery.state === 'disabled') return refuse('WebhookDisabled', 'enable it first');
  if (state.delivery.resends.length >= RESENDS_MAX)
    return refuse('AppLimitReached', `at most ${RESENDS_MAX} resends at a time`);
  const resend: Resend = { resendId: turn.newId(), after, until, sequences, limit: BATCH_EVENTS_MAX, events };
  const fields = { appId: state.id, resendId: resend.resendId, events, ip: origin.ip };
  return {
    events: [{ type: 'resendAsked', resend }],
    audit: [appRecord(turn, 'webhook_resend', command.userId, fields)],
    reply: resend,
  };
}

/** One that fails is tried again at once. */
export function enableWebhook(
  state: AppState,
  { userId, origin, dropParked }: EnableWebhook,
  turn: Turn,
): Outcome<AppEvent, AppView> | Refusal {
  const refusal = refusalOf(state, userId);
  if (refusal !== undefined) return refusal;
  const { delivery } = state;
  const events: DeliveryEvent[] = [];
  if (delivery.state !== 'active') events.push({ type: 'webhookEnabled', utcMs: turn.nowMs });
  if (dropParked && delivery.parked.length > 0) events.push({ type: 'parkedDropped' });
  if (events.length === 0) return { reply: shownApp(state) };
  const dropped = dropParked ? delivery.parked.length : 0;
  const fields = { appId: state.id, parkedDropped: dropped, ip: origin.ip };
  return {
    events,
    audit: [appRecord(turn, 'webhook_enabled', userId, fields)],
    reply: shownApp(events.reduce<AppState>(evolveApp, state)),
  };
}
