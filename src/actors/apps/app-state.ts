/** One application: its state, its events and how they change it. The API keys in it are sealed. */
import {
  type AppKey,
  type AppPatch,
  type AppView,
  GATEWAY_OWNER_ID,
  HOSTS_APP_NAME,
  KEY_OVERLAP_MS,
  type SealedKey,
  sentKeyOf,
  validKeys,
} from '../../domain/apps.ts';
import type { Cursor } from '../../domain/webhooks/types.ts';
import {
  BATCH_EVENTS_MAX,
  type OpenDelivery,
  type Resend,
  type WebhookState,
} from '../../domain/webhooks/types.ts';
import type { AppIndexEntry } from './app-access-index.ts';
import { type DeliveryEvent, isDeliveryEvent } from './delivery-events.ts';
import { type DeliveryState, evolveDelivery, initialDelivery, statusOf } from './delivery-state.ts';

export interface AppState extends Omit<AppView, 'keys' | 'webhook'> {
  readonly phase: 'none' | 'registered' | 'removed';
  /** Tick at which it last began to take McpApp sessions; null while it takes none. */
  readonly openedTick: string | null;
  /** Tick at which the explicit key was last changed; '0' before. */
  readonly keyTick: string;
  /** The newest first, at most two: one more lives on for a while after a rotation. */
  readonly keys: readonly AppKey[];
  /** Other accounts that it acted for. */
  readonly participants: readonly string[];
  readonly delivery: DeliveryState;
}

export interface AppFlags {
  readonly approved: boolean;
  readonly mcpEnabled: boolean;
  readonly disabled: boolean;
  readonly mcpPublicKey: string | null;
}

interface KeyRotated {
  readonly type: 'keyRotated';
  readonly key: SealedKey;
  readonly utcMs: number;
  /** Written by versions before 3: the new key was sent at once, and the former one signed beside it. */
  readonly signsOnly?: true;
}

export type AppEvent =
  | DeliveryEvent
  | {
      readonly type: 'registered';
      readonly ownerId: string;
      readonly name: string;
      readonly url: string;
      readonly key: SealedKey;
      readonly utcMs: number;
    }
  | { readonly type: 'configured'; readonly patch: AppPatch }
  | KeyRotated
  /** The former key of a rotation ends before its time. */
  | { readonly type: 'keyOverlapEnded' }
  | {
      readonly type: 'administered';
      readonly flags: AppFlags;
      readonly openedTick: string | null;
      readonly keyTick: string;
    }
  /** The gateway's own row for hosts without an application: open from the start. */
  | {
      readonly type: 'hostsRowOpened';
      readonly url: string;
      readonly openedTick: string;
      readonly utcMs: number;
    }
  | { readonly type: 'joined'; readonly userId: string }
  | { readonly type: 'removed' };

export function initialApp(id: string): AppState {
  return {
    id,
    phase: 'none',
    ownerId: '',
    name: '',
    url: '',
    webhookUrl: null,
    currencies: [],
    netTypes: [],
    maxBatch: BATCH_EVENTS_MAX,
    redirectUris: [],
    approved: false,
    mcpEnabled: false,
    disabled: false,
    mcpPublicKey: null,
    openedTick: null,
    keyTick: '0',
    keys: [],
    participants: [],
    successCount: 0,
    failedCount: 0,
    lastTick: '0',
    createdMs: 0,
    delivery: initialDelivery(),
  };
}

export function evolveApp(state: AppState, event: AppEvent): AppState {
  if (isDeliveryEvent(event)) return evolveCounted(state, event);
  switch (event.type) {
    case 'registered': {
      const { ownerId, name, url, key, utcMs } = event;
      const keys = [{ ...key, createdMs: utcMs, expiresMs: null }];
      const delivery = initialDelivery(utcMs);
      return { ...state, phase: 'registered', ownerId, name, url, keys, createdMs: utcMs, delivery };
    }
    case 'configured':
      return { ...state, ...event.patch };
    case 'keyRotated':
      return { ...state, keys: rotatedKeys(state.keys, event) };
    case 'keyOverlapEnded':
      return { ...state, keys: state.keys.slice(0, 1) };
    case 'administered':
      return { ...state, ...event.flags, openedTick: event.openedTick, keyTick: event.keyTick };
    case 'hostsRowOpened': {
      const { url, openedTick, utcMs } = event;
      const open = { phase: 'registered', approved: true, mcpEnabled: true } as const;
      const row = { name: HOSTS_APP_NAME, ownerId: GATEWAY_OWNER_ID, url, openedTick, createdMs: utcMs };
      return { ...state, ...open, ...row, delivery: initialDelivery(utcMs) };
    }
    case 'joined':
      return { ...state, participants: [...state.participants, event.userId] };
    case 'removed':
      // Keys, addresses and names of a removed application are deleted.
      return { ...initialApp(state.id), phase: 'removed', ownerId: state.ownerId };
  }
}

