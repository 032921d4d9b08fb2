/**
 * Events that modules push (docs/modules.md). A module's key permits events of that module only. A request is accepted or
 * refused as a whole, so that a module may repeat it.
 */
import type { EventInbox, Intake } from '../../actors/events/inbox.ts';
import { GatewayError } from '../../domain/errors.ts';
import { type IncomingEvent, readEvents, requireModule } from '../../domain/events/intake.ts';
import { readJsonText } from '../http/exchange/json.ts';
import { inSlices } from './event-slices.ts';
import type { ModuleKeys } from './module-keys.ts';

const EVENTS_PER_REQUEST_MAX = 1_000;
/** JSON values of one request: a hundred for each event. */
const VALUES_PER_REQUEST_MAX = 100 * EVENTS_PER_REQUEST_MAX;
export const EVENTS_BODY_MAX_BYTES = 4 * 1024 * 1024;

export interface EventPush {
  /** Throws `AccessDenied`, `InvalidInput`, `BodyTooLarge`; rejects as `EventInbox.accept` does. */
  push(key: string | undefined, body: Buffer): Promise<Intake>;
  counters(): { readonly refusedKey: number; readonly refusedInput: number };
}

export function createEventPush(inbox: Pick<EventInbox, 'accept'>, keys: ModuleKeys): EventPush {
  const refused = { refusedKey: 0, refusedInput: 0 };
  const judgeWith = (opened: ReadonlySet<string>) => (name: unknown, path: string) => {
    const known = requireModule(name, path, keys.knows);
    if (opened.has(known)) return known;
    throw new GatewayError('AccessDenied', `${path}: X-Module-Key is the key of another module`);
  };
  return {
    async push(key, body) {
      let events: IncomingEvent[];
      try {
        const opened = keys.openedBy(key);
        const text = await readJsonText(body, VALUES_PER_REQUEST_MAX);
        events = await inSlices(readEvents(text, EVENTS_PER_REQUEST_MAX, judgeWith(opened)), body.length);
      } catch (error) {
        if (error instanceof GatewayError)
          refused[error.row === 'AccessDenied' ? 'refusedKey' : 'refusedInput'] += 1;
        throw error;
      }
      return inbox.accept(events);
    },
    counters: () => ({ ...refused }),
  };
}
