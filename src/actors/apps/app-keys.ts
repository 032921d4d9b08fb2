/** The API keys of an application: a rotation, and the end of its overlap (decision 0015). */
import { type AppView, type SealedKey, validKeys } from '../../domain/apps.ts';
import type { Origin } from '../change.ts';
import { type Outcome, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { appRecord } from './app-change.ts';
import { type AppEvent, type AppState, evolveApp, shownApp } from './app-state.ts';

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

export type AppKeyCommand = RotateKey | EndKeyOverlap;

type Decision = Outcome<AppEvent, AppView> | Refusal;

function isOwner({ phase, ownerId }: AppState, userId: string): boolean {
  return phase === 'registered' && ownerId === userId;
}

/** Two keys at most: a rotation during a rotation ends the one that was never sent. */
export function rotateKey(state: AppState, { userId, key, origin }: RotateKey, turn: Turn): Decision {
  if (!isOwner(state, userId)) return refuse('NotFound', 'no such application');
  const rotated: AppEvent = { type: 'keyRotated', key, utcMs: turn.nowMs };
  const view = shownApp(evolveApp(state, rotated));
  const fields = { appId: state.id, keyId: key.keyId, ip: origin.ip };
  return { events: [rotated], audit: [appRecord(turn, 'app_key_rotated', userId, fields)], reply: view };
}

export function endKeyOverlap(state: AppState, { userId, origin }: EndKeyOverlap, turn: Turn): Decision {
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
