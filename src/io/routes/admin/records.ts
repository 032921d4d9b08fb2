/** Admin JSON of the overview that the dashboard shows. */
import type { Administration } from '../../../actors/runtime/administration.ts';
import { array, boolean, idText, integer, object, text, utcText } from '../../../domain/schema.ts';
import { toIso } from '../../../domain/time.ts';
import { type AnyRoute, defineRoute } from '../../http/route.ts';
import type { HealthFacts } from '../info.ts';
import { type AuditCluster, createAdminAuditRoutes } from './audit.ts';

/** The overview counts dead letters up to this number. */
const DEAD_LETTERS_COUNTED_MAX = 1_000;

const overview = object({
  version: text({ examples: ['0.1.0'] }),
  utcNow: utcText(),
  databaseConnected: boolean(),
  memory: object({ rssBytes: integer() }),
  sessions: object({ browser: integer(), mcp: integer() }),
  softwareKeys: integer(),
  apps: integer(),
  failingActors: array(
    object({ kind: text({ examples: ['user'] }), id: idText(), quarantined: boolean(), failures: integer() }),
  ),
  deadLetters: integer(),
  auditDropped: integer(),
});

export interface RecordDeps {
  readonly administration: Administration;
  readonly health: () => HealthFacts;
  readonly auditCluster: AuditCluster | undefined;
}

export function createAdminRecordRoutes(deps: RecordDeps): AnyRoute[] {
  const audit = createAdminAuditRoutes({ log: deps.administration, cluster: deps.auditCluster });
  return [...audit, overviewRoute(deps)];
}

function overviewRoute({ administration, health }: RecordDeps): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/overview',
    summary: 'How the gateway stands: sessions, keys, applications, memory, failures',
    docs: {
      description:
        'What the dashboard shows first. `failingActors` are those that could not be read or written lately.',
    },
    group: 'admin',
    auth: 'admin',
    limits: [],
    result: overview,
    errors: ['SessionNotFound', 'Forbidden'],
    handle({ actors, site, nowMs }) {
      const { databaseConnected, rssBytes } = health();
      return {
        version: site.version,
        utcNow: toIso(nowMs),
        databaseConnected,
        memory: { rssBytes },
        sessions: { browser: actors.count('sidHash'), mcp: actors.count('sessionHash') },
        softwareKeys: actors.count('publicKey'),
        apps: actors.count('appId'),
        failingActors: administration
          .failing()
          .map(({ kind, id, quarantined, failures }) => ({ kind, id, quarantined, failures })),
        deadLetters: administration.dead(DEAD_LETTERS_COUNTED_MAX).length,
        auditDropped: administration.auditDropped,
      };
    },
  });
}
