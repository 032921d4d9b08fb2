/**
 * The app actor: one registered application, its configuration, what admins allow it, its API keys. Its owner's account
 * decides which application a request means and sends it here; ends of McpApp sessions go out from here.
 */
import {
  type AppPatch,
  type AppView,
  PARTICIPANTS_MAX,
  type SealedKey,
  validKeys,
} from '../../domain/apps.ts';
import type { Origin } from '../change.ts';
import {
  type Claim,
  defineActor,
  isRefusal,
  type Message,
  type Outcome,
  type Refusal,
  type Turn,
} from '../runtime/actor.ts';
import { formatIndexEntry } from './app-access-index.ts';
import { type AdministerApp, decideAdminister } from './app-administration.ts';
import { appRecord, toUser } from './app-change.ts';
import { type AppKeyCommand, decideAppKeys } from './app-keys.ts';
import {
  type AppEvent,
  type AppState,
  evolveApp,
  indexEntryOf,
  initialApp,
  viewOf,
  webhookOf,
} from './app-state.ts';
import { upcastApp } from './app-upcast.ts';
import { type DeliveryCommand, decideDelivery, isDeliveryCommand } from './delivery.ts';
import type { DeliveryEvent } from './delivery-events.ts';
import { clearMessages } from './delivery-log.ts';
import { decideWebhook, type WebhookCommand } from './webhook-commands.ts';

/** From the owner's account: creates the application or changes it. The reply goes back as `appSettled`. */
export interface ConfigureApp {
  readonly type: 'configure';
  readonly commandId: string;
  readonly ownerId: string;
  readonly patch: AppPatch;
  /** Used by a new application only. */
  readonly key: SealedKey;
  /** Sent again for an answer that was lost: an application that is there stays as it is. */
  readonly repeat?: true;
  readonly origin: Origin;
}

export type AppCommand =
  | ConfigureApp
  /** From the owner's account; `reply` is what its waiting caller gets. */
  | {
      readonly type: 'remove';
      readonly commandId: string;
      readonly ownerId: string;
      readonly reply: unknown;
      readonly origin: Origin;
    }
  /** From the account of another user that it acts for from now on. */
  | { readonly type: 'join'; readonly userId: string }
  | AppKeyCommand
  | AdministerApp
  | DeliveryCommand
  | WebhookCommand;

type AppQuery =
  /** `AppView`, or undefined where there is none. */
  | { readonly type: 'view' }
  /** `WebhookView`, or undefined where nothing is delivered. */
  | { readonly type: 'webhook' }
  /** API keys that are valid now, the newest first: `AppKey[]`. */
  | { readonly type: 'keys'; readonly nowMs: number };

export interface SettledApp {
  readonly app: AppView;
  /** The newest API key: tells whether the one that came with the request was taken. */
  readonly keyId: string;
}

type Decision = Outcome<AppEvent> | Refusal;

/** Commands that end something are served while the disk is full. */
function frees(command: AppCommand): boolean {
  if (command.type === 'remove' || command.type === 'endKeyOverlap') return true;
  if (command.type !== 'administer') return false;
  const { approved, mcpEnabled, disabled } = command.flags;
  return approved === false || mcpEnabled === false || disabled === true;
}

export const app = defineActor<AppState, AppCommand, AppEvent, AppQuery>({
  kind: 'app',
  version: 3,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  initial: initialApp,
  evolve: evolveApp,
  frees: (command) => frees(command as AppCommand),

  decide(state, command, turn) {
    if (isDeliveryCommand(command)) return decideDelivery(state, command, turn);
    const decision = decideApp(state, command, turn);
    if (isRefusal(decision) || (decision.events ?? []).length === 0) return decision;
    return { ...decision, notify: ({ webhooks }) => webhooks?.changed(state.id) };
  },

  upcast: upcastApp,

  query(state, query) {
    if (query.type === 'view') return viewOf(state);
    if (query.type === 'webhook') return webhookOf(state);
    return validKeys(state.keys, query.nowMs);
  },
});

