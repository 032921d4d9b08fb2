/** Puts the delivery of events together (spec 6): the log, what comes into it from the modules, and who reads it. */
import { randomBytes } from 'node:crypto';
import { EventInbox } from './actors/event-inbox.ts';
import { type JournalEventLog, openEventLog } from './actors/event-log.ts';
import type { RunningSystem } from './actors/runtime/system.ts';
import { nodeSchedule } from './actors/runtime/world.ts';
import type { SettingsReader } from './domain/settings.ts';
import { flatten } from './figures.ts';
import type { Figures } from './io/metrics.ts';

export interface EventDelivery {
  readonly log: JournalEventLog;
  figures(): Figures;
  /** To be awaited before the actors stop. */
  stop(): Promise<void>;
}

/** Goes on where the last run stopped. */
export async function startEventDelivery(
  actors: RunningSystem,
  settings: SettingsReader,
): Promise<EventDelivery> {
  const { administration } = actors;
  const world = { administration, settings, clock: Date.now, schedule: nodeSchedule };
  const log = await openEventLog({ ...world, newEpoch: () => randomBytes(8).toString('hex') });
  const inbox = new EventInbox({ ...world, log });
  return {
    log,
    figures: () => flatten({ ...log.counters(), ...inbox.counters() }),
    async stop() {
      inbox.stop();
      log.stop();
    },
  };
}
