/**
 * The sessions of one user as an immutable list, in the order of their ids, which is the order of their opening. A
 * list of hundreds is copied at every login, and an array is what copies fastest; look-ups search it by halves.
 */
import type { SessionRecord } from './user-state.ts';

export type SessionList = readonly SessionRecord[];

/** Undefined for an id that is not there. */
export function findSession(sessions: SessionList, id: string): SessionRecord | undefined {
  const session = sessions[placeOf(sessions, id)];
  return session?.id === id ? session : undefined;
}

/** Adds a session, whose id is the newest, or puts it in the place of the one with its id. */
export function withSession(sessions: SessionList, session: SessionRecord): SessionList {
  const place = placeOf(sessions, session.id);
  if (sessions[place]?.id === session.id) return sessions.with(place, session);
  return place === sessions.length ? [...sessions, session] : sessions.toSpliced(place, 0, session);
}

export function withoutSessions(sessions: SessionList, ids: readonly string[]): SessionList {
  if (ids.length === 1) {
    const place = placeOf(sessions, ids[0] ?? '');
    return sessions[place]?.id === ids[0] ? sessions.toSpliced(place, 1) : sessions;
  }
  const leaving = new Set(ids);
  return sessions.filter((session) => !leaving.has(session.id));
}

/** Index of the first session whose id is not below `id`. */
function placeOf(sessions: SessionList, id: string): number {
  let low = 0;
  let high = sessions.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBelow(sessions[middle]?.id ?? '', id)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Order of decimal numbers without leading zeros. */
function isBelow(id: string, other: string): boolean {
  return id.length === other.length ? id < other : id.length < other.length;
}
