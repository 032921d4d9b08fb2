/** The API keys of an application: a rotation, and the end of its overlap (decision 0125). */
import { type SealedKey, validKeys } from '../../domain/apps.ts';
import type { Origin } from '../change.ts';
import { type Outcome, type Refusal, refuse, type Turn } from '../runtime/actor.ts';
import { appRecord } from './app-change.ts';
import { type AppEvent, type AppState, evolveApp, viewOf } from './app-state.ts';

/** From the owner. The reply is the `AppView`; `NotFound` for anybody else. */
export type AppKeyCommand =
  | {
      readonly type: 'rotateKey';
      readonly userId: string;
      readonly key: SealedKey;
      readonly origin: Origin;
    }
  /** The former key of a rotation ends now. Where there is none it has ended already: the answer is the same. */
  | { readonly type: 'endKeyOverlap'; readonly userId: string; readonly origin: Origin };

type Decision = Outcome<AppEvent> | Refusal;

export function decideAppKeys(state: AppState, command: AppKeyCommand, turn: Turn): Decision {
  if (state.phase !== 'registered' || state.ownerId !== command.userId)
    return refuse('NotFound', 'no such application');
  if (command.type === 'rotateKey') return decideRotate(state, command, turn);
  return decideEndOverlap(state, command, turn);
}

/** Two keys at most: a rotation during a rotation ends the one that was never sent. */
function decideRotate(
  state: AppState,
  { userId, key, origin }: Extract<AppKeyCommand, { type: 'rotateKey' }>,
  turn: Turn,
): Decision {
  const rotated: AppEvent = { type: 'keyRotated', key, utcMs: turn.nowMs };
  const view = viewOf(evolveApp(state, rotated));
  const fields = { appId: state.id, keyId: key.keyId, ip: origin.ip };
  return { events: [rotated], audit: [appRecord(turn, 'app_key_rotated', userId, fields)], reply: view };
}

function decideEndOverlap(
  state: AppState,
  { userId, origin }: Extract<AppKeyCommand, { type: 'endKeyOverlap' }>,
  turn: Turn,
): Decision {
  const [, former] = validKeys(state.keys, turn.nowMs);
  if (former === undefined) return { reply: viewOf(state) };
  const ended: AppEvent = { type: 'keyOverlapEnded' };
  const fields = { appId: state.id, keyId: former.keyId, ip: origin.ip };
  return {
    events: [ended],
    audit: [appRecord(turn, 'app_key_ended', userId, fields)],
    reply: viewOf(evolveApp(state, ended)),
  };
}
