/** Admin JSON of the overview that the dashboard shows. */
import type { Administration } from '../../../actors/runtime/administration.ts';
import {
  array,
  boolean,
  idText,
  integer,
  named,
  nullable,
  object,
  text,
  utcText,
} from '../../../domain/schema.ts';
import { toIso } from '../../../domain/time.ts';
import type { AuditCluster } from '../../admin/audit-pages.ts';
import type { AdminNodes } from '../../admin/nodes.ts';
import { type AnyRoute, adminRoute } from '../../http/table/route.ts';
import type { HealthFacts } from '../info.ts';
import { createAdminAuditRoutes } from './audit.ts';

/** The overview counts dead letters up to this number. */
export const DEAD_LETTERS_COUNTED_MAX = 1_000;

/** `node`: the one of a cluster that says so; null without `Cluster`. */
export const failingActor = named(
  'FailingActor',
  object({
    kind: text({ examples: ['user'] }),
    id: idText(),
    quarantined: boolean(),
    failures: integer(),
    node: nullable(text({ examples: ['a'] })),
  }),
);
/** Nodes of a cluster that did not answer: what they would have said is not here. */
export const missingNodes = array(text({ examples: ['b'] }));

const overview = object({
  /** The node of a cluster that answers: memory, storage and lost records are its own. */
  node: nullable(text({ examples: ['a'] })),
  version: text({ examples: ['0.1.0'] }),
  utcNow: utcText(),
  databaseConnected: boolean(),
  memory: object({ rssBytes: integer() }),
  sessions: object({ browser: integer(), mcp: integer() }),
  softwareKeys: integer(),
  apps: integer(),
  failingActors: array(failingActor),
  missing: missingNodes,
  deadLetters: integer(),
  auditDropped: integer(),
});

export interface RecordDeps {
  readonly administration: Administration;
  readonly health: () => HealthFacts;
  readonly auditCluster: AuditCluster | undefined;
  readonly nodes: Pick<AdminNodes, 'name' | 'failing'>;
}

export function createAdminRecordRoutes(deps: RecordDeps): AnyRoute[] {
  const audit = createAdminAuditRoutes({ log: deps.administration, cluster: deps.auditCluster });
  return [...audit, overviewRoute(deps)];
}

function overviewRoute({ administration, health, nodes }: RecordDeps): AnyRoute {
  return adminRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/overview',
    summary: 'How the gateway stands: sessions, keys, applications, memory, failures',
    description:
      'What the dashboard shows first. `failingActors` are those that could not be read or written lately, at all nodes of a cluster.',
    result: overview,
    async handle({ actors, site, nowMs }) {
      const { failing, missing } = await nodes.failing();
      const { databaseConnected, rssBytes } = health();
      return {
        node: nodes.name === '' ? null : nodes.name,
        version: site.version,
        utcNow: toIso(nowMs),
        databaseConnected,
        memory: { rssBytes },
        sessions: { browser: actors.count('sidHash'), mcp: actors.count('sessionHash') },
        softwareKeys: actors.count('publicKey'),
        apps: actors.count('appId'),
        failingActors: [...failing],
        missing: [...missing],
        deadLetters: administration.dead(DEAD_LETTERS_COUNTED_MAX).length,
        auditDropped: administration.auditDropped,
      };
    },
  });
}
