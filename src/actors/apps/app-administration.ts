/**
 * Decisions of admins about an application: approval, McpApp logins, the explicit key; and the sessions that end with
 * it.
 */

import { type AppView, GATEWAY_OWNER_ID } from '../../domain/apps.ts';
import { type Outcome, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { formatIndexEntry } from './app-access-index.ts';
import { appRecord, approvalNotices, toUser } from './app-change.ts';
import {
  type AppEvent,
  type AppFlags,
  type AppState,
  evolveApp,
  indexEntryOf,
  shownApp,
} from './app-state.ts';

/** Command of an admin, from an address. */
export interface AdministerApp {
  readonly type: 'administer';
  readonly flags: Partial<AppFlags>;
  readonly by: string;
  readonly address: string;
}

/** Closing ends every McpApp session, another explicit key those of the former one. */
export function administer(
  state: AppState,
  { flags, by, address }: AdministerApp,
  turn: Turn,
): Outcome<AppEvent, AppView> | Refusal {
  if (state.phase !== 'registered') return refuse('NotFound', 'no such application');
  const { approved, mcpEnabled, disabled, mcpPublicKey } = state;
  const before: AppFlags = { approved, mcpEnabled, disabled, mcpPublicKey };
  const after: AppFlags = { ...before, ...flags };
  const changed = (Object.keys(before) as (keyof AppFlags)[]).filter((name) => before[name] !== after[name]);
  if (changed.length === 0) return { reply: shownApp(state) };
  const tick = turn.newId();
  const open = after.approved && after.mcpEnabled && !after.disabled;
  const keyChanged = changed.includes('mcpPublicKey');
  const administered: AppEvent = {
    type: 'administered',
    flags: after,
    openedTick: open ? (state.openedTick ?? tick) : null,
    keyTick: keyChanged ? tick : state.keyTick,
  };
  const next = evolveApp(state, administered);
  const closing = state.openedTick !== null && !open;
  const over = closing ? { openedTick: state.openedTick } : { keyTick: state.keyTick };
  const notified = [
    ...(closing && state.ownerId !== GATEWAY_OWNER_ID ? [state.ownerId] : []),
    ...(closing || keyChanged ? state.participants : []),
  ];
  const values = changed.flatMap((name) => [
    [`${name}Before`, before[name]],
    [`${name}After`, after[name]],
  ]);
  const held = changed.includes('disabled') && after.disabled;
  return {
    events: held ? [administered, { type: 'webhookHeld' }] : [administered],
    claims: [
      {
        index: 'appId',
        key: state.id,
        owner: formatIndexEntry(indexEntryOf(next)),
        replaces: formatIndexEntry(indexEntryOf(state)),
        onConflict: 'InternalError',
      },
    ],
    send: [
      ...notified.map((userId) => toUser(userId, { type: 'appClosed', appId: state.id, tick, over })),
      ...approvalNotices(state, next),
    ],
    audit: [
      appRecord(turn, 'app_administered', by, { appId: state.id, address, ...Object.fromEntries(values) }),
    ],
    reply: shownApp(next),
  };
}