function decideApp(state: AppState, command: Exclude<AppCommand, DeliveryCommand>, turn: Turn): Decision {
  switch (command.type) {
    case 'configure':
      return decideConfigure(state, command, turn);
    case 'remove':
      return decideRemove(state, command, turn);
    case 'join':
      return decideJoin(state, command.userId);
    case 'rotateKey':
    case 'endKeyOverlap':
      return decideAppKeys(state, command, turn);
    case 'administer':
      return decideAdminister(state, command, turn);
    case 'resendEvents':
    case 'enableWebhook':
      return decideWebhook(state, command, turn);
  }
}

function decideConfigure(state: AppState, command: ConfigureApp, turn: Turn): Decision {
  const { patch, key, ownerId, origin, commandId, repeat = false } = command;
  const events: AppEvent[] = [];
  const claims: Claim[] = [];
  const created = state.phase === 'none';
  if (created) {
    const { name = '', url = '' } = patch;
    events.push({ type: 'registered', ownerId, name, url, key, utcMs: turn.nowMs });
    const indexEntry = { ownerId, openedTick: null, keyTick: '0', mcpPublicKey: null };
    claims.push({
      index: 'appId',
      key: state.id,
      owner: formatIndexEntry(indexEntry),
      onConflict: 'InternalError',
    });
  } else if (state.phase === 'removed') throw new Error('a removed application cannot be configured');
  const changed = repeat && !created ? [] : changedFields(state, patch);
  if (changed.length > 0) events.push({ type: 'configured', patch });
  if (changed.includes('webhookUrl')) events.push(webhookMoved(state, patch, turn));
  const after = events.reduce(evolveApp, state);
  const view = viewOf(after);
  if (view === undefined) throw new Error('a configured application has a view');
  const reply: SettledApp = { app: view, keyId: after.keys[0]?.keyId ?? '' };
  const fields = { appId: state.id, ip: origin.ip, changed: changed.join(',') };
  return {
    events,
    claims,
    send: [settled(ownerId, commandId, reply)],
    audit:
      events.length === 0 ? [] : [appRecord(turn, created ? 'app_created' : 'app_updated', ownerId, fields)],
  };
}

/** From no address to one: events from now on. To another one: what was not delivered yet, at once. */
function webhookMoved(state: AppState, { webhookUrl }: AppPatch, turn: Turn): DeliveryEvent {
  const fresh = state.webhookUrl === null || webhookUrl === null;
  return { type: 'webhookMoved', utcMs: turn.nowMs, fresh };
}

function changedFields(state: AppState, patch: AppPatch): string[] {
  const names = Object.keys(patch) as (keyof AppPatch)[];
  return names.filter((name) => JSON.stringify(state[name]) !== JSON.stringify(patch[name]));
}

function decideRemove(
  state: AppState,
  { commandId, ownerId, reply, origin }: Extract<AppCommand, { type: 'remove' }>,
  turn: Turn,
): Decision {
  const answer = settled(ownerId, commandId, reply);
  if (state.phase !== 'registered') return { send: [answer] };
  const gone = { type: 'appGone', appId: state.id } as const;
  return {
    events: [{ type: 'removed' }],
    claims: [
      {
        index: 'appId',
        key: state.id,
        owner: null,
        replaces: formatIndexEntry(indexEntryOf(state)),
        onConflict: 'InternalError',
      },
    ],
    send: [
      answer,
      ...state.participants.map((userId) => toUser(userId, gone)),
      ...clearMessages(state.id, state.delivery.attempts),
    ],
    audit: [appRecord(turn, 'app_removed', ownerId, { appId: state.id, ip: origin.ip })],
  };
}

function decideJoin(state: AppState, userId: string): Decision {
  if (state.phase !== 'registered') return { send: [toUser(userId, { type: 'appGone', appId: state.id })] };
  const { participants, ownerId } = state;
  const known = userId === ownerId || participants.includes(userId);
  if (known || participants.length >= PARTICIPANTS_MAX) return { reply: null };
  return { events: [{ type: 'joined', userId }], reply: null };
}

function settled(ownerId: string, commandId: string, reply: unknown): Message {
  return toUser(ownerId, { type: 'appSettled', commandId, reply });
}
