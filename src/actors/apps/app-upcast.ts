/**
 * Applications as versions 1 to 3 wrote them, in the present form. Version 1 knew no deliveries, 3 no redirect URIs. Until version 2 a
 * rotation sent the new API key at once: receivers that took it over must not be sent the former one again.
 */
import { type AppEvent, type AppState, initialApp } from './app-state.ts';

interface Row {
  version: number;
  events?: unknown[];
  state?: unknown;
}

export function upcastApp({ version, events, state }: Row): { events?: unknown[]; state?: unknown } {
  return {
    ...(events === undefined ? {} : { events: version < 3 ? events.map(upcastEvent) : events }),
    ...(state === undefined ? {} : { state: upcastState(version, state as AppState) }),
  };
}

function upcastState(version: number, state: AppState): AppState {
  if (version >= 4) return state;
  if (version === 3) return withRedirects(state);
  const keys = state.keys.map((key, index) => (index === 0 ? key : { ...key, signsOnly: true as const }));
  const present = withRedirects({ ...state, keys });
  return version < 2 ? withDelivery(present) : present;
}

/** A row of `meta` may have been written under the same number by a version that knew them. */
function withRedirects(state: AppState): AppState {
  return { ...state, redirectUris: state.redirectUris ?? [] };
}

function withDelivery(state: AppState): AppState {
  const { delivery, maxBatch } = initialApp(state.id);
  return {
    ...state,
    maxBatch,
    delivery: { ...delivery, sinceMs: state.createdMs, stateMs: state.createdMs },
  };
}

function upcastEvent(event: unknown): unknown {
  const written = event as AppEvent;
  return written.type === 'keyRotated' ? { ...written, signsOnly: true } : written;
}
