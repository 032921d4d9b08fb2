/** What anybody may ask: get_info, info and health (spec 4.4). */
import { ROLES } from '../../domain/roles.ts';
import { array, integer, nullable, object, oneOf, text } from '../../domain/schema.ts';
import type { SettingsReader } from '../../domain/settings.ts';
import type { Site } from '../../domain/site.ts';
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
  handle({ site, settings, session }) {
    const whose = session === undefined ? null : { userId: session.userId, role: session.role ?? null };
    const text = `{"result":{${publicFacts(site, settings)},"session":${JSON.stringify(whose)}}}`;
    return new Reply(200, text, 'application/json');
  },
});

interface PublicFacts {
  readonly site: Site;
  readonly activeKeys: number;
  readonly challengeSeconds: number;
  /** Members of a JSON object. */
  readonly text: string;
}

let told: PublicFacts | undefined;

/** What everybody is told. The text is kept: every page asks for it first, and only two settings in it ever change. */
function publicFacts(site: Site, settings: SettingsReader): string {
  const activeKeys = settings.get('ActiveKeysLimit');
  const challengeSeconds = settings.get('ChallengeSeconds');
  if (told?.site === site && told.activeKeys === activeKeys && told.challengeSeconds === challengeSeconds)
    return told.text;
  const { project, version, authMethods } = site;
  const { rpId, rpName, origins } = site.fido2;
  const fido2 = { rpId, rpName, origins };
  const limits = { activeKeys, challengeSeconds };
  const text = JSON.stringify({ project, version, authMethods, fido2, limits }).slice(1, -1);
  told = { site, activeKeys, challengeSeconds, text };
  return text;
}

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
