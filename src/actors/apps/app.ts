/**
 * The app actor: one registered application, its configuration, what admins allow it, its API keys. Its owner's account
 * decides which application a request means and sends it here; ends of McpApp sessions go out from here.
 */
import {
  type AppKey,
  type AppPatch,
  type AppView,
  PARTICIPANTS_MAX,
  type SealedKey,
  validKeys,
} from '../../domain/apps.ts';
import type { Resend } from '../../domain/webhooks/types.ts';
import type { AppSettled } from '../accounts/user-messages.ts';
import type { Origin } from '../change.ts';
import {
  type Claim,
  defineActor,
  isRefusal,
  type Message,
  type Outcome,
  type Refusal,
  refuse,
  type Turn,
} from '../runtime/actor.ts';
import type { Protocol } from '../runtime/protocol.ts';
import { formatIndexEntry } from './app-access-index.ts';
import { type AdministerApp, administer } from './app-administration.ts';
import { appRecord, approvalNotices, toUser } from './app-change.ts';
import {
  APP,
  type AppMessage,
  type ConfigureApp,
  type JoinApp,
  type RemoveApp,
  type SettledApp,
} from './app-messages.ts';
import {
  type AppEvent,
  type AppState,
  evolveApp,
  indexEntryOf,
  initialApp,
  shownApp,
  viewOf,
  type WebhookView,
  webhookOf,
} from './app-state.ts';
import { upcastApp } from './app-upcast.ts';
import { type DeliveryProtocol, deliveryHandlers } from './delivery.ts';
import type { DeliveryEvent } from './delivery-events.ts';
import { clearMessages } from './delivery-log.ts';
import { enableWebhook, resendEvents, type WebhookCommand } from './webhook-commands.ts';

type AppCommand =
  | AppMessage
  | OpenHostsRow
  | AppKeyCommand
  | AdministerApp
  | WebhookCommand
  | DeliveryProtocol['command'];

type AppQuery =
  | { readonly type: 'view' }
  | { readonly type: 'webhook' }
  /** API keys that are valid now, the newest first. */
  | { readonly type: 'keys' };

/** Opens the gateway's own row, once. */
interface OpenHostsRow {
  readonly type: 'openHostsRow';
  readonly url: string;
}

interface AppReplies {
  readonly openHostsRow: null;
  readonly join: null;
  readonly rotateKey: AppView;
  readonly endKeyOverlap: AppView;
  readonly administer: AppView;
  readonly resendEvents: Resend;
  readonly enableWebhook: AppView;
}

interface AppResults {
  /** Undefined where there is none. */
  readonly view: AppView | undefined;
  /** Undefined where nothing is delivered. */
  readonly webhook: WebhookView | undefined;
  readonly keys: readonly AppKey[];
}

export type AppProtocol = Protocol<
  AppCommand,
  AppReplies & DeliveryProtocol['replies'],
  AppQuery,
  AppResults
>;

type Decision<Reply> = Outcome<AppEvent, Reply> | Refusal;

/** Commands that end something are served while the disk is full. */
function frees(command: AppCommand): boolean {
  if (command.type === 'remove' || command.type === 'endKeyOverlap') return true;
  if (command.type !== 'administer') return false;
  const { approved, mcpEnabled, disabled } = command.flags;
  return approved === false || mcpEnabled === false || disabled === true;
}

export const app = defineActor<AppState, AppProtocol, AppEvent>({
  kind: APP,
  version: 4,
  gated: true,
  limits: { mailbox: 64, snapshotEvery: 200, idleMs: 60_000 },
  initial: initialApp,
  evolve: evolveApp,
  frees,
  upcast: upcastApp,

  decide: {
    ...deliveryHandlers,
    openHostsRow,
    configure: announced(configure),
    remove: announced(remove),
    join: announced(join),
    rotateKey: announced(rotateKey),
    endKeyOverlap: announced(endKeyOverlap),
    administer: announced(administer),
    resendEvents: announced(resendEvents),
    enableWebhook: announced(enableWebhook),
  },

  query: {
    view: viewOf,
    webhook: webhookOf,
    keys: ({ keys }, _query, _volatile, { nowMs }) => validKeys(keys, nowMs),
  },
});

/** Notifies the webhook dispatcher of what changes the application. Deliveries report to it themselves. */
function announced<Command, Reply>(
  decide: (state: AppState, command: Command, turn: Turn) => Decision<Reply>,
): (state: AppState, command: Command, turn: Turn) => Decision<Reply> {
  return (state, command, turn) => {
    const decision = decide(state, command, turn);
    if (isRefusal(decision) || (decision.events ?? []).length === 0) return decision;
    return { ...decision, notify: ({ webhooks }) => webhooks?.changed(state.id) };
  };
}

function configure(state: AppState, command: ConfigureApp, turn: Turn): Decision<null> {
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
  const withdrawn = changed.includes('redirectUris') && state.approved;
  const closing = withdrawn ? withdrawal(state, turn) : NOTHING;
  events.push(...closing.events);
  claims.push(...closing.claims);
  const after = events.reduce(evolveApp, state);
  const view = viewOf(after);
  if (view === undefined) throw new Error('a configured application has a view');
  const reply: SettledApp = { app: view, keyId: after.keys[0]?.keyId ?? '' };
  const fields = { appId: state.id, ip: origin.ip, changed: changed.join(',') };
  return {
    events,
    claims,
    send: [
      settled(ownerId, commandId, reply),
      ...closing.send,
      ...(created ? [] : approvalNotices(state, after)),
    ],
    audit:
      events.length === 0 ? [] : [appRecord(turn, created ? 'app_created' : 'app_updated', ownerId, fields)],
  };
}

