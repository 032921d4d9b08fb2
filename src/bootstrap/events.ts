/** Composes the delivery of events (spec 6): the log, the intake from modules, the streams. */
import { randomBytes } from 'node:crypto';
import { EventInbox } from '../actors/events/inbox.ts';
import { type JournalEventLog, openEventLog } from '../actors/events/log.ts';
import type { GatewayActors } from '../actors/gateway-actors.ts';
import type { Administration } from '../actors/runtime/administration.ts';
import type { Ownership } from '../actors/runtime/ownership.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { SharedBounds } from '../domain/limits/shared-bounds.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import type { ModuleClient } from '../io/modules/client.ts';
import { EventPoller } from '../io/modules/event-poller.ts';
import { createEventPush, type EventPush } from '../io/modules/event-push.ts';
import { createModuleKeys, type ModuleKeys } from '../io/modules/module-keys.ts';
import type { Log } from '../io/observability/log.ts';
import { newRequestId } from '../io/observability/request-ids.ts';
import type { HubOptions, StreamHub } from '../io/sse/hub.ts';
import type { SupervisedSandbox } from '../sandbox/supervisor.ts';
import { startEventStreams } from './event-streams.ts';
import { eventModulesOf } from './modules.ts';

interface FeedCounters {
  readonly polls: number;
  readonly pollFailures: number;
  readonly pagesRefused: number;
  readonly feedsFailing: number;
}

type EventCounters = ReturnType<JournalEventLog['counters']> &
  ReturnType<EventInbox['counters']> &
  ReturnType<EventPush['counters']> &
  FeedCounters;

export interface EventDelivery {
  readonly log: JournalEventLog;
  readonly intake: EventPush;
  /** Keys of the modules that may call the internal listener. */
  readonly keys: ModuleKeys;
  /** Drained before `stop`. */
  readonly streams: StreamHub;
  counters(): EventCounters;
  /** The node that accepts and releases events may be another. */
  ownershipChanged(): void;
  /** Must resolve before the actors stop. */
  stop(): Promise<void>;
}

interface EventDeliveryOptions {
  readonly actors: GatewayActors;
  readonly settings: SettingsReader;
  readonly bounds: SharedBounds;
  readonly configuration: Configuration;
  readonly sandbox: SupervisedSandbox | undefined;
  readonly modules: ModuleClient;
  readonly eventLog: JournalEventLog;
  readonly log: Log;
  readonly ownership: Ownership;
  /** The lease of this node in a cluster. */
  readonly node?: HubOptions['node'];
}

/** A new or restored journal, or log of a cluster, gets a new epoch. */
export function openGatewayLog(
  administration: Administration,
  settings: SettingsReader,
  ownership: Ownership,
  logId?: string,
): Promise<JournalEventLog> {
  const newEpoch = () => randomBytes(8).toString('hex');
  const clock = Date.now;
  return openEventLog({
    administration,
    settings,
    clock,
    schedule: nodeSchedule,
    newEpoch,
    ownership,
    logId,
  });
}

/** Continues from the position of the last run. */
export function startEventDelivery(options: EventDeliveryOptions): EventDelivery {
  const { actors, settings, configuration, sandbox, modules, eventLog: log, ownership } = options;
  const { administration } = actors;
  const { project } = configuration;
  const eventModules = eventModulesOf(configuration, sandbox);
  const own = { administration, schedule: nodeSchedule, ownership };
  const inbox = new EventInbox({ ...own, settings, clock: Date.now, admits: options.node?.admits });
  const keys = createModuleKeys(new Map(eventModules.map(({ name, key }) => [name, key])));
  const intake = createEventPush(inbox, keys);
  const feeds = eventModules
    .filter(({ poll }) => poll)
    .map(({ name, url }) => {
      const polled = { module: name, url, project, modules, inbox };
      return new EventPoller({ ...own, ...polled, newRequestId, random: Math.random, log: options.log });
    });
  return {
    log,
    intake,
    keys,
    counters: () => ({
      ...log.counters(),
      ...inbox.counters(),
      ...intake.counters(),
      ...sumOf(feeds.map((feed) => feed.counters())),
    }),
    ownershipChanged: () => inbox.ownershipChanged(),
    streams: startEventStreams(actors, settings, options.bounds, log, options.node),
    async stop() {
      await Promise.all(feeds.map((feed) => feed.stop()));
      inbox.stop();
      log.stop();
    },
  };
}

/** Sums over all feeds. The log names a failing module. */
function sumOf(counters: readonly ReturnType<EventPoller['counters']>[]): FeedCounters {
  const sum = { polls: 0, pollFailures: 0, pagesRefused: 0, feedsFailing: 0 };
  for (const { polls, pollFailures, pagesRefused, failing } of counters) {
    sum.polls += polls;
    sum.pollFailures += pollFailures;
    sum.pagesRefused += pagesRefused;
    sum.feedsFailing += failing > 0 ? 1 : 0;
  }
  return sum;
}
