/**
 * Keeps the log of events within its days, number and bytes. The oldest are removed in slices, so that other writes
 * interleave. The newest stays, because sequence numbers continue from it.
 */
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { type Clock, DAY_MS, SECOND_MS } from '../../domain/time.ts';
import type { EventRow, EventRows, Operation } from '../runtime/journal/port.ts';
import { EVENTS_HOME, OWNS_ALL, type Ownership } from '../runtime/ownership.ts';
import type { Schedule } from '../runtime/runtime-context.ts';

/** Events read and removed at a time: some 10 ms of the disk's thread. */
const SLICE = 500;
/**
 * Bytes that the log may take, a quarter of the journal's quota: large events must not fill the journal, which would
 * refuse logins too.
 */
export const LOG_MAX_BYTES = 2 * 1024 ** 3;
/** Wait between two slices while there is more to remove. */
const SLICE_WAIT_MS = 5;
/** Stands for a damaged event: it goes once it is the oldest. */
const DAMAGED: EventRow = ['', '', '', null, null, null, null, '', Number.NEGATIVE_INFINITY, null];

interface EventRetentionOptions {
  readonly rows: EventRows;
  readonly settings: SettingsReader;
  readonly clock: Clock;
  readonly schedule: Schedule;
  readonly bytesMax: number;
  /** The owner of `EVENTS_HOME` alone removes events. */
  readonly ownership?: Ownership;
  readonly ends: () => { readonly oldest: number; readonly newest: number };
  /** Resolves when they have left; rejects when another node removes events now, or the process ends. */
  readonly remove: (operations: readonly Operation[]) => Promise<unknown>;
}

/** Starts it; what it returns stops it. */
export function retainEvents(options: EventRetentionOptions): () => void {
  const { schedule, ownership = OWNS_ALL } = options;
  let stopped = false;
  let cancel = (): void => undefined;
  const again = (waitMs: number) => {
    if (!stopped) cancel = schedule.timer(waitMs, tidy);
  };
  const tidy = () => {
    const slice = ownership.owns(...EVENTS_HOME) ? sliceOf(options) : [];
    if (slice.length === 0) again(SECOND_MS);
    else
      options.remove(slice).then(
        () => again(slice.length === SLICE ? SLICE_WAIT_MS : SECOND_MS),
        () => again(SECOND_MS),
      );
  };
  again(SECOND_MS);
  return () => {
    stopped = true;
    cancel();
  };
}

/** The oldest events that are to be removed, those of one write. */
function sliceOf({ rows, settings, clock, bytesMax, ends }: EventRetentionOptions): Operation[] {
  const { oldest, newest } = ends();
  const beforeMs = clock() - settings.get('EventDays') * DAY_MS;
  const tooLarge = rows.sizeBytes() > bytesMax;
  const lastTooMany = tooLarge ? newest : newest - settings.get('EventRowsMax');
  const slice = (limit: number): Operation[] => {
    const operations: Operation[] = [];
    for (const { sequence, row } of rows.page(Math.max(0, oldest - 1), limit)) {
      // Its identity stays known.
      const [, , , , , , , , acceptedMs, identity] = row ?? DAMAGED;
      if (sequence >= newest || (acceptedMs >= beforeMs && sequence > lastTooMany)) break;
      operations.push({ op: 'eventRemove', sequence, identity });
    }
    return operations;
  };
  // Usually nothing is to be removed: one row shows it.
  return slice(1).length === 0 ? [] : slice(SLICE);
}
