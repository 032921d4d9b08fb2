/**
 * The webhook of one application: how far it was delivered, what is under way, what failed. How its events change it. What was sent and answered is in the delivery log, not here.
 */
import type { FailureRun, Search } from '../../domain/webhooks/outcome.ts';
import {
  BATCH_EVENTS_MAX,
  type Cursor,
  type DisabledReason,
  type OpenDelivery,
  type ParkedEvent,
  type Resend,
  type WebhookState,
  type WebhookStatus,
} from '../../domain/webhooks/types.ts';
import type { DeliveryEvent } from './delivery-events.ts';

export interface DeliveryState extends Search {
  /** Everything up to here was delivered, parked or not for this application; null before the first delivery. */
  readonly cursor: Cursor | null;
  /** Events accepted before this are not delivered: the webhook was set then. */
  readonly sinceMs: number;
  /**
   * Events between the cursor and the common checkpoint may wait. False: the checkpoint holds for this application,
   * so that an idle one writes nothing while others' events go by.
   */
  readonly behind: boolean;
  readonly state: WebhookState;
  readonly reason: DisabledReason | null;
  /** Time since which it is in that state, Unix milliseconds. */
  readonly stateMs: number;
  readonly failures: FailureRun | null;
  /** Failures in a row that set the waiting time; a parked event ends the row, unlike `failures`. */
  readonly step: number;
  /** Refusals of the single event at the head. */
  readonly rejections: number;
  readonly retryAtMs: number | null;
  readonly open: OpenDelivery | null;
  readonly parked: readonly ParkedEvent[];
  readonly resends: readonly Resend[];
  /** Lines that were written to the delivery log. */
  readonly attempts: number;
}

export function initialDelivery(sinceMs = 0): DeliveryState {
  return {
    cursor: null,
    sinceMs,
    behind: true,
    state: 'active',
    reason: null,
    stateMs: sinceMs,
    failures: null,
    step: 0,
    rejections: 0,
    retryAtMs: null,
    suspects: 0,
    limit: BATCH_EVENTS_MAX,
    open: null,
    parked: [],
    resends: [],
    attempts: 0,
  };
}

export function evolveDelivery(state: DeliveryState, event: DeliveryEvent): DeliveryState {
  switch (event.type) {
    case 'deliveryOpened':
      return { ...state, open: event.delivery };
    case 'deliveryDropped':
      return { ...state, open: null };
    case 'delivered':
      return delivered(state, event);
    case 'deliveryFailed':
      return failed(state, event);
    case 'eventParked':
      return parked(state, event);
    case 'resendRefused':
      return { ...state, ...refusedResend(state), open: null, failures: event.failures };
    case 'attemptLogged':
      return { ...state, attempts: state.attempts + 1 };
    case 'caughtUp':
      return { ...state, cursor: event.cursor, behind: false };
    case 'gapPassed':
      return { ...state, cursor: event.cursor, behind: true, open: null, suspects: 0 };
    case 'webhookDisabled': {
      const { reason, utcMs } = event;
      return { ...state, state: 'disabled', reason, stateMs: utcMs, retryAtMs: null, behind: true };
    }
    case 'webhookEnabled':
      return { ...state, ...recovered(event.utcMs), suspects: 0, limit: 1 };
    case 'webhookMoved':
      if (event.fresh) return { ...initialDelivery(event.utcMs), attempts: state.attempts };
      return { ...state, ...recovered(event.utcMs), suspects: 0, limit: 1 };
    case 'webhookHeld':
      return { ...state, behind: true };
    case 'parkedDropped':
      return { ...state, parked: [] };
    case 'resendAsked':
      return { ...state, resends: [...state.resends, event.resend] };
    case 'resendEnded':
      return { ...state, resends: state.resends.filter(({ resendId }) => resendId !== event.resendId) };
  }
}

function recovered(utcMs: number): Partial<DeliveryState> {
  return {
    state: 'active',
    reason: null,
    stateMs: utcMs,
    failures: null,
    step: 0,
    rejections: 0,
    retryAtMs: null,
  };
}

function delivered(
  state: DeliveryState,
  { utcMs, cursor, behind, search }: Extract<DeliveryEvent, { type: 'delivered' }>,
): DeliveryState {
  const calm = state.state === 'active' && state.failures === null;
  const next = { ...state, ...(calm ? {} : recovered(utcMs)), ...search, step: 0, rejections: 0, open: null };
  if (cursor !== null) return { ...next, cursor, behind };
  // An event that the receiver took in the end is no longer parked.
  const sent = new Set(state.open?.sequences ?? []);
  return {
    ...next,
    ...passedResend(state),
    behind: state.behind,
    parked: state.parked.filter(({ sequence }) => !sent.has(sequence)),
  };
}

/** The resend of the open delivery stands behind its last event. */
function passedResend({ open, resends }: DeliveryState): Pick<DeliveryState, 'resends'> {
  const after = open?.sequences.at(-1);
  const advance = (resend: Resend): Resend => {
    if (after === undefined || resend.resendId !== open?.resendId) return resend;
    return { ...resend, after, limit: Math.min(2 * resend.limit, BATCH_EVENTS_MAX) };
  };
  return { resends: resends.map(advance) };
}

function refusedResend(state: DeliveryState): Pick<DeliveryState, 'resends'> {
  const { open, resends } = state;
  const length = open?.sequences.length ?? 0;
  if (length < 2) return passedResend(state);
  const halve = (resend: Resend): Resend =>
    resend.resendId === open?.resendId ? { ...resend, limit: Math.floor(length / 2) } : resend;
  return { resends: resends.map(halve) };
}

function failed(
  state: DeliveryState,
  {
    utcMs,
    failures,
    step,
    rejections,
    retryAtMs,
    search,
  }: Extract<DeliveryEvent, { type: 'deliveryFailed' }>,
): DeliveryState {
  const { open } = state;
  const waits = retryAtMs !== null;
  const becomes = waits && state.state === 'active' ? { state: 'failing' as const, stateMs: utcMs } : {};
  const kept = open === null ? null : { ...open, attempts: open.attempts + 1 };
  return {
    ...state,
    ...becomes,
    ...(search ?? {}),
    failures,
    step,
    rejections,
    retryAtMs,
    behind: true,
    open: search === null ? kept : null,
  };
}

function parked(
  state: DeliveryState,
  { event, cursor, failures, limit, dropBeforeMs }: Extract<DeliveryEvent, { type: 'eventParked' }>,
): DeliveryState {
  const list = state.parked.filter(({ utcMs }) => utcMs >= dropBeforeMs);
  return {
    ...state,
    cursor,
    behind: true,
    failures,
    step: 0,
    rejections: 0,
    retryAtMs: null,
    suspects: 0,
    limit,
    open: null,
    parked: [...list, event],
  };
}

export function statusOf(state: DeliveryState): WebhookStatus {
  const { reason, stateMs, retryAtMs, failures, resends } = state;
  return {
    state: state.state,
    reason,
    sinceMs: stateMs,
    retryAtMs,
    failures: failures?.attempts ?? 0,
    parked: state.parked,
    resends,
  };
}
