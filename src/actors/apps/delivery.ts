/**
 * Commands of an application's webhook. A delivery is committed before it is sent; its outcome, the cursor, the counters
 * and the line of the delivery log are one commit. A crash skips no event, and a repeated delivery has the same id and bytes.
 */
import { classify } from '../../domain/webhooks/outcome.ts';
import type {
  AttemptRecord,
  AttemptResult,
  Cursor,
  OpenDelivery,
  WebhookNotice,
} from '../../domain/webhooks/types.ts';
import type { AuditRecord, Handlers, Message, Outcome, Turn } from '../runtime/actor.ts';
import type { Protocol } from '../runtime/protocol.ts';
import { appRecord, notice } from './app-change.ts';
import type { TellOwner } from './app-messages.ts';
import {
  type AppEvent,
  type AppState,
  evolveApp,
  isDeliverable,
  type WebhookView,
  webhookOf,
} from './app-state.ts';
import { judge, noticesOf } from './attempt-outcome.ts';
import type { DeliveryEvent } from './delivery-events.ts';
import { lineMessage } from './delivery-log.ts';
import type { DeliveryState } from './delivery-state.ts';

/** Sent before the first attempt. The reply contains the delivery unless the command came too late. */
interface OpenDeliveryCommand {
  readonly type: 'openDelivery';
  readonly delivery: Omit<OpenDelivery, 'attempts'>;
}

/**
 * After an attempt; `behind`: more events may wait; `reopened`: a run before this one, or a turn that failed, may have
 * sent it as well, with an outcome that nothing knows.
 */
interface SettleDelivery {
  readonly type: 'settleDelivery';
  readonly webhookId: string;
  readonly result: AttemptResult;
  readonly behind: boolean;
  readonly reopened: boolean;
}

/** The events of the open delivery may no longer be sent, or are gone from the log. */
interface DropDelivery {
  readonly type: 'dropDelivery';
  readonly webhookId: string;
}

/** Nothing waits up to there. */
interface CaughtUp {
  readonly type: 'caughtUp';
  readonly cursor: Cursor;
}

/** Events between these positions left the log before they could be delivered. */
interface NoteGap {
  readonly type: 'noteGap';
  readonly after: number;
  readonly until: number;
}

interface EndResend {
  readonly type: 'endResend';
  readonly resendId: string;
}

/** A test was sent: a line of the log, nothing else. */
interface LogPing {
  readonly type: 'logPing';
  readonly webhookId: string;
  readonly tick: string;
  readonly result: AttemptResult;
}

/** The notice to the owner was tried. */
interface NoticeTried {
  readonly type: 'told';
}

/** Commands of the delivery worker. Each is answered with the webhook, null when it is over. */
export type WorkerCommand =
  | OpenDeliveryCommand
  | SettleDelivery
  | DropDelivery
  | CaughtUp
  | NoteGap
  | EndResend
  | LogPing;

type DeliveryReplies = { readonly [T in WorkerCommand['type']]: WebhookView | null };

export type DeliveryProtocol = Protocol<WorkerCommand | TellOwner | NoticeTried, DeliveryReplies>;

type Decision = Outcome<AppEvent, WebhookView | null>;

export const deliveryHandlers: Handlers<AppState, DeliveryProtocol, AppEvent> = {
  openDelivery(state, command) {
    const { delivery } = state;
    const ready = isDeliverable(state) && delivery.state !== 'disabled' && delivery.open === null;
    return ready ? changed(state, [opened(command.delivery)]) : unchanged(state);
  },
  settleDelivery(state, command, turn) {
    const { open } = state.delivery;
    if (state.phase !== 'registered' || open?.webhookId !== command.webhookId) return unchanged(state);
    return settle(state, open, command, turn);
  },
  dropDelivery(state, { webhookId }) {
    if (state.delivery.open?.webhookId !== webhookId) return unchanged(state);
    return changed(state, [{ type: 'deliveryDropped' }]);
  },
  caughtUp(state, { cursor }) {
    const { delivery } = state;
    const late = !isDeliverable(state) || delivery.open !== null || delivery.state === 'disabled';
    return late ? unchanged(state) : changed(state, [{ type: 'caughtUp', cursor }]);
  },
  noteGap,
  endResend: (state, { resendId }) => changed(state, [{ type: 'resendEnded', resendId }]),
  logPing: (state, command, turn) =>
    state.phase === 'registered' ? logPing(state, command, turn) : unchanged(state),
  tell: (_state, { notice }) => ({ next: async ({ webhooks }) => noticeTried(await webhooks?.tell(notice)) }),
  told: () => ({}),
};