/** The new key, and for a day the one that deliveries carried until now. Any other ends. */
function rotatedKeys(keys: readonly AppKey[], { key, utcMs, signsOnly }: KeyRotated): readonly AppKey[] {
  const former = signsOnly === true ? keys[0] : sentKeyOf(validKeys(keys, utcMs));
  const added: AppKey = { ...key, createdMs: utcMs, expiresMs: null };
  if (former === undefined) return [added];
  const expiresMs = utcMs + KEY_OVERLAP_MS;
  return [added, { ...former, expiresMs, ...(signsOnly === true ? { signsOnly } : {}) }];
}

/** Spec 6.2 rule 5: each delivery counts, and the cursor stands at the last delivered event. */
function evolveCounted(state: AppState, event: DeliveryEvent): AppState {
  const delivery = evolveDelivery(state.delivery, event);
  switch (event.type) {
    case 'delivered': {
      const lastTick = event.cursor?.tick ?? state.lastTick;
      return { ...state, delivery, successCount: state.successCount + 1, lastTick };
    }
    case 'deliveryFailed':
    case 'eventParked':
    case 'resendRefused':
      return { ...state, delivery, failedCount: state.failedCount + 1 };
    default:
      return { ...state, delivery };
  }
}

/** Facts about an application that deliveries need. */
export interface WebhookView {
  readonly appId: string;
  readonly ownerId: string;
  readonly url: string;
  readonly approved: boolean;
  readonly currencies: readonly string[];
  readonly netTypes: readonly number[];
  readonly sinceMs: number;
  /** Accounts that may have allowed it: a superset, unless there are `PARTICIPANTS_MAX` of them. */
  readonly participants: readonly string[];
  readonly cursor: Cursor | null;
  readonly behind: boolean;
  readonly state: WebhookState;
  readonly stateMs: number;
  readonly retryAtMs: number | null;
  /** Events of the next delivery at most, and of any. */
  readonly limit: number;
  readonly maxBatch: number;
  readonly open: OpenDelivery | null;
  readonly resends: readonly Resend[];
}

/** Registered, not disabled by an admin, with an address. */
export function isDeliverable({ phase, disabled, webhookUrl }: AppState): boolean {
  return phase === 'registered' && !disabled && webhookUrl !== null;
}

/** Undefined for an application that gets no webhooks. */
export function webhookOf(state: AppState): WebhookView | undefined {
  const { webhookUrl, delivery } = state;
  if (!isDeliverable(state) || webhookUrl === null) return undefined;
  return {
    appId: state.id,
    ownerId: state.ownerId,
    url: webhookUrl,
    approved: state.approved,
    currencies: state.currencies,
    netTypes: state.netTypes,
    sinceMs: delivery.sinceMs,
    participants: state.participants,
    cursor: delivery.cursor,
    behind: delivery.behind,
    state: delivery.state,
    stateMs: delivery.stateMs,
    retryAtMs: delivery.retryAtMs,
    limit: Math.min(delivery.limit, state.maxBatch),
    maxBatch: state.maxBatch,
    open: delivery.open,
    resends: delivery.resends,
  };
}

export function indexEntryOf({ ownerId, openedTick, keyTick, mcpPublicKey }: AppState): AppIndexEntry {
  return { ownerId, openedTick, keyTick, mcpPublicKey };
}

/** Undefined for one that is not registered (any more). */
export function viewOf(state: AppState): AppView | undefined {
  return state.phase === 'registered' ? shownApp(state) : undefined;
}

/** A registered application as its owner and admins see it. */
export function shownApp(state: AppState): AppView {
  const {
    phase: _phase,
    openedTick: _opened,
    keyTick: _keyTick,
    participants: _participants,
    delivery,
    ...shown
  } = state;
  return {
    ...shown,
    webhook: statusOf(delivery),
    keys: state.keys.map(({ sealed: _sealed, ...key }) => key),
  };
}