const NOTHING = { events: [], claims: [], send: [] } as const;

/** An admin approved other redirect URIs: another party may answer at the new ones. */
function withdrawal(state: AppState, turn: Turn) {
  const { mcpEnabled, disabled, mcpPublicKey, openedTick, keyTick, ownerId, participants } = state;
  const flags = { approved: false, mcpEnabled, disabled, mcpPublicKey };
  const event: AppEvent = { type: 'administered', flags, openedTick: null, keyTick };
  if (openedTick === null) return { events: [event], claims: [], send: [] };
  const tick = turn.newId();
  const claim: Claim = {
    index: 'appId',
    key: state.id,
    owner: formatIndexEntry(indexEntryOf(evolveApp(state, event))),
    replaces: formatIndexEntry(indexEntryOf(state)),
    onConflict: 'InternalError',
  };
  const notified = [ownerId, ...participants];
  const closed = { type: 'appClosed', appId: state.id, tick, over: { openedTick } } as const;
  const send = notified.map((userId) => toUser(userId, closed));
  return { events: [event], claims: [claim], send };
}

function openHostsRow(state: AppState, { url }: OpenHostsRow, turn: Turn): Decision<null> {
  if (state.phase !== 'none') return { reply: null };
  const event: AppEvent = { type: 'hostsRowOpened', url, openedTick: turn.newId(), utcMs: turn.nowMs };
  const owner = formatIndexEntry(indexEntryOf(evolveApp(state, event)));
  return {
    events: [event],
    claims: [{ index: 'appId', key: state.id, owner, onConflict: 'InternalError' }],
    reply: null,
  };
}

/**
 * Moves the webhook: a first address gets events from now on; another one gets at once those that were not delivered
 * yet.
 */
function webhookMoved(state: AppState, { webhookUrl }: AppPatch, turn: Turn): DeliveryEvent {
  const fresh = state.webhookUrl === null || webhookUrl === null;
  return { type: 'webhookMoved', utcMs: turn.nowMs, fresh };
}

function changedFields(state: AppState, patch: AppPatch): string[] {
  const names = Object.keys(patch) as (keyof AppPatch)[];
  return names.filter((name) => JSON.stringify(state[name]) !== JSON.stringify(patch[name]));
}

function remove(
  state: AppState,
  { commandId, ownerId, reply, origin }: RemoveApp,
  turn: Turn,
): Decision<null> {
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
    erases: true,
    audit: [appRecord(turn, 'app_removed', ownerId, { appId: state.id, ip: origin.ip })],
  };
}

function join(state: AppState, { userId }: JoinApp): Decision<null> {
  if (state.phase !== 'registered') return { send: [toUser(userId, { type: 'appGone', appId: state.id })] };
  const { participants, ownerId } = state;
  const known = userId === ownerId || participants.includes(userId);
  if (known || participants.length >= PARTICIPANTS_MAX) return { reply: null };
  return { events: [{ type: 'joined', userId }], reply: null };
}

function settled(ownerId: string, commandId: string, reply: AppSettled['reply']): Message {
  return toUser(ownerId, { type: 'appSettled', commandId, reply });
}

/** Command of the owner; `NotFound` for any other account. */
interface RotateKey {
  readonly type: 'rotateKey';
  readonly userId: string;
  readonly key: SealedKey;
  readonly origin: Origin;
}

/** The former key of a rotation ends now. Where there is none it has ended already: the answer is the same. */
interface EndKeyOverlap {
  readonly type: 'endKeyOverlap';
  readonly userId: string;
  readonly origin: Origin;
}

type AppKeyCommand = RotateKey | EndKeyOverlap;

function isOwner({ phase, ownerId }: AppState, userId: string): boolean {
  return phase === 'registered' && ownerId === userId;
}

/** Two keys at most: a rotation during a rotation ends the one that was never sent. */
function rotateKey(state: AppState, { userId, key, origin }: RotateKey, turn: Turn): Decision<AppView> {
  if (!isOwner(state, userId)) return refuse('NotFound', 'no such application');
  const rotated: AppEvent = { type: 'keyRotated', key, utcMs: turn.nowMs };
  const view = shownApp(evolveApp(state, rotated));
  const fields = { appId: state.id, keyId: key.keyId, ip: origin.ip };
  return { events: [rotated], audit: [appRecord(turn, 'app_key_rotated', userId, fields)], reply: view };
}

function endKeyOverlap(state: AppState, { userId, origin }: EndKeyOverlap, turn: Turn): Decision<AppView> {
  if (!isOwner(state, userId)) return refuse('NotFound', 'no such application');
  const [, former] = validKeys(state.keys, turn.nowMs);
  if (former === undefined) return { reply: shownApp(state) };
  const ended: AppEvent = { type: 'keyOverlapEnded' };
  const fields = { appId: state.id, keyId: former.keyId, ip: origin.ip };
  return {
    events: [ended],
    audit: [appRecord(turn, 'app_key_ended', userId, fields)],
    reply: shownApp(evolveApp(state, ended)),
  };
}
