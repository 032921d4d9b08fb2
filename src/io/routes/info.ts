/** Public information: get_info, info and health (spec 4.4). */
import { FEATURES } from '../../domain/features.ts';
import { CHUNK_BYTES } from '../../domain/files/files.ts';
import { SCOPE_SETTINGS, type ScopeCode } from '../../domain/limits/quotas.ts';
import { ROLES } from '../../domain/roles.ts';
import {
  array,
  idText,
  integer,
  nullable,
  object,
  oneOf,
  optional,
  type Static,
  text,
  utcText,
} from '../../domain/schema.ts';
import type { SessionContext } from '../../domain/sessions.ts';
import type { SettingsReader } from '../../domain/settings/settings.ts';
import { isPageOrigin, type Site } from '../../domain/site.ts';
import { toIso } from '../../domain/time.ts';
import { nicknameSchema } from '../accounts/nicknames.ts';
import { type AnyRoute, defineRoute, Reply } from '../http/table/route.ts';

/** The state that `/health` reports. */
export interface HealthFacts {
  /** Writes can be stored. With `Cluster` also: the node is in, its lease runs, and it is not far behind. */
  readonly databaseConnected: boolean;
  readonly activeSessions: number;
  /** Resident memory in bytes. */
  readonly rssBytes: number;
  /** Parts that stand still while the rest serves. */
  readonly degraded: readonly string[];
}

/** The word that `/health` begins with. */
export function healthStatus({
  databaseConnected,
  degraded,
}: Pick<HealthFacts, 'databaseConnected' | 'degraded'>): 'healthy' | 'degraded' | 'unhealthy' {
  if (!databaseConnected) return 'unhealthy';
  return degraded.length > 0 ? 'degraded' : 'healthy';
}

export const getInfo = defineRoute({
  method: 'GET',
  path: '/auth/v1/get_info',
  summary: 'Project, version and server time',
  spec: '4.4',
  description: 'The clock of the gateway is the one that `X-Timestamp` of `mcp_login` is compared with.',
  group: 'info',
  auth: 'optional',
  result: object({
    project: text({ examples: ['demo'] }),
    version: text({ examples: ['0.1.0'] }),
    utcNow: utcText(),
  }),
  handle: ({ site, nowMs }) => ({ project: site.project, version: site.version, utcNow: toIso(nowMs) }),
});

/** Asked of the host of the relying party by browsers, where a page of another origin uses its passkeys. */
export const relatedOrigins = defineRoute({
  method: 'GET',
  path: '/.well-known/webauthn',
  summary: 'Origins that may use the passkeys of this relying party (WebAuthn 5.11)',
  spec: '5.3',
  description: 'Pages of `Fido2.origins`, without native apps.',
  docs: {
    answers: {
      200: {
        description: 'The origins',
        type: 'application/json',
        schema: object({ origins: array(text({ examples: ['https://shop.example'] })) }),
      },
    },
  },
  group: 'info',
  auth: 'none',
  handle: ({ site }) => Reply.json(200, { origins: site.fido2.origins.filter(isPageOrigin) }),
});

const limitsShape = object({
  activeKeys: integer(),
  challengeSeconds: integer(),
  /** Bytes of a chunk of an upload. */
  chunkBytes: integer(),
  fileMaxSizeBytes: integer(),
  windowSeconds: integer(),
  quotas: object({ c: integer(), i: integer(), p: integer(), s: integer(), m: integer() }),
});

export const info = defineRoute({
  method: 'GET',
  path: '/auth/v1/info',
  summary: 'Version, ways to log in, public limits, and whose session this is',
  spec: '4.4',
  description:
    'Everything that a page needs before it logs anybody in. `quotas` are requests of a window by the scope letters of `X-RateLimit`; 0 means that the scope is off. `session` is null without one. Routes of a feature that `features` leaves out answer 503 with code 1018, those of files with 1036.',
  group: 'info',
  auth: 'optional',
  result: object({
    project: text({ examples: ['demo'] }),
    version: text({ examples: ['0.1.0'] }),
    baseUrl: text({ examples: ['https://gate.example'] }),
    authMethods: array(text({ examples: ['passkey'] })),
    features: array(oneOf(FEATURES)),
    fido2: object({
      rpId: text({ examples: ['gate.example'] }),
      rpName: text({ examples: ['Gatehouse'] }),
      origins: array(text({ examples: ['https://gate.example'] })),
    }),
    limits: limitsShape,
    session: nullable(object({ userId: idText(), nickname: nicknameSchema, role: nullable(oneOf(ROLES)) })),
  }),
  handle({ site, settings, session }) {
    const whose = session === undefined ? null : whoseSession(session);
    const text = `{"result":{${publicFacts(site, settings)},"session":${JSON.stringify(whose)}}}`;
    return new Reply(200, text, 'application/json');
  },
});

