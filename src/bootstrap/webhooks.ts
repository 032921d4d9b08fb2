/** Composes webhook delivery (spec 6.2): sender with SSRF guard, dispatcher over the event log, owner API. */

import type { WebhookPort } from '../actors/runtime/ports.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { RunningSystem } from '../actors/runtime/system.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import type { EventLog } from '../domain/events/events.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import type { ApiKeyCipher } from '../io/apps/api-keys.ts';
import type { LineSink, Log } from '../io/observability/log.ts';
import { createAttemptLog } from '../io/webhooks/attempt-log.ts';
import { WebhookDispatcher } from '../io/webhooks/dispatcher.ts';
import type { WebhookCounters } from '../io/webhooks/metrics.ts';
import { WebhookOwnerApi } from '../io/webhooks/owner-api.ts';
import { createWebhookSender } from '../io/webhooks/sender.ts';
import { createResolver } from '../io/webhooks/ssrf-guard.ts';

/** Time for deliveries in flight at a stop: the deadline of one plus the commit of its result. */
const STOP_MS = 5_500;

export interface WebhookDelivery {
  readonly ownerApi: WebhookOwnerApi;
  counters(): WebhookCounters;
  /** Must resolve before the event log and the actors stop. */
  stop(): Promise<void>;
}

interface WebhookDeps {
  readonly actors: RunningSystem;
  readonly cipher: ApiKeyCipher;
  readonly events: { readonly log: EventLog };
}

interface WebhookOpening {
  readonly port: WebhookPort;
  /** Starts delivery. Notifications of actors wait until then. */
  start(deps: WebhookDeps): WebhookDelivery;
}

interface WebhookOptions {
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly log: Log;
  /** For the lines of attempts. */
  readonly sink: LineSink;
}

/** The port exists before the actors, the dispatcher after them. */
export function openWebhooks(options: WebhookOptions): WebhookOpening {
  let dispatcher: WebhookDispatcher | undefined;
  let opened: (log: EventLog) => void = () => {};
  const eventLog = new Promise<EventLog>((resolve) => {
    opened = resolve;
  });
  return {
    port: {
      changed: (appId) => dispatcher?.changed(appId),
      async tell({ type, ownerId, data }) {
        try {
          await (await eventLog).publish({ type, userId: ownerId, data });
          return { ok: true, value: null };
        } catch (error) {
          options.log.warn({ err: error, type }, 'webhook notification was not published');
          return { ok: false, error: 'JournalUnavailable' };
        }
      },
    },
    start(deps) {
      opened(deps.events.log);
      const started = startDispatcher(options, deps);
      dispatcher = started.dispatcher;
      return started.delivery;
    },
  };
}

function startDispatcher(
  { configuration, settings, log, sink }: WebhookOptions,
  { actors, cipher, events }: WebhookDeps,
): { dispatcher: WebhookDispatcher; delivery: WebhookDelivery } {
  const { production, webhookAllow: allow } = configuration;
  const elapsed = () => performance.now();
  const sender = createWebhookSender({
    rules: () => ({ production, allow, ports: settings.get('WebhookPorts') }),
    resolve: createResolver(elapsed),
    clock: Date.now,
    elapsed,
  });
  const attemptLog = createAttemptLog(configuration.log.requests, sink, Date.now);
  const dispatcher = new WebhookDispatcher({
    actors,
    administration: actors.administration,
    log: events.log,
    sender,
    cipher,
    clock: Date.now,
    schedule: nodeSchedule,
    attemptLog,
    onBug: (error, appId) =>
      log.error({ err: error, appId }, 'webhook run failed unexpectedly; it will be retried'),
  });
  // Runs in the background: a start does not wait until thousands of applications are loaded.
  dispatcher.start().catch((error: unknown) => log.error({ err: error }, 'webhooks did not start'));
  const delivery: WebhookDelivery = {
    ownerApi: new WebhookOwnerApi(dispatcher, events.log, sender, attemptLog),
    counters: () => dispatcher.counters(),
    async stop() {
      await dispatcher.stop(STOP_MS);
      await sender.close();
    },
  };
  return { dispatcher, delivery };
}