/** A notice that cannot be written down now is no reason to stop; the state itself shows what it says. */
function noticeTried(_result: unknown): NoticeTried {
  return { type: 'told' };
}

function opened(delivery: Omit<OpenDelivery, 'attempts'>): DeliveryEvent {
  return { type: 'deliveryOpened', delivery: { ...delivery, attempts: 0 } };
}

function unchanged(state: AppState): Decision {
  return { reply: webhookOf(state) ?? null };
}

function changed(
  state: AppState,
  events: readonly DeliveryEvent[],
  send: readonly Message[] = [],
  audit: readonly AuditRecord[] = [],
): Decision {
  const after = events.reduce<AppState>(evolveApp, state);
  return { events, send, audit, reply: webhookOf(after) ?? null };
}

function settle(
  state: AppState,
  open: OpenDelivery,
  { result, behind, reopened }: SettleDelivery,
  turn: Turn,
): Decision {
  const { delivery } = state;
  // While an admin has disabled it, its events are not searched: they wait behind the cursor.
  const attempt = { ...result, reopened };
  const judged = judge(state, open, attempt, behind || !isDeliverable(state), turn);
  const before = delivery.state;
  const after = judged.events.reduce<AppState>(evolveApp, state).delivery;
  const { webhookId, source, sequences, firstTick, lastTick, attempts } = open;
  const record: AttemptRecord = {
    ...result,
    webhookId,
    source,
    utcMs: turn.nowMs,
    sequences,
    firstTick,
    lastTick,
    attempt: attempts + 1,
    outcome: judged.outcome,
  };
  const notices = noticesOf(state, after, open, result);
  const audit =
    after.state === 'disabled' && before !== 'disabled' ? [disabledRecord(state, after, turn)] : [];
  return changed(
    state,
    [...judged.events, { type: 'attemptLogged' }],
    [
      lineMessage(state.id, { ...record, number: delivery.attempts + 1 }),
      ...notices.map((each) => notice(state, each)),
    ],
    audit,
  );
}

function disabledRecord(state: AppState, after: DeliveryState, turn: Turn): AuditRecord {
  return appRecord(turn, 'webhook_disabled', state.ownerId, { appId: state.id, reason: after.reason });
}

function noteGap(state: AppState, { after, until }: NoteGap, turn: Turn): Decision {
  if (!isDeliverable(state)) return unchanged(state);
  const { cursor } = state.delivery;
  if (cursor !== null && cursor.sequence >= until) return unchanged(state);
  const fields = { appId: state.id, after, until };
  const gap: WebhookNotice = {
    type: 'WebhookGap',
    ownerId: state.ownerId,
    data: { appId: state.id, name: state.name, after, until },
  };
  const moved: DeliveryEvent = {
    type: 'gapPassed',
    cursor: { tick: cursor?.tick ?? '0', sequence: until },
  };
  return changed(
    state,
    [moved],
    [notice(state, gap)],
    [appRecord(turn, 'webhook_gap', state.ownerId, fields)],
  );
}

function logPing(state: AppState, { webhookId, tick, result }: LogPing, turn: Turn): Decision {
  const number = state.delivery.attempts + 1;
  const outcome = classify(result) === 'delivered' ? 'delivered' : 'failed';
  const line = {
    ...result,
    number,
    webhookId,
    source: 'ping' as const,
    utcMs: turn.nowMs,
    sequences: [],
    firstTick: tick,
    lastTick: tick,
    attempt: 1,
    outcome,
  } as const;
  return changed(state, [{ type: 'attemptLogged' }], [lineMessage(state.id, line)]);
}