function whoseSession({ userId, nickname, role }: SessionContext) {
  return { userId, nickname: nickname ?? null, role: role ?? null };
}

interface PublicFacts {
  readonly site: Site;
  readonly revision: number;
  readonly features: Site['features'];
  /** Members of a JSON object. */
  readonly text: string;
}

let cached: PublicFacts | undefined;

/** The public part of info. Cached as text, because every page requests it first, and it changes with settings and members alone. */
function publicFacts(site: Site, settings: SettingsReader): string {
  const { revision } = settings;
  const { project, version, authMethods, baseUrl, features } = site;
  if (cached?.site === site && cached.revision === revision && cached.features === features)
    return cached.text;
  const { rpId, rpName, origins } = site.fido2;
  const fido2 = { rpId, rpName, origins };
  const limits = publicLimits(settings);
  const facts = { project, version, baseUrl, authMethods, features, fido2, limits };
  const text = JSON.stringify(facts).slice(1, -1);
  cached = { site, revision, features, text };
  return text;
}

/** Quotas are requests in a window, by the scope letter of `X-RateLimit`; 0 means off. */
function publicLimits(settings: SettingsReader): Static<typeof limitsShape> {
  const windowSeconds = settings.get('RateLimitWindowSeconds');
  const quotaOf = (name: (typeof SCOPE_SETTINGS)[ScopeCode]) => settings.get(name) * windowSeconds;
  const { c, i, p, s, m } = SCOPE_SETTINGS;
  return {
    activeKeys: settings.get('ActiveKeysLimit'),
    challengeSeconds: settings.get('ChallengeSeconds'),
    chunkBytes: CHUNK_BYTES,
    fileMaxSizeBytes: settings.get('FileMaxSizeBytes'),
    windowSeconds,
    quotas: { c: quotaOf(c), i: quotaOf(i), p: quotaOf(p), s: quotaOf(s), m: quotaOf(m) },
  };
}

const healthShape = object({
  status: oneOf(['healthy', 'degraded', 'unhealthy']),
  database: optional(oneOf(['connected', 'disconnected'])),
  memory: optional(object({ rssBytes: integer({ examples: [104857600] }) })),
  activeSessions: optional(integer()),
  degraded: optional(array(oneOf(['workers', 'files', 'sharedFolder']))),
});

/** Public health (spec 4.4), never in the envelope. `?plain=1` returns the status only. */
export function createHealthRoute(facts: () => HealthFacts): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/health',
    summary: 'Is the gateway healthy',
    spec: '4.4',
    description:
      'Never in the envelope. `plain=1` answers one word: `{"status": "healthy"}`. Not counted by the limiter.',
    docs: {
      query: object({ plain: optional(text({ description: '1: the status alone', examples: ['1'] })) }),
      answers: {
        200: {
          description:
            'Healthy, or degraded: the named parts stand still or are not shared, the others serve',
          type: 'application/json',
          schema: healthShape,
        },
        503: {
          description:
            'The database does not answer, or this node of a cluster is out, far behind or about to stop',
          type: 'application/json',
          schema: healthShape,
        },
      },
    },
    group: 'info',
    auth: 'none',
    limits: ['NoRateLimit'],
    handle({ search }) {
      const now = facts();
      const status = healthStatus(now);
      const code = now.databaseConnected ? 200 : 503;
      if (new URLSearchParams(search).get('plain') === '1') return Reply.json(code, { status });
      return Reply.json(code, {
        status,
        database: now.databaseConnected ? 'connected' : 'disconnected',
        memory: { rssBytes: now.rssBytes },
        activeSessions: now.activeSessions,
        ...(status === 'degraded' ? { degraded: now.degraded } : {}),
      });
    },
  });
}
