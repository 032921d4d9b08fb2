/** Routes of the internal listener: metrics and health in full. Bound to loopback unless configured otherwise. */
import { type AnyRoute, defineRoute, Reply } from '../http/route.ts';
import type { Figures, Metrics } from '../metrics.ts';
import type { HealthFacts } from './info.ts';

export interface InternalFacts extends HealthFacts {
  readonly uptimeSeconds: number;
  readonly version: string;
  readonly parts: Readonly<Record<string, Figures>>;
}

export function createInternalRoutes(metrics: Metrics, facts: () => InternalFacts): AnyRoute[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/metrics',
      summary: 'Prometheus metrics',
      group: 'internal',
      auth: 'none',
      limits: ['NoRateLimit'],
      errors: [],
      async handle() {
        const { contentType, body } = await metrics.render();
        return new Reply(200, body, contentType);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/health',
      summary: 'Health with the figures of every part',
      group: 'internal',
      auth: 'none',
      limits: ['NoRateLimit'],
      errors: [],
      handle() {
        const { databaseConnected, ...rest } = facts();
        const status = databaseConnected ? 'healthy' : 'unhealthy';
        return Reply.json(databaseConnected ? 200 : 503, { status, ...rest });
      },
    }),
  ];
}
