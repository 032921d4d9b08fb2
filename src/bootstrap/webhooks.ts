/** Composes webhook delivery (spec 6.2): sender with SSRF guard, dispatcher over the event log, owner API. */

import type { Ownership } from '../actors/runtime/ownership.ts';
import type { WebhookPort } from '../actors/runtime/ports.ts';
import { nodeSchedule } from '../actors/runtime/runtime-context.ts';
import type { RunningSystem } from '../actors/runtime/system.ts';
import type { Configuration } from '../domain/config/configuration.ts';
import { GatewayError } from '../domain/errors.ts';
import type { EventLog } from '../domain/events/events.ts';
import type { OfferedFeatures } from '../domain/features.ts';
import type { SettingsReader } from '../domain/settings/settings.ts';
import type { TroubledWebhook } from '../io/admin/node-work.ts';
import type { ApiKeyCipher } from '../io/apps/api-keys.ts';
import type { LineSink, Log } from '../io/observability/log.ts';
import { createAttemptLog } from '../io/webhooks/attempt-log.ts';
import { WebhookDispatcher } from '../io/webhooks/dispatcher.ts';
import { type DeliveryLease, ENDLESS } from '../io/webhooks/lease.ts';
import type { WebhookCounters } from '../io/webhooks/metrics.ts';
import { WebhookOwnerApi } from '../io/webhooks/owner-api.ts';
import { WebhookOwnerWork } from '../io/webhooks/owner-work.ts';
import { createWebhookSender } from '../io/webhooks/sender.ts';
import { createResolver } from '../io/webhooks/ssrf-guard.ts';
import type { OpenedCluster } from './cluster/open.ts';
import type { Telemetry } from './telemetry.ts';

/** Time for deliveries in flight at a stop: the deadline of one plus the commit of its result. */
const STOP_MS = 5_500;

export interface WebhookDelivery {
  readonly ownerApi: WebhookOwnerApi;
  /** Called after a change of an application: its webhook, state or cursor. */
  changed(appId: string): void;
  /** The applications that this node delivers to may be others. */
  ownershipChanged(): Promise<void>;
  counters(): WebhookCounters;
  /** Webhooks of this node that fail or are disabled. */
  troubled(): TroubledWebhook[];
  /** Must resolve before the event log and the actors stop. */
  stop(): Promise<void>;
}

interface WebhookPortDeps {
  /** Opens the log at the first call, which may come before delivery starts. */
  readonly eventLog: () => Promise<EventLog>;
  /** Undefined until delivery starts. Changes before it are not lost: a start loads every application. */
  readonly delivery: () => WebhookDelivery | undefined;
  /** Every member can apply events. */
  readonly mayPublish: () => boolean;
  readonly log: Log;
}

export function createWebhookPort({ eventLog, delivery, mayPublish, log }: WebhookPortDeps): WebhookPort {
  return {
    changed: (appId) => delivery()?.changed(appId),
    async tell({ type, ownerId, data }) {
      try {
        if (!mayPublish()) throw new GatewayError('NotWithCluster');
        const { appId } = data;
        const isForApp = type === 'AppApprovalChanged' && typeof appId === 'string';
        await (await eventLog()).publish({ type, userId: ownerId, ...(isForApp && { appId }), data });
        return { ok: true, value: null };
      } catch (error) {
        log.write('webhookEventLost', { err: error, type });
        return { ok: false, error: 'JournalUnavailable' };
      }
    },
  };
}

interface WebhookDeps {
  readonly configuration: Configuration;
  readonly settings: SettingsReader;
  readonly log: Log;
  readonly sink: LineSink;
  /**
   * The actors of this node: deliveries are made and settled at the owner, access of applications is read from the
   * replica.
   */
  readonly local: RunningSystem;
  readonly cluster: OpenedCluster | undefined;
  readonly features: () => OfferedFeatures;
  readonly cipher: ApiKeyCipher;
  readonly eventLog: EventLog;
  readonly telemetry: Pick<Telemetry, 'tracing'>;
  readonly ownership: Ownership;
}

export function startWebhooks(deps: WebhookDeps): WebhookDelivery {
  const { cipher, cluster, configuration, eventLog, features, local, log } = deps;
  const { ownership, settings, sink, telemetry } = deps;
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
    actors: local,
    administration: local.administration,
    lease: cluster === undefined ? ENDLESS : leaseOf(cluster),
    log: eventLog,
    sender,
    cipher,
    clock: Date.now,
    schedule: nodeSchedule,
    attemptLog,
    tracing: telemetry.tracing,
    ownership,
    onBug: (error, appId) => log.write('webhookFailed', { err: error, appId }),
  });
  // Runs in the background, so that a start does not wait for thousands of applications.
  dispatcher.start().catch((error: unknown) => log.write('webhooksFailed', { err: error }));
  const work = new WebhookOwnerWork({
    dispatcher,
    actors: local,
    log: eventLog,
    attemptLog,
    clock: Date.now,
  });
  const atDeliverer = cluster?.webhookOwners(work) ?? ((_verb, _appId, here) => here());
  return {
    ownerApi: new WebhookOwnerApi({
      work,
      atDeliverer,
      isOffered: () => !features().missing.has('webhooks'),
    }),
    changed: (appId) => dispatcher.changed(appId),
    ownershipChanged: () => dispatcher.ownershipChanged(),
    counters: () => dispatcher.counters(),
    troubled: () => dispatcher.subscriptions.troubled(),
    async stop() {
      await dispatcher.stop(STOP_MS);
      sender.close();
    },
  };
}

/** A node that leaves has none: the others deliver as soon as that is applied. */
function leaseOf({ node }: OpenedCluster): DeliveryLease {
  return {
    get leftMs() {
      return node.admits ? node.leaseLeftMs : 0;
    },
  };
}
