/** What anybody may ask: get_info, info and health (spec 4.4). */
import { ROLES } from '../../domain/roles.ts';
import { array, integer, nullable, object, oneOf, text } from '../../domain/schema.ts';
import { toIso } from '../../domain/time.ts';
import { type AnyRoute, defineRoute, Reply } from '../http/route.ts';

/** The state behind `/health`. */
export interface HealthFacts {
  readonly databaseConnected: boolean;
  readonly activeSessions: number;
  /** Resident memory in bytes. */
  readonly rssBytes: number;
}

export const getInfo = defineRoute({
  method: 'GET',
  path: '/auth/v1/get_info',
  summary: 'Project, version and server time',
  group: 'info',
  auth: 'optional',
  limits: [],
  result: object({ project: text(), version: text(), utcNow: text() }),
  errors: [],
  handle: ({ site, nowMs }) => ({ project: site.project, version: site.version, utcNow: toIso(nowMs) }),
});

export const info = defineRoute({
  method: 'GET',
  path: '/auth/v1/info',
  summary: 'Version, ways to log in, public limits, and whose session this is',
  group: 'info',
  auth: 'optional',
  limits: [],
  result: object({
    project: text(),
    version: text(),
    authMethods: array(text()),
    fido2: object({ rpId: text(), rpName: text(), origins: array(text()) }),
    limits: object({ activeKeys: integer(), challengeSeconds: integer() }),
    session: nullable(object({ userId: text(), role: nullable(oneOf(ROLES)) })),
  }),
  errors: [],
  handle: ({ site, settings, session }) => ({
    project: site.project,
    version: site.version,
    authMethods: site.authMethods,
    fido2: { rpId: site.fido2.rpId, rpName: site.fido2.rpName, origins: site.fido2.origins },
    limits: {
      activeKeys: settings.get('ActiveKeysLimit'),
      challengeSeconds: settings.get('ChallengeSeconds'),
    },
    session: session === undefined ? null : { userId: session.userId, role: session.role ?? null },
  }),
});

/** Public health, never in the envelope (config.md); `?plain=1` says one word only. */
export function createHealthRoute(facts: () => HealthFacts): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/health',
    summary: 'Is the gateway healthy',
    group: 'info',
    auth: 'none',
    limits: ['NoRateLimit'],
    errors: [],
    handle({ rawQuery }) {
      const now = facts();
      const status = now.databaseConnected ? 'healthy' : 'unhealthy';
      const code = now.databaseConnected ? 200 : 503;
      if (new URLSearchParams(rawQuery).get('plain') === '1') return Reply.json(code, { status });
      return Reply.json(code, {
        status,
        database: now.databaseConnected ? 'connected' : 'disconnected',
        memory: { rssBytes: now.rssBytes },
        activeSessions: now.activeSessions,
      });
    },
  });
}
