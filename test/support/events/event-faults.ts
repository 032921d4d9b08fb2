/** Ways to break a promise of the log of events on purpose. */

import type { Administration } from '../../../src/actors/runtime/administration.ts';
import { EventWrites, type EventWritesOptions } from '../../../src/actors/runtime/journal/event-writes.ts';
import type {
  EventRequest,
  EventWrite,
  Operation,
  Packed,
} from '../../../src/actors/runtime/journal/port.ts';
import { NotOwner } from '../../../src/actors/runtime/not-owner.ts';
import { GatewayError } from '../../../src/domain/errors.ts';

export type EventFault =
  | 'a number from memory'
  | 'an accept that is not deduplicated'
  | 'a release that is not judged'
  | 'a fenced release that stops a node'
  | 'a position that is not waited for';

/** Returns the writes that decide about events at one process, with a fault. */
export function faultyWrites(
  fault: EventFault | undefined,
): ((options: EventWritesOptions) => EventWrites) | undefined {
  if (fault === 'an accept that is not deduplicated')
    return ({ rows, ...options }) =>
      new EventWrites({
        ...options,
        rows: {
          ends: () => rows.ends(),
          knows: () => false,
          lastArrival: () => rows.lastArrival(),
          waits: (arrival) => rows.waits(arrival),
          waitingRow: (arrival) => rows.waitingRow(arrival),
        },
      });
  if (fault === 'a number from memory') return (options) => new RememberedNumbers(options);
  if (fault !== 'a release that is not judged') return undefined;
  const rows = new Map<number, Packed>();
  return (options) => new UnjudgedReleases(options, rows);
}

/** A release has the number that its writer gave, beside the arrival. */
class RememberedNumbers extends EventWrites {
  override decide(request: EventRequest): EventWrite | undefined {
    if (request.op !== 'eventRelease') return super.decide(request);
    const [arrival, sequence] = String(request.arrival).split('/').map(Number);
    const write = super.decide({ op: 'eventRelease', arrival: arrival ?? 0 });
    return write?.op === 'eventEnter' ? { ...write, sequence: sequence ?? 0 } : write;
  }
}

/** Every release puts its event into the log. */
class UnjudgedReleases extends EventWrites {
  readonly #rows: Map<number, Packed>;

  constructor(options: EventWritesOptions, rows: Map<number, Packed>) {
    super(options);
    this.#rows = rows;
  }

  override decide(request: EventRequest): EventWrite | undefined {
    const write = super.decide(request);
    if (write?.op === 'eventWait') this.#rows.set(write.arrival, write.row);
    if (request.op !== 'eventRelease' || write !== undefined) return write;
    const row = this.#rows.get(request.arrival);
    return row === undefined ? undefined : super.decide({ op: 'eventPublish', row });
  }
}

type Written = Pick<Administration, 'journal' | 'write' | 'tick'>;

/** Returns the administration with which the inbox of one process writes, with a fault. */
export function faultyAdministration(administration: Administration, fault: EventFault | undefined): Written {
  const { journal } = administration;
  let newest = journal.events.ends().newest;
  const numbered = (operation: Operation): Operation => {
    if (operation.op !== 'eventRelease' || fault !== 'a number from memory') return operation;
    newest += 1;
    return { ...operation, arrival: `${operation.arrival}/${newest}` as unknown as number };
  };
  return {
    journal,
    tick: () => administration.tick(),
    write: (operations, ...of) =>
      administration.write(operations.map(numbered), ...of).catch((error: unknown) => {
        const isFenced = error instanceof NotOwner && operations[0]?.op === 'eventRelease';
        const stops = isFenced && fault === 'a fenced release that stops a node';
        throw stops ? new GatewayError('JournalUnavailable') : error;
      }),
  };
}
