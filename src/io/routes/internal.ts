/**
 * Routes of the internal listener: metrics, full health, events from modules, and file removals by the chat module. The
 * listener is bound to loopback unless configured otherwise.
 */
import { integer, object } from '../../domain/schema.ts';
import type { ClusterFacts } from '../cluster/node-facts.ts';
import { type FileRemovals, REMOVALS_BODY_MAX_BYTES } from '../files/storage/removals.ts';
import { type AnyRoute, defineRoute, Reply } from '../http/table/route.ts';
import { EVENTS_BODY_MAX_BYTES, type EventPush } from '../modules/event-push.ts';
import type { Metrics } from '../observability/metrics.ts';
import { type HealthFacts, healthStatus } from './info.ts';

/** Counters of a part by name: `{ accepted: 3, late: 1 }`. */
export type PartCounters = Readonly<Record<string, number>>;

interface InternalHealth extends HealthFacts {
  readonly uptimeSeconds: number;
  readonly version: string;
  /** Name and version of what serves HTTP. */
  readonly httpLibrary: string;
  readonly node: string;
  readonly parts: Readonly<Record<string, PartCounters>>;
  /** Undefined without `Cluster`. */
  readonly cluster?: ClusterFacts | undefined;
}

interface InternalDeps {
  readonly metrics: Pick<Metrics, 'render'>;
  readonly health: () => InternalHealth;
  readonly events: Pick<EventPush, 'push'>;
  readonly removals: Pick<FileRemovals, 'remove'>;
}

export function createInternalRoutes({ metrics, health, events, removals }: InternalDeps): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/metrics',
      summary: 'Prometheus metrics',
      group: 'internal',
      auth: 'none',
      limits: ['NoRateLimit'],
      async handle() {
        const { contentType, body } = await metrics.render();
        return new Reply(200, body, contentType);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/health',
      summary: 'Health with the counters of every part',
      spec: '4.4',
      group: 'internal',
      auth: 'none',
      limits: ['NoRateLimit'],
      handle() {
        const now = health();
        const { databaseConnected, ...rest } = now;
        return Reply.json(databaseConnected ? 200 : 503, { status: healthStatus(now), ...rest });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/internal/v1/events',
      summary: 'Events of a module: all of them are taken, or none',
      group: 'internal',
      feature: 'events',
      auth: 'none',
      limits: ['NoRateLimit'],
      body: 'raw',
      bodyMaxBytes: EVENTS_BODY_MAX_BYTES,
      result: object({ accepted: integer(), duplicates: integer() }),
      errors: ['AccessDenied', 'StorageFull'],
      handle: ({ header, rawBody }) => events.push(header('x-module-key'), rawBody),
    }),
    defineRoute({
      method: 'POST',
      path: '/internal/v1/files/remove',
      summary: 'Bytes of files whose messages the chat module deleted',
      group: 'internal',
      feature: 'files',
      auth: 'none',
      limits: ['NoRateLimit'],
      body: 'raw',
      bodyMaxBytes: REMOVALS_BODY_MAX_BYTES,
      result: object({ removed: integer() }),
      errors: ['AccessDenied', 'FileStorageFailed', 'TaskTimedOut', 'StorageFull'],
      handle: ({ header, rawBody }) => removals.remove(header('x-module-key'), rawBody),
    }),
  ];
}
