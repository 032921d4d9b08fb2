/** Admin JSON of what happened and how things stand: the audit log and the overview of the dashboard. */
import type { AuditRecord } from '../../actors/runtime/actor.ts';
import type { Administration } from '../../actors/runtime/administration.ts';
import {
  array,
  boolean,
  integer,
  nullable,
  object,
  optional,
  record,
  text,
  unknown,
} from '../../domain/schema.ts';
import { toIso } from '../../domain/time.ts';
import { readPage } from '../admin-door.ts';
import { type AnyRoute, defineRoute } from '../http/route.ts';
import type { HealthFacts } from './info.ts';

/** Dead letters that the overview counts up to. */
const DEAD_LETTERS_COUNTED_MAX = 1_000;

const auditItem = object({
  /** Position in the log: `after` of the next page. */
  seq: integer(),
  utc: text(),
  event: text(),
  userId: nullable(text()),
  fields: record(text(), unknown()),
});
const auditQuery = object({
  after: optional(integer({ minimum: 0, description: 'Position of the last row of the page before' })),
  before: optional(
    integer({ minimum: 1, description: 'In place of `after`: the newest first, before this position' }),
  ),
  limit: optional(integer({ minimum: 1, maximum: 1_000, description: '100 unless given' })),
});
const overview = object({
  version: text(),
  utcNow: text(),
  databaseConnected: boolean(),
  memory: object({ rssBytes: integer() }),
  sessions: object({ browser: integer(), mcp: integer() }),
  softwareKeys: integer(),
  apps: integer(),
  failingActors: array(object({ kind: text(), id: text(), quarantined: boolean(), failures: integer() })),
  deadLetters: integer(),
  auditDropped: integer(),
});

export interface RecordParts {
  readonly administration: Administration;
  readonly health: () => HealthFacts;
}

export function createAdminRecordRoutes(parts: RecordParts): AnyRoute[] {
  return [auditRoute(parts), overviewRoute(parts)];
}

function auditRoute({ administration }: RecordParts): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/audit',
    summary: 'The audit log, the oldest first, a page at a time',
    group: 'admin',
    auth: 'admin',
    limits: [],
    query: auditQuery,
    result: array(auditItem),
    errors: ['InvalidInput', 'SessionNotFound', 'Forbidden'],
    handle({ query }) {
      const { limit } = readPage(query);
      const rows =
        query.before === undefined
          ? administration.auditPage(query.after ?? 0, limit)
          : administration.auditBefore(query.before, limit);
      return rows.map(({ seq, record: stored }) => {
        const { utcMs, event, userId, fields } = stored as AuditRecord;
        return { seq, utc: toIso(utcMs), event, userId, fields };
      });
    },
  });
}

function overviewRoute({ administration, health }: RecordParts): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/ProxyAdmin/api/overview',
    summary: 'How the gateway stands: sessions, keys, applications, memory, failures',
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
