/** One application: its state, its events and how they change it. The API keys in it are sealed. */
import { type AppKey, type AppPatch, type AppView, KEY_OVERLAP_MS, type SealedKey } from '../domain/apps.ts';
import type { AppDoor } from './app-door.ts';

export interface AppState extends Omit<AppView, 'keys'> {
  readonly phase: 'none' | 'registered' | 'removed';
  /** When it last began to take McpApp sessions; null while it takes none. */
  readonly openedTick: string | null;
  /** When the explicit key was last changed; '0' before. */
  readonly keyTick: string;
  /** The newest first, at most two: one more lives on for a while after a rotation. */
  readonly keys: readonly AppKey[];
  /** Other accounts that it acted for. */
  readonly participants: readonly string[];
}

/** What admins decide. */
export interface AppFlags {
  readonly approved: boolean;
  readonly mcpEnabled: boolean;
  readonly disabled: boolean;
  readonly mcpPublicKey: string | null;
}

export type AppEvent =
  | {
      readonly type: 'registered';
      readonly ownerId: string;
      readonly name: string;
      readonly url: string;
      readonly key: SealedKey;
      readonly utcMs: number;
    }
  | { readonly type: 'configured'; readonly patch: AppPatch }
  | { readonly type: 'keyRotated'; readonly key: SealedKey; readonly utcMs: number }
  | {
      readonly type: 'administered';
      readonly flags: AppFlags;
      readonly openedTick: string | null;
      readonly keyTick: string;
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
  };
}

export function evolveApp(state: AppState, event: AppEvent): AppState {
  switch (event.type) {
    case 'registered': {
      const { ownerId, name, url, key, utcMs } = event;
      const keys = [{ ...key, createdMs: utcMs, expiresMs: null }];
      return { ...state, phase: 'registered', ownerId, name, url, keys, createdMs: utcMs };
    }
    case 'configured':
      return { ...state, ...event.patch };
    case 'keyRotated': {
      const { key, utcMs } = event;
      const former = state.keys.slice(0, 1).map((each) => ({ ...each, expiresMs: utcMs + KEY_OVERLAP_MS }));
      return { ...state, keys: [{ ...key, createdMs: utcMs, expiresMs: null }, ...former] };
    }
    case 'administered':
      return { ...state, ...event.flags, openedTick: event.openedTick, keyTick: event.keyTick };
    case 'joined':
      return { ...state, participants: [...state.participants, event.userId] };
    case 'removed':
      // Keys, addresses and names of a removed application are nobody's business any more.
      return { ...initialApp(state.id), phase: 'removed', ownerId: state.ownerId };
  }
}

export function doorOf({ ownerId, openedTick, keyTick, mcpPublicKey }: AppState): AppDoor {
  return { ownerId, openedTick, keyTick, mcpPublicKey };
}

/** Undefined for one that is not registered (any more). */
export function viewOf(state: AppState): AppView | undefined {
  if (state.phase !== 'registered') return undefined;
  const {
    phase: _phase,
    openedTick: _opened,
    keyTick: _keyTick,
    participants: _participants,
    ...shown
  } = state;
  return { ...shown, keys: state.keys.map(({ sealed: _sealed, ...key }) => key) };
}
